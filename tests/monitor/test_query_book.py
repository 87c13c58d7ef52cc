"""The account of actions by what their tasks tell."""

from __future__ import annotations

import threading
import time

import pytest

from eddyline.monitor import query_book
from eddyline.monitor.live_query import QueryState
from eddyline.monitor.query_book import QueryBook, StageCount
from eddyline.reports.block_report import BlockReport
from eddyline.reports.records import FunctionRecord, PredicateRecord, TaskRecord
from eddyline.tasks.live_news import News, NewsTask

TEN_CALLS = (FunctionRecord(name="f", calls=10, calls_possible=40, seconds=1.0),)


def record(rows: int) -> TaskRecord:
    return TaskRecord(
        block="b",
        rows_in=rows,
        rows_out=1,
        predicates=(PredicateRecord(text="f(a)", rows_in=rows, passed=rows, errors_held=2),),
        functions=TEN_CALLS,
    )


def made_book() -> QueryBook:
    def report(key: str, of: TaskRecord) -> BlockReport | None:
        return None if key == "unknown" else BlockReport(f"of {key}", "adaptive", 0, ("f(a)",), of)

    return QueryBook(report, lambda: 100.0)


def news(
    rows: int, attempt: int = 1, *, action: int | None = 7, ended: bool = False, block: str = "b"
) -> News:
    return News(block, NewsTask(action, 3, 0, attempt), record(rows), ended)


def rows_of(book: QueryBook, number: int = 1) -> int:
    query = book.query(number)
    assert query is not None
    return query.totals.rows_in


def test_what_runs_is_replaced_and_what_has_ended_is_added() -> None:
    book = made_book()
    book.take(news(10))
    book.take(news(25))
    assert rows_of(book) == 25
    book.take(news(5, attempt=2))
    assert rows_of(book) == 30
    book.take(news(40, ended=True))
    assert rows_of(book) == 45
    book.take(news(33))  # late
    book.take(news(40, ended=True))  # twice
    assert rows_of(book) == 45


def test_what_an_action_is_said_to_be() -> None:
    book = made_book()
    book.take(news(10))
    book.mark(1, {3: StageCount(8, 2)}, description="count at\nx.py:3", started=90.0)
    query = book.query(1)
    assert query is not None
    assert (query.name, query.state) == ("count at x.py:3: of b", QueryState.RUNNING)
    assert (query.started, query.ended, query.tasks, query.tasks_done) == (90.0, None, 8, 2)
    totals = query.totals
    assert (totals.calls, totals.calls_possible, totals.errors) == (10, 40, 2)
    assert totals.spared == pytest.approx(3.0)
    book.mark(1, {}, ended=95.0, state=QueryState.FAILED, error="no")
    query = book.query(1)
    assert query is not None
    assert (query.state, query.error, query.ended) == (QueryState.FAILED, "no", 95.0)
    assert query.tasks == 8
    assert book.running() == []


def test_tasks_of_an_action_that_has_ended_have_done_what_was_last_heard() -> None:
    book = made_book()
    book.take(news(10))
    book.mark(1, {}, ended=95.0, state=QueryState.DONE)
    assert rows_of(book) == 10
    book.take(news(12, ended=True))  # its connection was slower than Spark's
    book.take(news(3, attempt=9, ended=True))
    assert rows_of(book) == 15


def test_stages_of_no_action_are_queries_of_their_own() -> None:
    book = made_book()
    book.take(news(1, action=None))
    book.take(news(1, action=7))
    assert [query.description for query in book.queries()] == ["action 7", "stage 3"]


def test_blocks_of_an_action_stand_apart_and_unknown_ones_are_left_out() -> None:
    book = made_book()
    for block in ("b", "unknown", "c"):
        book.take(news(10, block=block))
    query = book.query(1)
    assert query is not None
    assert [block.title for block in query.blocks] == ["of b", "of c"]
    assert query.totals.rows_in == 20


def test_the_latest_come_first_page_by_page_and_can_be_found() -> None:
    book = made_book()
    for action in range(30):
        book.take(news(1, attempt=action, action=action, ended=True))
    assert [query.number for query in book.queries(most=3)] == [30, 29, 28]
    assert [query.number for query in book.queries(most=3, before=28)] == [27, 26, 25]
    assert [query.description for query in book.queries(find="ACTION 2", most=2)] == [
        "action 29",
        "action 28",
    ]
    assert [query.number for query in book.queries(find="of b", most=1)] == [30]
    assert book.queries(find="nothing") == []


def test_old_queries_keep_their_sums_only_and_are_forgotten_at_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(query_book, "KEPT_WHOLE", 2)
    monkeypatch.setattr(query_book, "KEPT", 3)
    book = made_book()
    for action in range(7):
        book.take(news(action + 1, attempt=action, action=action, ended=True))
        book.mark(action + 1, {}, ended=101.0, state=QueryState.DONE)
    assert [query.number for query in book.queries()] == [7, 6, 5, 4, 3]
    assert [len(query.blocks) for query in book.queries()] == [1, 1, 0, 0, 0]
    old = book.query(4)
    assert old is not None
    assert (old.totals.rows_in, old.name) == (4, "action 3: of b")
    assert book.query(1) is None
    book.take(news(99, attempt=50, action=3))  # of one that is not whole any more
    assert rows_of(book, 4) == 4
    assert book.count == 5


def test_who_waits_is_told_of_changes_and_of_nothing_else() -> None:
    book = made_book()
    version = book.wait(-1, 0.0)
    threading.Timer(0.05, book.take, [news(1)]).start()
    newer = book.wait(version, 60.0)
    assert newer != version
    book.mark(1, {3: StageCount(8, 2)})
    newest = book.wait(newer, 0.0)
    assert newest != newer
    book.mark(1, {3: StageCount(8, 2)})
    started = time.monotonic()
    assert book.wait(newest, 0.01) == newest
    assert time.monotonic() - started >= 0.01


def test_nothing_runs_when_spark_has_stopped() -> None:
    book = made_book()
    book.take(news(1))
    book.end_all()
    query = book.query(1)
    assert query is not None
    assert (query.state, query.ended) == (QueryState.UNKNOWN, 100.0)


def test_what_blocks_did_in_the_past_is_forgotten_on_demand() -> None:
    book = made_book()
    for action in range(3):
        book.take(news(action + 1, attempt=action, action=action, ended=True))
    book.mark(1, {}, ended=101.0, state=QueryState.DONE)
    book.forget()
    assert [bool(query.blocks) for query in book.queries()] == [True, True, False]
    assert book.query(1) is not None


def test_waits_for_quota_are_kept_as_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_book, "WAITS", 3)
    now = 0.0
    book = QueryBook(lambda *_: None, lambda: now)
    book.take(news(10))
    waiting = {1.0, 1.5, 2.25, 5.0, 5.5, 9.0, 12.0, 15.0}
    for step in range(61):
        now = step / 4
        book.mark(1, {}, waiting="for quota" if now in waiting else "")
        if now == 8.0:
            query = book.query(1)
            assert query is not None
            assert query.waits == ((1.0, 2.25), (5.0, 5.5))
    query = book.query(1)
    assert query is not None
    assert query.waits == ((9.0, 9.0), (12.0, 12.0), (15.0, 15.0))  # the latest
