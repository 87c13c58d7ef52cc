"""Inputs of a join, and which is read next."""

from __future__ import annotations

import pytest

from eddyline.engine.join.reading_order import Goal, ReadingOrder
from eddyline.engine.modules.scan_access import HeldScan, ScanAccess
from tests.scripted_scans import Scripted, rows, values


def test_a_held_input_gives_its_pieces() -> None:
    source = HeldScan([rows(1, 2), rows(3)])
    assert (source.expected_rows, source.ended) == (3, False)
    assert values(source.poll()) == [1, 2]
    assert source.expected_rows == 1
    assert values(source.poll()) == [3]
    assert (source.expected_rows, source.ended) == (0, True)
    assert source.poll() is None


@pytest.mark.parametrize(
    ("goal", "order"), [(Goal.THROUGHPUT, [2, 0, 4, 1]), (Goal.INTERACTIVE, [4, 1, 0, 2])]
)
def test_what_is_read_next_depends_on_the_goal(goal: Goal, order: list[int]) -> None:
    script = [rows(1)]
    inputs: list[ScanAccess] = [
        Scripted(script, 50),
        Scripted(script),
        Scripted(script, 5),
        Scripted([], 0),
        Scripted(script),
    ]
    assert ReadingOrder(goal).order(inputs, [3, 2, 4, 0, 1]) == order
