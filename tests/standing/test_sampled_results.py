"""Results of windows that have lost events are estimates, and say how good they are."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from eddyline.errors import NotShareableError
from eddyline.standing import standing_queries
from eddyline.standing.standing_queries import StandingQueries
from tests.standing.feeds import Feed, Gathered, given_shares, run_all
from tests.standing.test_standing_queries import SCHEMA, START

A_WINDOW = 10_000
"""Events a minute."""

AT_THE_END = ("Z", 1.0, 1, START + dt.timedelta(hours=1))

QUERIES = {
    "all": "SELECT window.start s, count(*) n FROM trades GROUP BY window(time, '1 minute')",
    "groups": """SELECT symbol, window.start s, count(*) n, sum(volume) v, avg(price) a,
                 min(price) least, max(price) most
                 FROM trades WHERE price > 30 GROUP BY symbol, window(time, '1 minute')""",
    "mixed": """SELECT sum(volume) / count(*) AS r FROM trades
                GROUP BY window(time, '1 minute')""",
    "chosen": "SELECT volume, symbol, time FROM trades WHERE price > 99",
}


@pytest.fixture
def trades(spark: SparkSession, tmp_path: Path) -> Feed:
    return Feed(spark, tmp_path / "trades", SCHEMA, ("time", "1 second"))


def events(number: int, seconds: tuple[int, int]) -> pd.DataFrame:
    """Events of some seconds, evenly: of four symbols."""
    generator = np.random.default_rng(number)
    first, last = seconds
    count = A_WINDOW * (last - first) // 60
    at = first * 1_000_000 + np.arange(count) * 60_000_000 // A_WINDOW
    return pd.DataFrame(
        {
            "symbol": generator.choice(list("ABCD"), count, p=[0.4, 0.3, 0.2, 0.1]),
            "price": generator.uniform(0, 100, count),
            "volume": generator.integers(1, 1000, count),
            "time": pd.Timestamp(START) + pd.to_timedelta(at, unit="us"),
        }
    )


def give(feed: Feed, frame: pd.DataFrame) -> None:
    kind = pa.schema(
        {
            "symbol": pa.string(),
            "price": pa.float64(),
            "volume": pa.int64(),
            "time": pa.timestamp("us", "UTC"),
        }
    )
    feed.write(pa.Table.from_pandas(frame, kind, preserve_index=False))


def test_windows_that_lost_events(
    spark: SparkSession, tmp_path: Path, trades: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches of 45 s and windows of 60 s, with a restart in the middle of a window."""
    told: list[pa.Table] = []

    def opened(policy: str, *shares: float) -> StandingQueries:
        monkeypatch.setattr(standing_queries, "Overload", given_shares(*shares))
        return StandingQueries(
            spark,
            streams={"trades": trades.stream()},
            state=tmp_path / "state",
            on_overload=policy,
        )

    batches = [events(n, (45 * n, 45 * n + 45)) for n in range(3)]
    sink = Gathered()
    for batch in batches[:2]:
        give(trades, batch)
    with opened("sample", 1.0, 0.05) as queries:
        for name, sql in QUERIES.items():
            queries.add(sql, name=name)
        with pytest.raises(NotShareableError, match="sample is the column that says what sample"):
            queries.add("SELECT symbol AS sample FROM trades", name="taken")
        run_all(queries, sink)
        lost = queries.windows().collect()
    give(trades, batches[2])
    trades.give([AT_THE_END])
    with opened("block", 1.0) as queries:  # what is kept has lost events before
        queries.subscribe("all", lambda table, _: told.append(table))
        run_all(queries, sink)
        lost += queries.windows().collect()
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for (_, number), rows in sink.batches.items():
        for row in rows:
            found[row["query"]].append(row | {"batch": number})

    every = {row["s"]: row for row in found["all"]}
    assert {start.minute - START.minute: row["n"] for start, row in every.items()} == {
        0: A_WINDOW,
        1: A_WINDOW,
        2: A_WINDOW // 4,
    }
    last = every.pop(max(every))["sample"]
    assert (last["exact"], last["seen"], last["intervals"]) == (True, A_WINDOW // 4, None)
    for row in every.values():
        sample = row["sample"]
        assert (sample["exact"], sample["events"]) == (False, A_WINDOW)
        assert list(sample["intervals"]) == ["n"]
        dropped = sample["events"] - sample["seen"]
        assert ("aggregate trades", row["s"], A_WINDOW, dropped) in {
            (window.job, window.start, window.events, window.dropped) for window in lost
        }
        assert 0.3 < sample["kept"] < 0.8
    assert told[0].column_names == ["sample", "s", "n"]
    # An interval is under the column that an aggregate is, or its own text where it is none.
    estimates = {
        name: [row for row in found[name] if not row["sample"]["exact"]]
        for name in ("groups", "mixed")
    }
    assert {frozenset(row["sample"]["intervals"]) for row in estimates["groups"]} == {
        frozenset({"n", "v", "a", "least", "most"})
    }
    assert {frozenset(row["sample"]["intervals"]) for row in estimates["mixed"]} == {
        frozenset({"sum(volume)", "count(1)"})
    }
    for row in estimates["groups"]:
        assert tuple(row["sample"]["intervals"]["most"]) == (row["most"], None)
    kept = {row["batch"]: row["sample"] for row in found["chosen"]}
    nothing = {"seen": None, "events": None, "intervals": None}
    assert kept[0].asDict() == nothing | {"exact": True, "kept": 1.0}
    assert kept[1].asDict() == nothing | {"exact": False, "kept": 0.05}
