"""The job that :mod:`bench.standing.kills` kills: standing queries that come and go by chance.

Run as ``python -m bench.standing.killed_job DIRECTORY SEED FILES``. It ends by itself when both
streams have been read to their end.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import eddyline
from bench.standing.events_taken import is_at_its_end
from eddyline.standing.history import backfill_plan, event_history
from eddyline.standing.history.backfill_log import BackfillLog
from eddyline.standing.log.batch_log import BatchLog
from eddyline.standing.log.change_log import ChangeLog
from eddyline.standing.query_registry import QueryRegistry
from eddyline.standing.standing_queries import StandingQueries

SCHEMA = "symbol string, price double, volume bigint, time timestamp"

SELECTION = "SELECT symbol, price, volume FROM trades WHERE price > {} AND volume < {}"

JOIN = """SELECT t.symbol, t.volume AS bought, q.volume AS offered
          FROM trades t JOIN quotes q ON t.symbol = q.symbol
          AND q.time BETWEEN t.time - INTERVAL 10 SECONDS AND t.time + INTERVAL 10 SECONDS
          WHERE t.price > {} AND q.volume < {}"""

AGGREGATE = """SELECT symbol, window.start AS began, count(*) AS n, sum(volume) AS sold
               FROM trades WHERE price > {} AND volume < {}
               GROUP BY symbol, window(time, '2 minutes', '1 minute')"""

SESSIONS = """SELECT symbol, session_window.start AS began, session_window.end AS ended,
              count(*) AS n, sum(volume) AS sold FROM trades WHERE price > {} AND volume < {}
              GROUP BY symbol, session_window(time, '30 seconds')"""
TOP = """SELECT symbol, began, n, sold FROM (
           SELECT symbol, window.start AS began, count(*) AS n, sum(volume) AS sold
           FROM trades WHERE price > {} AND volume < {}
           GROUP BY symbol, window(time, '2 minutes', '1 minute'))
         QUALIFY row_number() OVER (PARTITION BY began ORDER BY n DESC, symbol) <= 3"""

ABSENCE = """SELECT t.symbol, t.volume AS alone, t.time AS since
             FROM trades t NOT FOLLOWED BY quotes q
             ON t.symbol = q.symbol AND q.volume < {1} WITHIN 10 SECONDS
             WHERE t.price > {0}"""

UNION = """SELECT symbol, price, volume FROM trades WHERE price > {0} AND volume < {1}
           UNION ALL SELECT symbol, price, volume FROM trades WHERE price < 5 AND volume < {1}"""

WITHIN = 10
"""Seconds that it waits."""

LASTING = (SELECTION, UNION, JOIN, ABSENCE, AGGREGATE, SESSIONS, TOP)
"""Queries of all kinds."""

RAISING = (
    """SELECT symbol, price, volume, 100 / (volume - {1}) AS ratio
       FROM trades WHERE price > {0}""",
    """SELECT symbol, price, volume
       FROM trades WHERE price > {0} AND 100 / (volume - {1}) < 1000""",
    """SELECT t.symbol, t.volume AS bought, q.volume AS offered,
       100 / (t.volume - q.volume) AS ratio
       FROM trades t JOIN quotes q ON t.symbol = q.symbol
       AND q.time BETWEEN t.time - INTERVAL 10 SECONDS AND t.time + INTERVAL 10 SECONDS
       WHERE t.price > {0} AND q.volume < {1}""",
    """SELECT symbol, window.start AS began, count(*) AS n, sum(volume) AS sold
       FROM trades WHERE price > {0}
       GROUP BY symbol, window(time, '2 minutes', '1 minute')
       HAVING 100 / (count(*) - 19) < 1000""",
    """SELECT symbol, price, volume FROM trades WHERE price > {0} AND 100 / (volume - {1}) < 1000
       UNION ALL SELECT symbol, price, volume FROM trades WHERE price < 5""",
)
"""Queries that are paused sooner or later, by an event or a group that makes them divide by 0."""

DERIVED = "WHERE sha2(concat({0}symbol, {0}volume, {1}), 256) < 'a' AND"
"""What Spark computes as a column of its own, so that plans with state are made anew."""

PATTERN = "WHERE {0}symbol RLIKE '^S1?[{1}-9]$' AND"
"""What an index of patterns knows."""

DERIVED_COLUMNS = 12
"""Different ones that may come."""

DERIVING = 0.2
"""The part of the queries that have one."""

PATTERNS = 0.2
"""The part of the others with a pattern."""

WATERMARK = 60
"""Seconds by which events may be late; those of a micro-batch are of one minute."""

JOBS = ("select trades", "join quotes.0 trades.0", "aggregate trades", "sessions trades.0")

COMPACTED = 20
"""Changes after which the log of queries is compacted, as it is after 1,000 of a user's."""

MOST_QUERIES = 40
"""Queries that stand at once; beyond, some go before others come."""

BACKFILLS = ("100 hours", "5 minutes")
"""How far back some of the new queries look: to the first event, or less."""

PART_ROWS = 2_000
"""Events of a part of a backfill: five micro-batches, so that kills come between parts, too."""

MERGED = 5
"""Segments of the history that become one."""


def query(chance: random.Random) -> str:
    """Return a query: a selection, two, a join, a sequence or an aggregate; a third may raise."""
    kinds = RAISING if chance.random() < 1 / 3 else list(LASTING)
    text = chance.choice(kinds)
    asked = text.format(chance.randrange(70, 100), chance.randrange(100, 1000))
    if chance.random() < DERIVING:
        stream = "t." if "trades t" in text else ""
        asked = asked.replace("WHERE", DERIVED.format(stream, chance.randrange(DERIVED_COLUMNS)))
    elif chance.random() < PATTERNS:
        stream = "t." if "trades t" in text else ""
        asked = asked.replace("WHERE", PATTERN.format(stream, chance.randrange(9)))
    return asked


def come_and_go(queries: StandingQueries, chance: random.Random, stopped: threading.Event) -> None:
    """Add, drop, replace, pause or resume queries, one at a time."""
    count = 0
    while not stopped.wait(chance.uniform(0.05, 0.5)):
        names = [row["name"] for row in queries.queries().select("name").collect()]
        kind = chance.random()
        some = chance.choice(names) if len(names) > len(JOBS) + 1 else None
        if kind < 0.5 and len(names) < MOST_QUERIES:  # noqa: PLR2004 - of ten changes five
            sql = query(chance)
            # Joins look back at stored rows, which a batch query does not know of; sessions at
            # nothing.
            alone = not any(word in sql for word in ("JOIN", "FOLLOWED BY", "session_window"))
            looks_back = alone and chance.random() < 2 / 3
            backfill = chance.choice(BACKFILLS) if looks_back else None
            queries.add(sql, name=f"q{time.time_ns()}-{count}", backfill=backfill)
            count += 1
        elif some is None or some.startswith("first"):
            continue
        elif kind < 0.7:  # noqa: PLR2004 - two of ten
            queries.drop(some)
        elif kind < 0.8:  # noqa: PLR2004
            queries.replace(some, query(chance))
        elif kind < 0.9:  # noqa: PLR2004
            queries.pause(some)
        else:
            queries.resume(some)


def finished_with_parts(log: BackfillLog, number: int, why: str) -> None:
    """Take note that a backfill is finished, and keep what says what its parts were."""
    if log.finished(number) is None:
        log._write(number, "finished", why)  # noqa: SLF001 - as it does itself


def backfills(queries: StandingQueries) -> Counter[str]:
    """Return how many of the queries stand how far with their old data."""
    rows = queries.queries().where("backfill IS NOT NULL AND state = 'running'").collect()
    return Counter(str(row["backfill"]).partition(" ")[0] for row in rows)


def main(directory: Path, seed: int, files: int) -> int:
    """Run the job over so many files of each stream."""
    spark = eddyline.session(master="local[2, 4]", config={"spark.ui.enabled": "false"})
    streams = {
        name: spark.readStream.schema(SCHEMA)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(directory / name))
        .withWatermark("time", f"{WATERMARK} seconds")
        for name in ("trades", "quotes")
    }
    state = directory / "state"
    QueryRegistry.__init__.__kwdefaults__ = {"every": COMPACTED}
    backfill_plan.PART_ROWS = PART_ROWS  # type: ignore[misc]  # much smaller than a user's
    event_history.MERGED = MERGED  # type: ignore[misc]
    setattr(BackfillLog, "finish", finished_with_parts)  # noqa: B010 - in its place
    queries = StandingQueries(spark, streams=streams, state=state, history="200 hours")
    chance = random.Random(seed)
    known = {row["name"] for row in queries.queries().select("name").collect()}
    firsts = (
        ("first-select", SELECTION),
        ("first-join", JOIN),
        ("first-absence", ABSENCE),
        ("first-aggregate", AGGREGATE),
        ("first-sessions", SESSIONS),
    )
    for name, sql in firsts:
        if name not in known:
            queries.add(sql.format(80, 800), name=name)
    queries.start(directory / "out")
    print("started", flush=True)
    stopped = threading.Event()
    changes_come = threading.Thread(target=come_and_go, args=(queries, chance, stopped))
    changes_come.daemon = True
    changes_come.start()
    logs = [BatchLog(state / "jobs" / job / "batches") for job in JOBS]
    # After the last events comes a batch without any, which closes windows and judges absences.
    further = {state / "jobs" / job / "checkpoint": not job.startswith("select") for job in JOBS}
    while not all(is_at_its_end(job, files, more) for job, more in further.items()):
        if queries.await_termination(0.5):
            print("ended before its time", flush=True)
            return 1
    stopped.set()
    changes_come.join()
    while (far := backfills(queries)).keys() - {"done", "waiting"}:
        if far["failed,"]:
            print("a backfill has failed", flush=True)
            return 1
        time.sleep(0.5)
    changes = ChangeLog(state / "queries")
    left = f"{len(changes.changes())} of {changes.last()} changes left"
    print("done", [log.newest() for log in logs], left, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
