"""New queries see old events, and each event once: what a batch finds in all of them."""

from __future__ import annotations

import datetime as dt
import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession

from eddyline.errors import NotShareableError, StateError
from eddyline.standing.engine.aggregation.time_window import TimeWindow
from eddyline.standing.history import backfill_plan, event_history
from eddyline.standing.history.backfill_plan import BackfillPlan
from eddyline.standing.history.event_history import OldEvents
from eddyline.standing.history.kept_segments import Segment
from eddyline.standing.log.batch_log import BatchLog
from eddyline.standing.sinks import Batch
from eddyline.standing.standing_queries import StandingQueries
from tests.standing.feeds import Feed, Gathered, expected, run_all
from tests.standing.test_standing_queries import SCHEMA, SELECTIONS, START, events

pytestmark = pytest.mark.slow(60)

DELAY = "20 seconds"

STATE = "state [1] {a}*"
"""A name that Spark would take for a pattern."""

AT_THE_END = ("Z", None, 1, START + dt.timedelta(hours=1))
"""An event after which all windows of those before it have closed."""

WINDOWS = {
    "tumbling": """SELECT window.start s, symbol, count(*) n, sum(volume) v, max(price) m
                   FROM trades WHERE price > 10 GROUP BY window(time, '1 minute'), symbol""",
    "sliding": """SELECT window, count(*) n, sum(volume) a FROM trades
                  GROUP BY window(time, '90 seconds', '20 seconds') HAVING count(*) > 20""",
    "derived": """SELECT window.start s, count(DISTINCT volume) n, lower(symbol) l FROM trades
                  WHERE symbol RLIKE '^[AB]' GROUP BY window(time, '1 minute'), lower(symbol)""",
}

DERIVED = "SELECT volume FROM trades WHERE lower(symbol) RLIKE '[ab]' AND minute(time) > 0"
"""Asks about columns that Spark computes."""


@pytest.fixture
def trades(spark: SparkSession, tmp_path: Path) -> Feed:
    return Feed(spark, tmp_path / "trades", SCHEMA, ("time", DELAY))


def kept(
    spark: SparkSession, tmp_path: Path, trades: Feed, history: str | None = "1 hour"
) -> StandingQueries:
    """Standing queries with a history."""
    return StandingQueries(
        spark,
        streams={"trades": trades.stream()},
        state=tmp_path / STATE,
        history=history,
    )


def test_selections_see_old_events(spark: SparkSession, tmp_path: Path, trades: Feed) -> None:
    sink = Gathered()
    queries = {f"old {name}": sql for name, sql in SELECTIONS.items()} | {"derived": DERIVED}
    trades.give(events(0, 200, 0))
    trades.give(events(1, 200, 60))
    with kept(spark, tmp_path, trades) as standing:
        run_all(standing, sink)
    trades.give(events(2, 200, 120))
    limits = pd.DataFrame({"name": ["a", "b"], "most": [95.0, 50.0], "symbol": ["A", "B"]})
    template = "SELECT symbol, price - :most p FROM trades WHERE price > :most AND symbol = :symbol"
    with kept(spark, tmp_path, trades) as standing:
        for name, sql in queries.items():
            standing.add(sql, name=name, backfill="1 hour")
        standing.add_many(template, limits, backfill="1 hour")
        standing.add(SELECTIONS["none"], name="instead")
        standing.replace("instead", SELECTIONS["dear"], backfill="30 seconds")
        run_all(standing, sink)
        states = {row["name"]: row["backfill"] for row in standing.queries().collect()}
        found = {row["name"]: row["results"] for row in standing.queries().collect()}
    assert states == dict.fromkeys([*queries, "a", "b", "instead"], "done")
    queries |= {
        name: template.replace(":most", f"{most}D").replace(":symbol", f"'{symbol}'")
        for name, most, symbol in zip(*limits.to_dict("list").values(), strict=True)
    }
    wanted = expected(spark, {"trades": trades.rows()}, queries)
    latest = max(time for *_, time in trades.batches[0] + trades.batches[1])
    late = trades.rows().where(f"time >= timestamp'{latest - dt.timedelta(seconds=30)}'")
    wanted |= expected(spark, {"trades": late}, {"instead": SELECTIONS["dear"]})
    assert sink.answers() == wanted
    assert found == {name: wanted.get(name, Counter()).total() for name in states}


def test_windows_see_old_events(spark: SparkSession, tmp_path: Path, trades: Feed) -> None:
    sink = Gathered()
    for number in range(3):
        trades.give(events(number, 200, 60 * number, 90))
    with kept(spark, tmp_path, trades) as standing:
        standing.add("SELECT count(*) n FROM trades GROUP BY window(time, '1 day')", name="first")
        run_all(standing, sink)
    with kept(spark, tmp_path, trades) as standing:
        for name, sql in WINDOWS.items():
            standing.add(sql, name=name, backfill="1 hour")
        for number in range(3, 6):
            trades.give(events(number, 200, 60 * number, 90))
        run_all(standing, sink)
    trades.give([AT_THE_END])
    with kept(spark, tmp_path, trades) as standing:
        run_all(standing, sink)
        states = {row["name"]: row["backfill"] for row in standing.queries().collect()}
    assert states == {"first": None} | dict.fromkeys(WINDOWS, "done")
    assert sink.answers() == expected(
        spark, {"trades": trades.rows().where("symbol IS NULL OR symbol <> 'Z'")}, WINDOWS
    )


def test_windows_begin_within_what_is_asked_for(
    spark: SparkSession, tmp_path: Path, trades: Feed
) -> None:
    sink = Gathered()
    for number in range(4):
        trades.give(events(number, 200, 60 * number))
    with kept(spark, tmp_path, trades) as standing:
        standing.add("SELECT count(*) n FROM trades GROUP BY window(time, '1 day')", name="first")
        run_all(standing, sink)
    for number in range(4, 6):
        trades.give(events(number, 200, 60 * number))
    trades.give([AT_THE_END])
    with kept(spark, tmp_path, trades) as standing:
        for name, sql in WINDOWS.items():
            standing.add(sql, name=name, backfill="100 seconds")
        run_all(standing, sink)
    latest = max(time for *_, time in trades.batches[3])
    since = latest - dt.timedelta(seconds=100)
    # The select job has come farther: what it has seen when the others are added counts.
    rows = trades.rows().where("symbol IS NULL OR symbol <> 'Z'")
    whole = expected(spark, {"trades": rows}, WINDOWS)
    found = sink.answers()
    assert found.keys() == WINDOWS.keys()
    for name, answers in found.items():
        assert not answers - whole[name]
        starts = {_start(row) for row in answers}
        assert min(starts) >= since
        assert answers == Counter({r: n for r, n in whole[name].items() if _start(r) in starts})
        assert {_start(row) for row in whole[name] if _start(row) >= latest} <= starts


def _start(row: tuple[Any, ...]) -> dt.datetime:
    """When the window of a row begins."""
    (start,) = [value for value in row if isinstance(value, dt.datetime)] or [
        value[0] for value in row if isinstance(value, tuple)
    ]
    return start.replace(tzinfo=None)


def state_of(standing: StandingQueries, name: str) -> str:
    """How far the backfill of a query is."""
    (row,) = standing.queries().where(f"name = '{name}'").collect()
    return str(row["backfill"])


@pytest.mark.parametrize("seed", [0, 1])
def test_seams_anywhere(
    spark: SparkSession, tmp_path: Path, trades: Feed, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill_plan, "PART_ROWS", 250)
    monkeypatch.setattr(event_history, "MERGED", 3)
    chance = random.Random(seed)
    sink = Gathered()
    asked: dict[str, tuple[str, int]] = {}
    kinds = [*WINDOWS.values(), SELECTIONS["either"], SELECTIONS["all"], DERIVED]
    for start in (0, 5):
        standing = kept(spark, tmp_path, trades, "1 day")
        standing.start(sink)
        for number in range(start, start + 5):
            trades.give(events(number, chance.randrange(100, 200), 40 * number, 58))
            if chance.random() < 0.5:
                least = chance.randrange(4)
                while standing.progress().batches <= least:
                    time.sleep(0.05)
            name, sql = f"q{len(asked)}", chance.choice(kinds)
            look_back = 7200 if "GROUP" in sql else chance.choice([7200, 70])
            asked[name] = sql, look_back
            standing.add(sql, name=name, backfill=f"{look_back} seconds")
        standing.stop()
    trades.give([AT_THE_END])
    with kept(spark, tmp_path, trades, "1 day") as standing:
        run_all(standing, sink)
        states = {row["name"]: row["backfill"] for row in standing.queries().collect()}
    assert states == dict.fromkeys(asked, "done")
    rows = trades.rows().where("symbol IS NULL OR symbol <> 'Z'")
    for name, (sql, look_back) in asked.items():
        seen = rows if "GROUP" in sql else trades.rows()
        if look_back < 7200:
            version = int(name[1:]) + 1  # each was added by a change of its own
            log = BatchLog(tmp_path / STATE / "jobs" / "select trades" / "batches")
            runs = [log.known(batch) for batch in range(len(trades.batches))]
            seam = next(n for n, run in enumerate(runs) if run and run.version >= version)
            times = [time for batch in trades.batches[:seam] for *_, time in batch]
            if times:
                since = max(times) - dt.timedelta(seconds=look_back)
                old = trades.rows(range(seam)).where(f"time >= timestamp'{since}'")
                seen = old.unionAll(trades.rows(range(seam, len(trades.batches))))
        wanted = expected(spark, {"trades": seen}, {name: sql})
        assert sink.answers()[name] == wanted[name], (name, sql)


def test_a_backfill_goes_on_after_a_failure(
    spark: SparkSession, tmp_path: Path, trades: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill_plan, "PART_ROWS", 200)
    for number in range(4):
        trades.give(events(number, 200, 60 * number))
    with kept(spark, tmp_path, trades) as standing:
        run_all(standing, Gathered())
    sink = Gathered()

    def failing(results: DataFrame, batch: Batch) -> None:
        sink(results, batch)
        if batch == ("select trades backfill 0", 2):
            raise RuntimeError("no room left")

    trades.give(events(4, 200, 240))
    with kept(spark, tmp_path, trades) as standing:
        standing.add(SELECTIONS["dear"], name="dear", backfill="1 hour")
        with pytest.warns(UserWarning, match="backfill of standing queries has failed.*no room"):
            run_all(standing, failing)
        assert "no room left" in state_of(standing, "dear")
    with kept(spark, tmp_path, trades) as standing:
        standing.start(sink)
        while state_of(standing, "dear") != "done":
            time.sleep(0.05)
        assert {row["batch"] for row in standing.batches().collect()} == {2, 3}
        standing.stop()
    rows = {"trades": trades.rows()}
    assert sink.answers() == expected(spark, rows, {"dear": SELECTIONS["dear"]})


def test_old_events_fail_a_query(spark: SparkSession, tmp_path: Path, trades: Feed) -> None:
    trades.give([("A", 1.0, n, START) for n in range(10)])
    with kept(spark, tmp_path, trades) as standing:
        run_all(standing, Gathered())
    trades.give([("B", 1.0, 20, START)])
    sink = Gathered()
    bad = {
        "output": "SELECT volume, 1 / (volume - 3) x FROM trades",
        "condition": "SELECT volume FROM trades WHERE 1 / (volume - 4) < 9",
    }
    with kept(spark, tmp_path, trades) as standing:
        for name, sql in bad.items():
            standing.add(sql, name=name, backfill="1 hour")
        standing.add("SELECT volume FROM trades", name="good", backfill="1 hour")
        with pytest.warns(UserWarning, match="has failed on old events and is paused"):
            run_all(standing, sink)
        told = {row["name"]: row for row in standing.queries().collect()}
    assert told["good"]["state"] == "running"
    assert told["output"]["state"] == told["condition"]["state"] == "paused"
    assert "volume = 3" in told["output"]["reason"]
    assert "volume = 4" in told["condition"]["reason"]
    every = Counter((n,) for n in [*range(10), 20])
    found = {name: Counter(row[:1] for row in rows) for name, rows in sink.answers().items()}
    assert found["good"] == every
    assert every - found["output"] == Counter([(3,)])
    assert every - found["condition"] == Counter([(4,)])


def test_a_window_has_what_came_before_it_closed() -> None:
    window = TimeWindow(60_000_000, 60_000_000)
    segments = [
        Segment(0, 1, 5, -130_000_000, 30_000_000),
        Segment(2, 2, 5, 0, 90_000_999),  # a watermark is of whole milliseconds
        Segment(3, 3, 5, None, None),
        Segment(5, 5, 5, 0, 70_000_000),
        Segment(6, 6, 5, 0, 91_000_000),
        Segment(7, 8, 5, 0, 500_000_000),
    ]
    minute = 60_000_000
    plan = BackfillPlan((7,), "aggregate s", "s", window=window, until=4 * minute, delay=31_000_000)
    planned = backfill_plan.of_windows(plan, segments[:2], 1)
    assert planned.parts == ()
    assert (planned.waiting, planned.after) == (minute, 2)
    planned = backfill_plan.of_windows(plan, segments[:2], -3 * minute)
    assert [(part.events, part.starts_until) for part in planned.parts] == [
        (OldEvents(0, 2, -3 * minute, 0), 0)
    ]
    assert planned.waiting == 0
    closing = list(backfill_plan.closing(planned, 0, segments))
    assert [(part.events, part.starts_until) for part in closing] == [
        (OldEvents(0, 6, 0, minute), minute),
        (OldEvents(0, 8, minute, 4 * minute), 4 * minute),
    ]
    assert list(backfill_plan.closing(planned, minute, segments[:-1])) == []
    assert BackfillPlan.of(json.loads(json.dumps(planned.to_dict()))) == planned


def test_what_is_out_of_the_horizon_goes(
    spark: SparkSession, tmp_path: Path, trades: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_history, "MERGED", 3)
    sink = Gathered()
    for number in range(10):
        trades.give(events(number, 50, 60 * number))
    with kept(spark, tmp_path, trades, "4 minutes") as standing:
        run_all(standing, sink)
        with pytest.raises(ValueError, match="farther than the history: 300 s"):
            standing.add(SELECTIONS["all"], name="all", backfill="5 minutes")
        standing.add(SELECTIONS["all"], name="all", backfill="4 minutes")
    directory = tmp_path / STATE / "history" / "streams" / "trades"
    names = sorted(path.name for path in (directory / "segments").iterdir())
    assert names == sorted(path.name for path in (directory / "events").iterdir())
    assert len(names) < 5
    assert names[0] >= f"{3:010}"
    trades.give(events(10, 50, 600))
    with kept(spark, tmp_path, trades, "4 minutes") as standing:
        run_all(standing, sink)
    latest = max(time for *_, time in trades.batches[9])
    rows = trades.rows().where(f"time >= timestamp'{latest - dt.timedelta(minutes=4)}'")
    assert sink.answers() == expected(spark, {"trades": rows}, {"all": SELECTIONS["all"]})


def test_what_has_no_old_events(spark: SparkSession, tmp_path: Path, trades: Feed) -> None:
    trades.give(events(0, 10, 0))
    plain = Feed(spark, tmp_path / "plain", "id bigint")
    with pytest.raises(ValueError, match="withWatermark"):
        StandingQueries(
            spark, streams={"plain": plain.stream()}, state=tmp_path / "p", history="1 day"
        )
    with StandingQueries(
        spark,
        streams={"plain": plain.stream(), "trades": trades.stream()},
        state=tmp_path / STATE,
        tables={"sectors": spark.createDataFrame([("A", 1)], "symbol string, sector int")},
        history="1 day",
    ) as standing:
        with pytest.raises(NotShareableError, match="old events are not joined with tables"):
            standing.add(
                "SELECT sector FROM trades NATURAL JOIN sectors", name="s", backfill="1 hour"
            )
        with pytest.raises(NotShareableError, match="plain are kept, as it has no event time"):
            standing.add("SELECT id FROM plain", name="p", backfill="1 hour")
        run_all(standing, Gathered())
    with pytest.raises(StateError, match="give history="):
        StandingQueries(
            spark,
            streams={"plain": plain.stream(), "trades": trades.stream()},
            tables={"sectors": spark.createDataFrame([("A", 1)], "symbol string, sector int")},
            state=tmp_path / STATE,
        )


def test_a_history_may_begin_later_than_the_queries(
    spark: SparkSession, tmp_path: Path, trades: Feed
) -> None:
    sink = Gathered()
    for number in range(2):
        trades.give(events(number, 200, 60 * number))
    with StandingQueries(
        spark, streams={"trades": trades.stream()}, state=tmp_path / STATE
    ) as standing:
        standing.add("SELECT count(*) n FROM trades GROUP BY window(time, '1 day')", name="first")
        standing.add(SELECTIONS["none"], name="second")
        run_all(standing, sink)
    for number in range(2, 4):
        trades.give(events(number, 200, 60 * number))
    with kept(spark, tmp_path, trades) as standing:
        run_all(standing, sink)
        for name, sql in (WINDOWS | {"all": SELECTIONS["all"]}).items():
            standing.add(sql, name=name, backfill="1 hour")
    for number in range(4, 6):
        trades.give(events(number, 200, 60 * number))
    trades.give([])
    trades.give([AT_THE_END])
    with kept(spark, tmp_path, trades) as standing:
        run_all(standing, sink)
    found = sink.answers()
    rows = trades.rows(range(2, 8))
    assert found["all"] == expected(spark, {"trades": rows}, {"all": SELECTIONS["all"]})["all"]
    whole = expected(
        spark, {"trades": trades.rows().where("symbol IS NULL OR symbol <> 'Z'")}, WINDOWS
    )
    seen = max(time for batch in trades.batches[:2] for *_, time in batch)
    for name in WINDOWS:
        assert found[name] == Counter(
            {row: n for row, n in whole[name].items() if _start(row) > seen}
        )


def test_old_windows_are_exact_where_events_may_be_dropped(
    spark: SparkSession, tmp_path: Path, trades: Feed
) -> None:
    for number in range(3):
        trades.give(events(number, 100, 60 * number))

    def opened() -> StandingQueries:
        return StandingQueries(
            spark,
            streams={"trades": trades.stream()},
            state=tmp_path / STATE,
            history="1 hour",
            on_overload="sample",
            target=1000,
        )

    with opened() as standing:
        standing.add("SELECT count(*) c FROM trades GROUP BY window(time, '1 day')", name="first")
        run_all(standing, Gathered())
    trades.give(events(3, 100, 180))
    sink = Gathered()
    sql = "SELECT window.start s, count(*) n FROM trades GROUP BY window(time, '1 minute')"
    with opened() as standing:
        standing.add(sql, name="windows", backfill="1 hour")
        standing.add("SELECT time FROM trades", name="times", backfill="75 seconds")
        run_all(standing, sink)
    rows = [row for batch in sink.batches.values() for row in batch]
    windows = [row for row in rows if row["query"] == "windows"]
    assert Counter((row["s"], row["n"]) for row in windows) == Counter(
        {(START + dt.timedelta(minutes=number), 100): 1 for number in range(3)}
    )
    assert all(row["sample"]["exact"] for row in rows)
    assert {row["sample"]["seen"] for row in windows} == {100}
    latest = max(time for *_, time in trades.batches[2])
    old = [time for batch in trades.batches[:3] for *_, time in batch]
    times = [time for time in old if time >= latest - dt.timedelta(seconds=75)]
    times += [time for *_, time in trades.batches[3]]
    assert Counter(row["time"] for row in rows if row["query"] == "times") == Counter(times)
