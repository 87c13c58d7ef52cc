"""Accounts of queries for the live page, without Spark."""

from __future__ import annotations

import time

from eddyline.monitor.live_query import QueryState
from eddyline.monitor.query_book import QueryBook, StageCount
from eddyline.reports.block_report import BlockReport
from eddyline.reports.records import (
    FunctionRecord,
    JoinRecord,
    OrderSlice,
    PredicateRecord,
    SteMRecord,
    TaskRecord,
)
from eddyline.tasks.live_news import News, NewsTask

HOSTILE = '<img src=x onerror="window.harmed=1"></script><script>window.harmed=1</script>"\'&\x00'


def filter_record(rows: int, name: str = "slow") -> TaskRecord:
    """Return what a task has done with so many rows."""
    return TaskRecord(
        block="b",
        rows_in=rows,
        rows_out=rows // 20,
        predicates=(
            PredicateRecord(text=f"{name}(id)", rows_in=rows // 10, passed=rows // 20, seconds=2.0),
            PredicateRecord(text="quick(id)", rows_in=rows, passed=rows // 10, seconds=0.01),
        ),
        functions=(FunctionRecord(name=name, calls=rows // 10, calls_possible=rows, seconds=2.0),),
        orders=(
            OrderSlice(10.0, 11.0, rows // 2, (((0, 1), rows // 2),)),
            OrderSlice(11.0, 12.0, rows // 2, (((1, 0), rows // 2),)),
        ),
    )


def join_record(name: str = "planes") -> TaskRecord:
    """Return what the tasks of a join block have done."""
    stems = (SteMRecord(relation="flights"), SteMRecord(relation=name, probes=90, matches=30))
    return TaskRecord(
        block="j",
        rows_in=110,
        rows_out=15,
        predicates=(PredicateRecord(text="slow(id)", rows_in=30, passed=15, seconds=0.1),),
        orders=(OrderSlice(10.0, 11.0, 90, (((1, 2, 0), 90),)),),
        join=JoinRecord(stems=stems, read=(90, 20), came=(90, 20), cells=(50, 30, 10)),
    )


def book_of(name: str = "slow") -> QueryBook:
    """Return an account in which blocks are called by a name; the block ``j`` is a join."""

    def report(key: str, record: TaskRecord) -> BlockReport:
        if key == "j":
            steps = ("slow(id)", "join flights", f"join {name}")
            return BlockReport(
                f"flights join {name}", "adaptive", 0, steps, record, "in place", ("flights", name)
            )
        return BlockReport(name, "adaptive", 0, (f"{name}(id)", "quick(id)"), record)

    return QueryBook(report, time.time)


def run(
    book: QueryBook, action: int, record: TaskRecord, *, ended: bool, description: str = "count"
) -> int:
    """Let an action have done something; return its number."""
    book.take(News(record.block, NewsTask(action, 1, 0, action), record, ended))
    number = book.queries(most=1)[0].number
    book.mark(
        number,
        {1: StageCount(4, 4 if ended else 1)},
        description=description,
        started=time.time() - 2,
        ended=time.time() if ended else None,
        state=QueryState.DONE if ended else QueryState.RUNNING,
    )
    return number
