"""Twelve shapes of queries as a long session runs them, each with functions made anew."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline

ROWS: Final = 60

NAMED: Final = 10
"""Rows of the table that is looked up."""

POOL: Final = 16
"""Threads of the pool, as those of a web server."""

Way = Callable[[DataFrame], DataFrame]
"""How a query is run: as it is, or adapted."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where queries run: a session, a folder for files, a pool of threads, and the way.

    ``own`` says whether what only Eddyline has may be used: concurrent functions, lookup tables.
    """

    spark: SparkSession
    folder: Path
    pool: ThreadPoolExecutor
    way: Way
    own: bool


@contextmanager
def place(spark: SparkSession, mode: str) -> Iterator[Place]:
    """Let queries run as they are (``plain``), adapted one by one (``adapt``), or all of them."""
    way: Way = eddyline.adapt if mode == "adapt" else lambda df: df
    with (
        tempfile.TemporaryDirectory(prefix="eddyline-soak-") as name,
        ThreadPoolExecutor(POOL) as pool,
    ):
        folder = Path(name)
        spark.range(ROWS).write.parquet(str(folder / "events"))
        _begin_all(spark, pool)
        if mode != "enable":
            yield Place(spark, folder, pool, way, own=mode == "adapt")
            return
        with eddyline.enable(spark):
            yield Place(spark, folder, pool, way, own=True)


def _begin_all(spark: SparkSession, pool: ThreadPoolExecutor) -> None:
    together = threading.Barrier(POOL)

    def begin(_: int) -> None:
        together.wait()
        spark.range(1).count()  # over the connection that the thread has from now on

    for _ in pool.map(begin, range(POOL)):
        pass


def functions(turn: int) -> tuple[Any, Any]:
    """Return two predicates that nobody has had before."""
    even = F.udf(lambda number: number % 2 == 0, "boolean")
    some = F.udf(lambda number: (number + turn) % 3 > 0, "boolean")
    return even, some


def filtered(where: Place, turn: int) -> DataFrame:
    """Return a query over two new predicates."""
    even, some = functions(turn)
    return where.way(where.spark.range(0, ROWS, 1, 1).filter(even("id") & some("id")))


def collected(where: Place, turn: int) -> int:
    """A filter, collected."""
    return len(filtered(where, turn).collect())


def in_pandas(where: Place, turn: int) -> int:
    """A filter, as a pandas DataFrame, which Spark plans in a thread of its own."""
    return len(filtered(where, turn).toPandas())


def in_arrow(where: Place, turn: int) -> int:
    """A filter, as an Arrow table, likewise."""
    return int(filtered(where, turn).toArrow().num_rows)


def iterated(where: Place, turn: int) -> int:
    """A filter, row by row."""
    return sum(1 for _ in filtered(where, turn).toLocalIterator())


def in_fresh_thread(where: Place, turn: int) -> int:
    """A filter, in a thread that is there for it alone."""
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(collected(where, turn)))
    thread.start()
    thread.join()
    return found[0]


def in_pool(where: Place, turn: int) -> int:
    """A filter, in a thread of a pool."""
    return where.pool.submit(collected, where, turn).result()


def joined(where: Place, turn: int) -> int:
    """A join with a value that is computed, and a predicate that looks at both sides."""
    spark = where.spark
    value = F.udf(lambda number: number * 7 % (turn + 10), "long")
    near = F.udf(lambda left, right: left + turn < right + 40 + turn, "boolean")
    left = spark.range(ROWS).select("id", value("id").alias("a"))
    right = spark.range(ROWS).select("id", (F.col("id") * 2).alias("b"))
    return where.way(left.join(right, "id").filter(near("a", "b"))).count()


def grouped(where: Place, turn: int) -> int:
    """An aggregate over a value that is computed, in SQL, with a function that takes the place."""
    spark = where.spark
    spark.udf.register("soak_value", lambda number: (number * 3 + turn) % 5, "long")
    text = f"SELECT soak_value(id) AS k, count(*) AS n FROM range({ROWS}) GROUP BY soak_value(id)"  # noqa: S608 - a number
    return len(where.way(spark.sql(text)).collect())


def written(where: Place, turn: int) -> int:
    """A filter, written to files."""
    filtered(where, turn).write.mode("overwrite").parquet(str(where.folder / "written"))
    return 0


def cached(where: Place, turn: int) -> int:
    """A filter, cached and looked at twice."""
    kept = filtered(where, turn).cache()
    try:
        return kept.count() + len(kept.filter("id > 10").collect())
    finally:
        kept.unpersist()


def streamed(where: Place, turn: int) -> int:
    """A short stream whose batches are filtered in ``foreachBatch``."""
    even, some = functions(turn)
    seen: list[int] = []

    def batch(rows: DataFrame, _: int) -> None:
        seen.append(len(where.way(rows.filter(even("id") & some("id"))).collect()))

    events = where.spark.readStream.schema("id long").parquet(str(where.folder / "events"))
    writer = events.writeStream.foreachBatch(batch).trigger(availableNow=True)
    writer.start().awaitTermination()
    return seen[0]


def asked(where: Place, turn: int) -> int:
    """A concurrent function, or a lookup table that is registered again; in turns."""
    rows = where.spark.range(ROWS)
    if turn // len(SHAPES) % 2:
        return len(where.way(rows.withColumn("v", _slow(where, turn)("id"))).collect())
    table = where.spark.range(NAMED).select("id", (F.col("id") + turn).alias("v"))
    if where.own:
        table = eddyline.lookup_table(
            where.spark,
            "soak_names",
            schema="id long, v long",
            bind=["id"],
            source=eddyline.PythonLookup(lambda numbers: _named(numbers, turn)),
        )
    return len(where.way(rows.join(table, "id")).collect())


def _named(numbers: list[int], turn: int) -> list[tuple[int, int]]:
    return [(number, number + turn) for number in numbers if number < NAMED]


def _slow(where: Place, turn: int) -> Callable[[str], Column]:
    if where.own:
        return eddyline.concurrent(lambda number: number + turn, returns="long")
    return F.udf(lambda number: number + turn, "long")


SHAPES: Final[tuple[Callable[[Place, int], int], ...]] = (
    collected,
    in_pandas,
    in_arrow,
    iterated,
    in_fresh_thread,
    in_pool,
    joined,
    grouped,
    written,
    cached,
    streamed,
    asked,
)


def run(where: Place, turn: int) -> int:
    """Run the query of a turn; return how many rows it had, or another number for the answer."""
    return SHAPES[turn % len(SHAPES)](where, turn)
