"""Kills a job of standing queries again and again, and compares what it has put out.

``make bench ARGS="kills"``: the driver with its JVM, or a Python worker, at moments drawn by
chance, while queries come and go, some look back at old events, and some are paused by errors of
theirs. At the end each query's results must be those of a batch query over the same events, for the
micro-batches in which it stood and what it looked back at: nothing lost, nothing twice. One that
raises has those without the rows on which it does, and must not have stood in any micro-batch
after.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StructType

import eddyline
from bench.standing.events_taken import FilesByStream, events_taken
from bench.standing.killed_job import JOBS, SCHEMA, WATERMARK, WITHIN
from bench.standing.old_rows import OldRows, own_sql
from eddyline.standing.engine.aggregation.time_window import TimeWindow
from eddyline.standing.log.batch_log import BatchLog
from eddyline.standing.log.change_log import ChangeLog
from eddyline.standing.log.jobs import job_of
from eddyline.standing.log.live_queries import LiveQueries, StandingQuery
from eddyline.standing.sequences import with_joins

ROWS = 400
"""Events of a stream in a micro-batch."""

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


Rows: TypeAlias = "Counter[tuple[object, ...]]"


def write_events(directory: Path, name: str, batches: int, seed: int) -> None:
    """Write the files of a stream, a micro-batch each, a minute of events in each."""
    chance = random.Random(f"{seed} {name}")
    (directory / name).mkdir(parents=True)
    for batch in range(batches):
        rows = [
            {
                "symbol": f"S{chance.randrange(20)}",
                "price": float(chance.randrange(1000)) / 10,
                "volume": chance.randrange(1000),
                "time": START + dt.timedelta(seconds=60 * batch + chance.randrange(60)),
            }
            for _ in range(ROWS)
        ]
        types = {
            "symbol": pa.string(),
            "price": pa.float64(),
            "volume": pa.int64(),
            "time": pa.timestamp("us", tz="UTC"),
        }
        path = directory / name / f"{batch:05}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, pa.schema(types)), path)
        os.utime(path, (1_000_000 + batch, 1_000_000 + batch))


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    """Return the processes of Python workers below a driver."""
    below: dict[int, list[int]] = defaultdict(list)
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        below[int(fields[1])].append(int(path.parent.name))
    pending, found = [process.pid], []
    while pending:
        pid = pending.pop()
        for child in below[pid]:
            pending.append(child)
            try:
                line = Path(f"/proc/{child}/cmdline").read_text()
            except OSError:
                continue
            if "pyspark.daemon" in line and not below[child]:
                found.append(child)
    return found


def run_and_kill(directory: Path, batches: int, kills: int, seed: int) -> list[str]:
    """Run the job, killing it on the way; return what was killed."""
    chance = random.Random(seed)
    killed: list[str] = []
    while True:
        command = [sys.executable, "-m", "bench.standing.killed_job"]
        with (
            (directory / "log").open("a") as log,
            subprocess.Popen(  # noqa: S603 - this very project
                [*command, str(directory), str(seed + len(killed)), str(batches)],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            ) as process,
        ):
            if process.stdout is None:
                raise AssertionError("its output is a pipe")
            process.stdout.readline()
            if len(killed) < kills:
                time.sleep(chance.uniform(3, 12))
                workers = workers_of(process)
                if workers and len(killed) % 4 == 1:  # one of four
                    os.kill(chance.choice(workers), signal.SIGKILL)
                    killed.append("worker")
                    time.sleep(chance.uniform(1, 4))
                os.killpg(process.pid, signal.SIGKILL)
                killed.append("driver")
            rest = process.stdout.read()
        print(f"{len(killed)} kills; {rest.strip()}", flush=True)
        if rest.startswith("done"):
            return killed


DIVISION = re.compile(r"100 / \((\S+) - (\S+)\)")
"""What makes some of the queries raise."""


def without_errors(sql: str) -> str:
    """Return a query that leaves out the rows on which another raises."""
    raising = DIVISION.search(sql)
    if raising is None:
        return sql
    one, other = raising.groups()
    tried = sql.replace(raising.group(), f"try_divide(100, {one} - {other})")
    clause = "HAVING" if "HAVING" in sql else "WHERE"
    return tried.replace(clause, f"{clause} {one} <> {other} AND", 1)


def raises(spark: SparkSession, directory: Path, sql: str, files: Sequence[int]) -> bool:
    """Tell whether a selection raises on some of the trades in these files."""
    raising = DIVISION.search(sql)
    if raising is None or "JOIN" in sql or "GROUP BY" in sql or not files:
        return False
    one, other = raising.groups()
    asked = re.sub(rf"AND {DIVISION.pattern} < \d+", "", sql.partition("WHERE")[2])
    return (
        not events(spark, directory, "trades", files)
        .where(f"{one} = {other} AND {asked}")
        .isEmpty()
    )


def paths(directory: Path, stream: str, files: Iterable[int]) -> list[str]:
    """Return where files of a stream are."""
    return [str(directory / stream / f"{file:05}.parquet") for file in files]


def events(spark: SparkSession, directory: Path, stream: str, files: Sequence[int]) -> DataFrame:
    """Return the events in files of a stream."""
    if not files:
        return spark.createDataFrame([], SCHEMA)
    return spark.read.schema(SCHEMA).parquet(*paths(directory, stream, files))


class Stood(NamedTuple):
    """All queries by number, the micro-batches in which each stood, and which run at the end."""

    queries: dict[int, StandingQuery]
    batches: dict[int, list[int]]
    running: set[int]


def stood_in(state: Path, taken: Mapping[str, list[FilesByStream]]) -> Stood:
    """Return which queries stood in which micro-batches of their jobs."""
    ran: dict[str, list[int]] = {}
    for job, of_job in taken.items():
        batch_log = BatchLog(state / "jobs" / job / "batches")
        runs = map(batch_log.known, range(len(of_job)))
        ran[job] = [run.version if run else 0 for run in runs]
    log = ChangeLog(state / "queries")
    live = LiveQueries()
    batches: dict[int, list[int]] = defaultdict(list)
    queries = {}
    for version in sorted({version for of_job in ran.values() for version in of_job}):
        live.go_to(version, log)
        for number, query in live.running.items():
            queries[number] = query
            versions_run = ran[job_of(query.template).name]
            batches[number] += [batch for batch, run in enumerate(versions_run) if run == version]
    live.go_to(log.last(), log)
    return Stood(queries, batches, {*live.running})


def expected(  # noqa: C901 - each kind of query
    spark: SparkSession, directory: Path
) -> Iterator[tuple[str, Rows]]:
    """Yield for each query what plain Spark finds in the batches in which it stood."""
    state = directory / "state"
    taken = {job: events_taken(state / "jobs" / job / "checkpoint") for job in JOBS}
    queries, stood, running = stood_in(state, taken)

    def ask(sql: str, files: Sequence[int], condition: str) -> list[Row]:
        events(spark, directory, "trades", files).where(condition).createOrReplaceTempView("trades")
        return spark.sql(without_errors(sql)).collect()

    old = OldRows(directory, taken, running, ask, WATERMARK)
    found: dict[str, Rows] = defaultdict(Counter)
    stopped = 0
    schemas = dict.fromkeys(("trades", "quotes"), timed(spark, directory))
    for number, of_query in stood.items():
        template, sql = queries[number].template, own_sql(queries[number])
        of_job = taken[job_of(template).name]
        looks_back = queries[number].look_back is not None and bool(of_query)
        with_events = any(of_job[batch][name] for batch in of_query for name in of_job[batch])
        if not with_events and not looks_back:
            continue
        for name in of_job[0]:
            files = [file for batch in of_query for file in of_job[batch][name]]
            events(spark, directory, name, files).createOrReplaceTempView(name)
        raised = [
            batch
            for batch in of_query
            if raises(spark, directory, sql, of_job[batch].get("trades", range(0)))
        ]
        stopped += len(raised)
        if raised and raised[0] != max(of_query):
            print(f"{queries[number].name}: raised in {raised}, and stood until {max(of_query)}")
            yield f"{queries[number].name} after an error", Counter({("stood",): 1})
        results = spark.sql(with_joins(without_errors(sql), schemas)).collect()
        if template.query.absence is not None:
            known = known_by(directory, of_job[max(of_query)])
            results = [row for row in results if row["since"].timestamp() + WITHIN < known]
        if template.aggregated is not None:
            before = of_job[max(of_query)]["trades"].start if of_query else 0
            closed = watermark(directory, before)
            window = template.aggregated.aggregation.grouping.window
            if isinstance(window, TimeWindow):
                size = window.size / 1e6
                results = [row for row in results if row["began"].timestamp() + size <= closed]
            else:  # one at whose end the watermark is may still go on
                results = [row for row in results if row["ended"].timestamp() < closed]
        if looks_back and template.aggregated is not None:
            results = old.windows(queries[number], of_query)
        elif looks_back:
            results += old.selected(queries[number], min(of_query))
        for row in results:
            own = {name: value for name, value in row.asDict().items() if name != "ratio"}
            found[queries[number].name][tuple(own.values())] += 1
    print(f"{stopped} selections were stopped by errors")
    print(
        f"{old.backfills} queries looked back, {old.with_results} of them found something; "
        f"{old.unfinished} went before the end"
    )
    yield from found.items()


def timed(spark: SparkSession, directory: Path) -> StructType:
    """Return the schema of the streams, which says what their event time is."""
    stream = spark.readStream.schema(SCHEMA).parquet(str(directory / "trades"))
    return stream.withWatermark("time", f"{WATERMARK} seconds").schema


def known_by(directory: Path, last: Mapping[str, range]) -> float:
    """Return the watermark by which a batch with these files of its streams has judged."""
    return min(watermark(directory, files.start, stream) for stream, files in last.items())


def watermark(directory: Path, files: int, stream: str = "trades") -> float:
    """Return the watermark after so many files of a stream, in seconds since 1970: 0 after none."""
    times = [
        pq.read_table(path)["time"].cast(pa.int64())
        for path in paths(directory, stream, range(files))
    ]
    latest = max((max(each.to_pylist()) for each in times), default=0) / 1e6
    return max(latest - WATERMARK, 0)


def compare(spark: SparkSession, directory: Path) -> int:
    """Compare all queries; print and return how many differ."""
    out = spark.read.option("mergeSchema", "true").parquet(str(directory / "out"))
    columns = {
        "price": ("symbol", "price", "volume"),
        "bought": ("symbol", "bought", "offered"),
        "alone": ("symbol", "alone", "since"),
        "ended": ("symbol", "began", "ended", "n", "sold"),
        "began": ("symbol", "began", "n", "sold"),
    }
    given: dict[str, Rows] = defaultdict(Counter)
    for row in out.collect():
        kind = next(each for each in columns if row[each] is not None)
        given[row["query"]][tuple(row[name] for name in columns[kind])] += 1
    different = total = results = 0
    for name, wanted in expected(spark, directory):
        total += 1
        results += wanted.total()
        found = given.pop(name, Counter())
        if found != wanted:
            different += 1
            lost, twice = (wanted - found).total(), (found - wanted).total()
            print(f"{name}: {lost} lost, {twice} too many of {wanted.total()}")
    for name, found in given.items():
        different += 1
        print(f"{name}: {found.total()} results, and it never stood")
    print(f"{total} queries, {results:,} results: {different} differ")
    return different


def main(arguments: Sequence[str]) -> int:
    """Run the experiment; return whether anything differs."""
    parser = argparse.ArgumentParser(prog="kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--batches", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--directory", type=Path)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        directory = options.directory or Path(temporary)
        for name in ("trades", "quotes"):
            write_events(directory, name, options.batches, options.seed)
        started = time.monotonic()
        killed = Counter(run_and_kill(directory, options.batches, options.kills, options.seed))
        took = time.monotonic() - started
        kinds = ", ".join(f"{n} of a {what}" for what, n in killed.items())
        print(f"{killed.total()} kills ({kinds}) in {took:.0f} s")
        spark = eddyline.session(config={"spark.ui.enabled": "false"})
        return 1 if compare(spark, directory) else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
