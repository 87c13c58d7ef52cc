"""Inputs of a join, and which is read next."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from eddyline.engine.join.reading_order import Goal, ReadingOrder
from eddyline.engine.modules.scan_access import Arrival, CompetingScans, HeldScan, ScanAccess
from tests.joins import INT, arrival


def rows(*values: int) -> Arrival:
    return arrival([(value,) for value in values], [INT])


def values(came: Arrival | None) -> list[int] | None:
    return None if came is None else came.columns[0].to_pylist()


class Scripted:
    """An input that gives what it is told to, None where it stalls."""

    def __init__(self, script: Sequence[Arrival | None], expected: float | None = None) -> None:
        self._script = list(script)
        self.expected_rows = expected

    @property
    def ended(self) -> bool:
        return not self._script

    def poll(self) -> Arrival | None:
        return self._script.pop(0) if self._script else None


def test_a_held_input_gives_its_pieces() -> None:
    source = HeldScan([rows(1, 2), rows(3)])
    assert (source.expected_rows, source.ended) == (3, False)
    assert values(source.poll()) == [1, 2]
    assert source.expected_rows == 1
    assert values(source.poll()) == [3]
    assert (source.expected_rows, source.ended) == (0, True)
    assert source.poll() is None


def test_competing_inputs_take_turns_and_pass_over_who_has_nothing() -> None:
    source = CompetingScans(
        [Scripted([rows(1), None, rows(2), rows(9)]), HeldScan([rows(2), rows(1)])]
    )
    assert [values(source.poll()) for _ in range(3)] == [[1], [2], [1]]
    assert source.ended  # the second has given all rows
    assert source.poll() is None


def test_competing_inputs_that_all_stall_have_nothing() -> None:
    source = CompetingScans([Scripted([None, rows(1)]), Scripted([None, rows(1)])])
    assert source.poll() is None
    assert not source.ended
    assert values(source.poll()) == [1]
    assert source.ended


def test_competing_inputs_expect_the_fewest_rows_that_one_of_them_knows_of() -> None:
    script = [rows(1)]
    known = [Scripted(script, 5), Scripted(script), Scripted(script, 3)]
    assert CompetingScans(known).expected_rows == 3
    assert CompetingScans([Scripted(script)]).expected_rows is None


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
