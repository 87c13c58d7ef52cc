"""Progress in terminals wide and narrow."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from eddyline.monitor.live_query import LiveQuery, QueryState, Totals
from eddyline.monitor.progress_lines import ProgressLines, order_now
from eddyline.reports.block_report import BlockReport
from eddyline.reports.records import OrderSlice, TaskRecord

RECORD = TaskRecord(block="b", rows_in=1_234_567, orders=(OrderSlice(0.0, 1.0, 9, (((1, 0), 9),)),))
BLOCK = BlockReport("slow, quick", "adaptive", 0, ("slow(id)", "quick(id)"), RECORD)
QUERY = LiveQuery(
    number=1,
    action=1,
    description="count at a_long_name_of_a_script.py:123",
    about="slow, quick",
    state=QueryState.RUNNING,
    started=100.0,
    ended=None,
    error=None,
    tasks_done=3,
    tasks=12,
    totals=Totals(rows_in=1_234_567, calls=10, calls_possible=100, errors=4),
    blocks=(BLOCK,),
)


def shown(width: int, query: LiveQuery = QUERY) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(ProgressLines([query], now=110.0))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    lines = shown(width)
    assert len(lines) == 3
    assert all(cell_len(line) <= width for line in lines)


def test_a_wide_terminal_shows_everything() -> None:
    assert [line.rstrip() for line in shown(200)] == [
        "count at a_long_name_of_a_script.py:123: slow, quick",
        (
            "  ███░░░░░░░░░ 3/12 tasks  1.23M rows  10.0 s  123k rows/s  90.0 % of calls spared"
            "  4 errors held"
        ),
        "  order 2 -> 1, first quick(id)",
    ]


def test_a_narrow_one_what_matters_most() -> None:
    assert shown(40)[1].rstrip() == "  ███░░░░░░░░░ 3/12 tasks  1.23M rows"


def test_nothing_is_known_of_a_query_that_has_just_begun() -> None:
    new = replace(QUERY, started=110.0, tasks=0, tasks_done=0, totals=Totals(), blocks=())
    assert [line.rstrip() for line in shown(80, new)][1:] == [
        "  ░░░░░░░░░░░░ 0/0 tasks  0 rows  0 s  0 rows/s"
    ]
    assert order_now(replace(BLOCK, record=None)) == ""
    assert order_now(replace(BLOCK, record=replace(RECORD, orders=()))) == ""
