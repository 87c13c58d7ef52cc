"""The records of an action by itself, however many run at once, within a bound."""

from __future__ import annotations

from eddyline.planner.action_records import ACTIONS, ActionRecords
from eddyline.reports.records import TaskRecord


def record(action: int, rows: int = 1) -> TaskRecord:
    return TaskRecord(block="b", rows_in=rows, action=action)


def test_equal_blocks_of_actions_at_once_are_apart() -> None:
    records = ActionRecords()
    for action, rows in ((1, 1), (2, 10), (1, 100), (3, 1_000), (2, 10_000)):
        records.take({"k": record(action, rows)})
    rows_in = {number: records.over(number)["k"].rows_in for number in (1, 2, 3)}
    assert rows_in == {1: 101, 2: 10_010, 3: 1_000}
    assert records.over(1) == {}
    assert len(records) == 0


def test_what_never_ends_is_forgotten() -> None:
    records = ActionRecords()
    for number in range(3 * ACTIONS):
        records.take({"k": record(number)})
    records.take({"k": record(-1)})  # of an RDD: nobody hears of its end
    assert len(records) == ACTIONS
    assert records.over(0) == {}
    assert records.over(3 * ACTIONS - 1)["k"].rows_in == 1
