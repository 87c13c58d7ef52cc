"""``python -m bench lookups``: a join with an HTTP service, beside what people write by hand.

100,000 rows with 5,000 distinct keys; the service answers after 20 ms, 32 requests at a time. The
function that asks for every row would take a quarter of an hour: it gets a part of the rows, and
its time is multiplied. Idle is the part of the time for which the service could have had
more requests: how much of that the sockets of the machine cost, asking through them alone shows.
Without any is the part of the time in which it had none at all.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

import eddyline
from bench.lookups import peers
from bench.turns import Spread

ROWS: Final = 100_000
KEYS: Final = 5_000
IN_FLIGHT: Final = 32
BARE: Final = "bytes through sockets, no Spark"
"""What asks for the keys and does nothing else: no other can let the service be less idle."""

PART: Final = 100
"""The function that asks for every row gets every hundredth."""


@contextmanager
def service() -> Iterator[str]:
    """Run the service; give its URL."""
    command = [sys.executable, "-m", "bench.lookups.service", "--limit", str(IN_FLIGHT)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own
        try:
            port = process.stdout.readline() if process.stdout is not None else ""
            yield f"http://127.0.0.1:{int(port)}"
        finally:
            process.terminate()


def seen(url: str) -> dict[str, Any]:
    """Return what the service has seen since it was last asked."""
    with urllib.request.urlopen(f"{url}/log") as answer:  # noqa: S310 - our own
        found: dict[str, Any] = json.load(answer)
        return found


def contestants(
    spark: SparkSession, rows: DataFrame, url: str
) -> dict[str, tuple[Callable[[], DataFrame], int]]:
    """Return what is compared: how it is made, and by what its time is multiplied."""
    tasks = spark.sparkContext.defaultParallelism
    eddyline.lookup_table(
        spark,
        "incomes",
        "zip long, income double",
        ["zip"],
        eddyline.HttpLookup(url + "/income/{zip}"),
        max_in_flight=IN_FLIGHT,
    )
    part = rows.where(f"id % {PART} = 0")
    return {
        "eddyline": (lambda: eddyline.adapt(rows.join(spark.table("incomes"), "zip")), 1),
        "mapInArrow with asyncio": (
            lambda: peers.asynchronous(rows, url, IN_FLIGHT // tasks),
            1,
        ),
        "function with a cache": (lambda: peers.cached(rows, url), 1),
        "function, row by row": (lambda: peers.row_by_row(part, url), PART),
    }


def main(arguments: Sequence[str]) -> int:
    """Run all contestants in turns; print and write what was measured."""
    parser = argparse.ArgumentParser(prog="python -m bench lookups", description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument(
        "--only", nargs="+", default=[""], help="only contestants whose name contains one of these"
    )
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    given = parser.parse_args(arguments)
    spark = eddyline.session("eddyline-bench-lookups", master="local[2]")
    rows = spark.range(0, ROWS, 1, 2).selectExpr("id", f"id * 7919 % {KEYS} AS zip").cache()
    rows.count()
    times: dict[str, list[float]] = {}
    logs: dict[str, list[dict[str, Any]]] = {}
    with service() as url:
        found = {
            name: each
            for name, each in contestants(spark, rows, url).items()
            if any(text in name for text in given.only)
        }
        for turn in range(given.turns + 1):
            for name, (make, factor) in found.items():
                seen(url)
                began = time.perf_counter()
                total = make().selectExpr("count(*)", "sum(income)").collect()[0]
                seconds = (time.perf_counter() - began) * factor
                log = seen(url)
                if total[0] != ROWS // factor:
                    raise AssertionError(f"{name}: {total[0]} rows")
                if turn:
                    times.setdefault(name, []).append(seconds)
                    logs.setdefault(name, []).append(log)
            if turn:
                began = time.perf_counter()
                asyncio.run(peers.bare(range(KEYS), url, IN_FLIGHT))
                times.setdefault(BARE, []).append(time.perf_counter() - began)
                logs.setdefault(BARE, []).append(seen(url))
    spark.stop()
    table = Table(title="Rows joined with an HTTP service: median (least-greatest)")
    columns = ("seconds", "over eddyline", "requests per key", "refused", "idle", "without any")
    for column in ("", *columns):
        table.add_column(column, justify="right" if column else "left")
    own = times.get("eddyline")
    for name, taken in times.items():
        log = logs[name][-1]
        idle = statistics.median(1 - each["busy"] / each["seconds"] for each in logs[name])
        without = statistics.median(each["alone"] / each["seconds"] for each in logs[name])
        ratio = str(Spread.of(t / e for t, e in zip(taken, own, strict=True))) if own else ""
        table.add_row(
            name,
            str(Spread.of(taken)),
            ratio,
            f"{log['requests'] / max(log['keys'], 1):.2f}",
            f"{log['refused']:,}",
            f"{idle:.1%}",
            f"{without:.1%}",
        )
    Console().print(table)
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / "lookups.json"
    path.write_text(json.dumps({"seconds": times, "service": logs}, indent=1))
    return 0
