"""Counts in the report's text have the number that they need."""

from __future__ import annotations

from eddyline.reports.records import TaskRecord
from eddyline.reports.text import _totals


def test_one_is_one() -> None:
    one = TaskRecord(block="b", rows_in=1, rows_out=1, seconds=1.0, decisions=1, tasks=1)
    assert str(next(_totals(one))).startswith("1 row in, 1 out (100 %); 1 task")
    assert [str(line) for line in _totals(one)][-1].endswith("; 1 decision")
