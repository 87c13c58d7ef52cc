"""Several scans of the same rows."""

from __future__ import annotations

from bench.access_methods.competing_scans import CompetingScans
from eddyline.engine.modules.scan_access import HeldScan
from tests.scripted_scans import Scripted, rows, values


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
