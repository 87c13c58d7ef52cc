"""One process: it starts a session, repeats one query, and says how long each part has taken.

It imports nothing of Eddyline before its time, and nothing of the benchmarks.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SETTINGS: Final = {
    "spark.master": "local[2]",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""Of a session that is not ours: what ours has, except for the daemon of its workers."""

PARTS: Final = ("start", "tiny", "import", "enable", "query", "again")
"""What is timed, in this order: ``import`` is that of what ``adapt`` or ``enable`` need, ``again``
the median of the query's repetitions."""

REPETITIONS: Final = 20


def filtered(spark: SparkSession, folder: Path) -> DataFrame:
    """Return a filter with two predicates."""

    def odd_digits(number: int) -> bool:
        return sum(map(int, str(number))) % 2 == 1

    def short(text: str) -> bool:
        return len(text.strip("0")) < 4  # noqa: PLR2004 - as people write it

    orders = spark.read.parquet(str(folder / "orders"))
    return orders.where(F.udf(odd_digits, "boolean")("number") & F.udf(short, "boolean")("text"))


def joined(spark: SparkSession, folder: Path) -> DataFrame:
    """Return a join of two tables, with a predicate over each and one over both."""

    def odd_digits(number: int) -> bool:
        return sum(map(int, str(number))) % 2 == 1

    def is_open(name: str) -> bool:
        return name[-1] in "13579"

    def alike(text: str, name: str) -> bool:
        return text[-1] == name[-1]

    orders = spark.read.parquet(str(folder / "orders"))
    customers = spark.read.parquet(str(folder / "customers"))
    return orders.join(customers, "customer").where(
        F.udf(odd_digits, "boolean")("number")
        & F.udf(is_open, "boolean")("name")
        & F.udf(alike, "boolean")("text", "name")
    )


def native(spark: SparkSession, folder: Path) -> DataFrame:
    """Return a filter without any function of Python's."""
    return spark.read.parquet(str(folder / "orders")).where("number % 7 = 3 AND length(text) < 4")


QUERIES: Final = {"filter": filtered, "join": joined, "native filter": native}


@contextmanager
def timed(seconds: dict[str, float], part: str) -> Iterator[None]:
    """Take down how long a block takes."""
    began = time.perf_counter()
    yield
    seconds[part] = time.perf_counter() - began


def cpu_of_all() -> float:
    """Return the CPU seconds of this process and of all that it has started; 0 except on Linux."""
    parents, seconds = {}, {}
    ticks = os.sysconf("SC_CLK_TCK")
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        number = int(file.parent.name)
        parents[number] = int(fields[1])
        seconds[number] = sum(map(int, fields[11:15])) / ticks  # with those of children that ended
    ours = {os.getpid()}
    while more := {number for number, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(seconds.get(number, 0.0) for number in ours)


def started(kind: str) -> SparkSession:
    """Return a session that was started by Eddyline or by Spark."""
    if kind == "eddyline":
        import eddyline  # noqa: PLC0415 - not where it is not asked for

        return eddyline.session("first", master="local[2]")
    builder = SparkSession.builder.appName("first")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def run(contestant: str, session: str, query: str, folder: Path, *, tiny: bool) -> dict[str, Any]:
    """Return the seconds of each part, and how many rows there were."""
    seconds = dict.fromkeys(PARTS, 0.0)
    with timed(seconds, "start"):
        spark = started(session)
    if tiny:
        with timed(seconds, "tiny"):
            spark.range(3).collect()
    before = cpu_of_all()
    adapt: Any = None
    if contestant != "plain":
        import eddyline  # noqa: PLC0415 - not where it is not asked for

        with timed(seconds, "import"):
            adapt, enable = eddyline.adapt, eddyline.enable
        if contestant == "enable":
            with timed(seconds, "enable"):
                enable(spark)
    with timed(seconds, "query"):
        frame = QUERIES[query](spark, folder)
        rows = (adapt(frame) if contestant == "adapt" else frame).collect()
    cpu = cpu_of_all() - before
    repeated = []
    for _ in range(REPETITIONS):
        with timed(seconds, "again"):
            (adapt(frame) if contestant == "adapt" else frame).collect()
        repeated.append(seconds["again"])
    seconds["again"] = statistics.median(repeated)
    spark.stop()
    return {"seconds": seconds, "cpu": cpu, "rows": len(rows)}


if __name__ == "__main__":
    contestant, session, query, folder, tiny = sys.argv[1:]
    print(json.dumps(run(contestant, session, query, Path(folder), tiny=tiny == "tiny")))
