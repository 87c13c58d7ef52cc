"""What is known of standing queries goes with them: a job may run for months."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from eddyline.standing.introspection import SPARE, BatchRecord, Introspection
from eddyline.standing.log.jobs import job_of
from eddyline.standing.log.live_queries import StandingQuery
from eddyline.standing.selecting_job import SelectingBatches
from eddyline.standing.sinks import Batch, Callback
from eddyline.standing.standing_queries import StandingQueries
from eddyline.standing.subscriptions import Subscriptions
from eddyline.standing.tasks.counts import Counts
from tests.standing.feeds import Feed, Gathered
from tests.standing.groups import TEMPLATE, group
from tests.standing.test_dropped_queries import until

STANDING = 5


def query(number: int) -> StandingQuery:
    return StandingQuery(number, group(f"rule-{number}"), 0)


def test_what_dropped_queries_did_is_forgotten_and_that_of_paused_ones_is_not() -> None:
    there: set[int] = set()
    introspection = Introspection(lambda: there)
    job = job_of(TEMPLATE).name
    paused = query(0)
    for batch in range(20 * SPARE):
        running = [query(batch + position) for position in range(STANDING)]
        there = {paused.number} | {each.number for each in running}
        counts = Counts(Counter(events=1), results=Counter(each.number for each in running))
        record = BatchRecord(job, batch, batch, len(running), 0.0, 2.0, counts)
        introspection.note(record, running)
    (totals,) = introspection._totals.values()
    for by_query in (totals.results, totals.joined, totals.seconds, totals.with_results):
        assert len(by_query) <= 2 * (STANDING + 1) + SPARE
    told = introspection.queries(running, [(paused, "")]).to_pylist()
    assert [row["results"] for row in told] == [5, 4, 3, 2, 1, 1]
    assert [row["rows_in"] for row in told] == [5, 4, 3, 2, 1, 20 * SPARE]
    assert {row["seconds"] for row in told} == {2.0}


def test_of_a_batch_its_numbers_are_kept_and_not_what_each_query_did() -> None:
    introspection = Introspection(set)
    for batch in range(3):
        counts = Counts(
            Counter(events=7, others=1),
            results=Counter({1: 2, 300 + batch: 3}),
            stored=Counter({(0, "events"): batch}),
            entries=Counter({(0, "events"): 2 * batch}),
        )
        introspection.note(BatchRecord("job", batch, batch, 2, 0.0, 2.0, counts), [])
        kept = weakref.finalize(counts.results, lambda: None)
        del counts
        assert not kept.alive
    rows = introspection.batches().to_pylist()
    assert [(row["batch"], row["rows_in"], row["results"]) for row in rows] == [
        (0, 8, 5),
        (1, 8, 5),
        (2, 8, 5),
    ]
    assert introspection.stems().to_pylist() == [
        {"job": "job", "cell": 0, "stream": "events", "rows": 2, "blobs": 4}
    ]


def test_the_job_of_a_template_is_known_no_longer_than_the_template() -> None:
    template = replace(TEMPLATE, sql="SELECT 1")
    assert job_of(template) is job_of(template)
    gone = weakref.ref(template)
    del template
    gc.collect()
    assert gone() is None


@pytest.fixture
def events(spark: SparkSession, tmp_path: Path) -> Feed:
    return Feed(spark, tmp_path / "events", "id bigint")


def test_a_subscription_goes_with_its_query_and_stays_where_that_is_replaced(
    spark: SparkSession, tmp_path: Path, events: Feed
) -> None:
    told: list[tuple[str, int]] = []

    def tell(who: str) -> Callback:
        def add(rows: pa.Table, _: Batch) -> None:
            told.append((who, len(rows)))

        return add

    events.give([(1,), (2,), (3,)])
    with StandingQueries(
        spark, streams={"events": events.stream()}, state=tmp_path / "state"
    ) as queries:
        for name in ("first", "second"):
            queries.add("SELECT id FROM events", name=name)
            queries.subscribe(name, tell(name))
        queries.start(Gathered(), processingTime="0 seconds")
        until(lambda: queries.progress().batches == 1, queries)
        assert sorted(told) == [("first", 3), ("second", 3)]
        told.clear()
        queries.drop("first")
        queries.add("SELECT id FROM events", name="first")  # another one, of which nobody is told
        queries.replace("second", "SELECT id FROM events WHERE id > 3")
        events.give([(4,), (5,)])
        until(lambda: queries.progress().batches == 2, queries)
        assert told == [("second", 2)]
        queries.drop("first", "second")
        queries.add("SELECT id FROM events", name="third")
        events.give([(6,)])
        until(lambda: queries.progress().batches == 3, queries)
        assert told == [("second", 2)]
        assert not queries._subscriptions
        assert queries._counts.value == {}


def test_nothing_is_kept_for_jobs_that_stand_idle() -> None:
    subscriptions = Subscriptions()
    for number in range(100):
        subscriptions.add("rule", print)
        subscriptions.end(["rule"], lambda number=number: number, set)  # type: ignore[misc]
    assert not subscriptions
    subscriptions.add("rule", print)
    subscriptions.end(["rule"], lambda: 200, lambda: {"one", "other"})
    subscriptions.ran("one")
    assert subscriptions.told(["rule"], 199) == {"rule": [print]}  # the other one's batch has it
    assert subscriptions.told(["rule"], 200) == {}
    subscriptions.ran("other")
    assert not subscriptions


def test_a_query_that_is_dropped_while_its_batch_runs_is_told_of_once_more(
    spark: SparkSession, tmp_path: Path, events: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    planned = SelectingBatches.results
    dropped: list[str] = []

    def results(batches: SelectingBatches, *given: Any) -> Any:  # noqa: ANN401 - as it has them
        if not dropped:  # the batch has its version; another thread drops a query, and adds one
            dropped.append("rule")
            queries.drop("rule")
            queries.add("SELECT id FROM events", name="rule")
            queries.subscribe("rule", lambda rows, _: told.append(-len(rows)))
        return planned(batches, *given)

    monkeypatch.setattr(SelectingBatches, "results", results)
    events.give([(1,), (2,)])
    with StandingQueries(
        spark, streams={"events": events.stream()}, state=tmp_path / "state"
    ) as queries:
        queries.add("SELECT id FROM events", name="rule")
        queries.subscribe("rule", lambda rows, _: told.append(len(rows)))
        queries.start(Gathered(), processingTime="0 seconds")
        until(lambda: queries.progress().batches == 1, queries)
        events.give([(3,)])
        until(lambda: queries.progress().batches == 2, queries)
    assert told == [2, -1]
