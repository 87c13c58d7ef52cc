"""Twenty queries with paid calls, over 20,000 to 60,000 generated rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from bench.forecast.service import PaidService, chance

ROWS = 40_000


@dataclass
class Workload:
    """A query, what it pays for, and what is done before it is asked for its price."""

    name: str
    query: DataFrame
    services: tuple[PaidService, ...]
    before: Callable[[], object] = lambda: None
    calls: int = 200


def posts(spark: SparkSession, folder: Path, rows: int = ROWS) -> DataFrame:
    """Return rows with keys of several kinds, written so that partitions are alike in nothing.

    ``text`` is one of 12,000 texts, ``heavy`` a key of which few have most rows, ``author`` one of
    3,000, ``day`` rises with the row's place, ``own`` is a key of each row.
    """
    path = folder / f"posts{rows}"
    if not path.exists():
        table = spark.range(0, rows, 1, 8).selectExpr(
            "id AS own",
            "concat('text ', pmod(hash(id, 1), 12000), repeat('x', pmod(hash(id, 1), 12000) % 97))"
            " AS text",
            "CAST(floor(20000 * pow(pmod(hash(id, 2), 1000003) / 1000003, 4)) AS INT) AS heavy",
            "pmod(hash(id, 3), 3000) AS author",
            f"CAST(id * 365 / {rows} AS INT) AS day",
            "pmod(hash(id, 4), 1000) AS size",
            "CASE WHEN pmod(hash(id, 5), 10) > 0 THEN pmod(hash(id, 6), 9000) END AS maybe",
        )
        table.write.parquet(str(path))
    return spark.read.parquet(str(path))


def passing(share: float, *salt: object) -> Callable[..., Any]:
    """Return a free predicate in Python that keeps a share of its arguments."""

    def passes(*values: object) -> bool:
        return chance(salt, *values) < share

    return F.udf(passes, "boolean")


def score(name: str, **more: Any) -> PaidService:  # noqa: ANN401 - as PaidService takes them
    """Return a service that scores its arguments from 0 to 1."""
    return PaidService(name, lambda *values: chance(name, *values), **more)


def _answered(frame: DataFrame) -> None:
    """Have the calls of a query made, and kept."""
    eddyline.adapt(frame).collect()


def workloads(spark: SparkSession, folder: Path) -> Iterator[Workload]:
    """Yield the workloads, each with functions of its own."""
    t = posts(spark, folder)
    few = posts(spark, folder, 20_000)
    many = posts(spark, folder, 60_000)

    for share in (0.9, 0.5, 0.2, 0.05):
        one = score("one")
        f = one.function()
        yield Workload(
            f"a predicate keeps {share:g}",
            t.where(passing(share)("own") & (f("text") > 0.5)),
            (one,),
        )
    one = score("one")
    f = one.function()
    yield Workload("no other predicate", few.where(f("text") > 0.7), (one,))
    one = score("one")
    f = one.function()
    yield Workload("heavy keys", t.where(passing(0.1)("own") & (f("heavy") > 0.5)), (one,))
    one = score("one")
    f = one.function()
    yield Workload("a key of each row", many.where(passing(0.3)("own") & (f("own") > 0.5)), (one,))
    one = score("one")
    f = one.function()
    yield Workload(
        "a predicate on the key itself",
        t.where(passing(0.25)("text") & (f("text") > 0.5)),
        (one,),
    )
    one = score("one")
    f = one.function()
    alike = F.udf(lambda a, b: (chance(a) + 0.2 * chance(b)) / 1.2 < 0.3, "boolean")
    yield Workload(
        "correlated predicates",
        t.where(alike("text", "own") & passing(0.5)("text") & (f("text") > 0.5)),
        (one,),
    )
    one = score("one")
    f = one.function()
    drift = F.udf(lambda day, own: chance(own) < day / 365, "boolean")
    yield Workload(
        "a predicate that drifts with the rows",
        many.where(drift("day", "own") & (f("author", "day") > 0.5)),
        (one,),
    )
    one = score("one")
    f = one.function()
    start = F.upper(F.substring("text", 1, 9))
    yield Workload(
        "computed arguments",
        t.where(passing(0.4)("own") & (f(start, F.col("day") % 7) > 0.5)),
        (one,),
    )
    one = score("one")
    f = one.function()
    yield Workload(
        "NULL among the arguments",
        t.where(passing(0.3)("own") & (f("maybe") > 0.5)),
        (one,),
    )
    one = score("one", cost=lambda text: 1e-5 * len(text))
    f = one.function()
    yield Workload(
        "a cost by the length of a text",
        t.where(passing(0.3)("own") & (f("text") > 0.5)),
        (one,),
    )
    one = score("one", cost=lambda text: 1e-5 * len(text) ** 2)
    f = one.function()
    long = F.udf(lambda text: len(text) > 60, "boolean")
    yield Workload(
        "a cost that a predicate depends on",
        t.where(long("text") & passing(0.5)("own") & (f("text") > 0.5)),
        (one,),
    )
    one = score("one")
    kept = one.function(keep=folder / "kept", version="1")
    yield Workload(
        "a third is kept",
        t.where(passing(0.6)("own") & (kept("text") > 0.5)),
        (one,),
        partial(_answered, t.where(F.col("text") < "text 4").select(kept("text"))),
    )
    one = score("one")
    halves = one.function(keep=folder / "halves", version="1")
    yield Workload(
        "values above a native filter, half kept",
        t.where("size < 400").select("own", halves("author", "day")),
        (one,),
        partial(_answered, t.where("size < 400 AND day < 180").select(halves("author", "day"))),
    )
    one, two = score("one"), score("two")
    f, g = one.function(), two.function()
    yield Workload(
        "two functions, one after the other",
        t.where(passing(0.7)("own") & (f("text") > 0.4)).select("own", g("text")),
        (one, two),
        calls=500,
    )
    one, two = score("one"), score("two")
    f, g = one.function(), two.function()
    yield Workload(
        "two functions in one filter",
        t.where(passing(0.8)("own") & (f("text") > 0.8) & (g("author") > 0.5)),
        (one, two),
        calls=500,
    )
    one, two = score("one", cost=0.001), score("two", cost=0.01)
    f, g = one.function(), two.function()
    yield Workload(
        "a costly one where the cheap one is unsure",
        t.where(passing(0.5)("own")).select(
            "own", F.coalesce(F.when(f("text") > 0.6, f("text")), g("text"))
        ),
        (one, two),
        calls=500,
    )
    one = score("one")
    f = one.function()
    yield Workload(
        "below a join",
        t.join(spark.range(0, 3_000, 2).withColumnRenamed("id", "author"), "author").where(
            passing(0.6)("own") & (f("text") > 0.5)
        ),
        (one,),
    )
