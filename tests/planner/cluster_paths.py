"""A user's program on a cluster: what it prints says how the main paths went.

    python cluster_paths.py MASTER [SETTING=VALUE …] PATH…

Where a path is `send=ARCHIVE`, the package is sent to the executors from there on. It imports
nothing from the tests: it runs by itself, as a program that is submitted.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from unittest.mock import patch
from urllib.request import urlopen

from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.types import BooleanType

import eddyline
from eddyline.planner.block_registry import registry_of


@udf(BooleanType())
def even(n: int) -> bool:
    return n % 2 == 0


@udf(BooleanType())
def tenth(n: int) -> bool:
    return n % 10 == 0


@udf(BooleanType())
def third(n: int) -> bool:
    return n % 3 == 0


@udf(BooleanType())
def fifth(n: int) -> bool:
    return n % 5 == 0


def filtered(spark: SparkSession) -> DataFrame:
    return spark.range(0, 2_000, 1, 4).filter(even("id") & tenth("id"))


def a_filter(spark: SparkSession) -> str:
    fast = eddyline.adapt(filtered(spark))
    rows = fast.count()
    block = next(iter(eddyline.report(fast).to_dict()["blocks"]))
    return f"{rows} rows, {block['run']['rows_in']} reported"


def a_join(spark: SparkSession) -> str:
    left = spark.range(200).selectExpr("id AS a", "id % 20 AS k")
    right = spark.range(100).selectExpr("id AS b", "id % 20 AS k")
    joined = left.join(right, "k")
    fast = eddyline.adapt(joined.filter(even("a") & tenth(joined.a + joined.b)), joins="always")
    rows = fast.count()
    return f"{rows} rows, {len(eddyline.report(fast).to_dict()['blocks'])} block"


def a_lookup(spark: SparkSession) -> str:
    def doubled(keys: list[int]) -> list[tuple[int, int]]:
        return [(key, 2 * key) for key in keys]

    eddyline.lookup_table(
        spark, "doubles", "k bigint, v bigint", ["k"], eddyline.PythonLookup(doubled)
    )
    spark.range(0, 100, 1, 4).selectExpr("id % 10 AS k").createOrReplaceTempView("keys")
    found = eddyline.adapt(
        spark.sql("SELECT sum(v) AS s FROM keys JOIN doubles ON keys.k = doubles.k")
    )
    return f"sum {found.collect()[0]['s']}"


def enabled(spark: SparkSession) -> str:
    with eddyline.enable(spark):
        df = filtered(spark)
        rows = df.count()
        block = next(iter(eddyline.report(df).to_dict()["blocks"]))
    return f"{rows} rows, {block['run']['rows_in']} reported"


def watched(spark: SparkSession) -> str:
    with eddyline.watch(filtered(spark)) as watch:
        return f"{sum(part.rows.num_rows for part in watch)} rows"


def seen_live(spark: SparkSession) -> str:
    with eddyline.live(spark) as page:
        eddyline.adapt(filtered(spark)).count()
        with urlopen(f"{page.url}queries") as answer:  # noqa: S310 - its own
            return f"{json.load(answer)['queries'][0]['rows_in']} rows seen"


def short_tasks(spark: SparkSession) -> str:
    fast = eddyline.adapt(spark.range(0, 2_000, 1, 12).filter(third("id") & fifth("id")))
    learned = registry_of(spark.sparkContext).learned
    with patch.object(learned, "told", wraps=learned.told) as told:
        rows = fast.count()
    return f"{rows} rows, {'asked' if told.call_count else 'nobody asked'}"


PATHS: dict[str, Callable[[SparkSession], str]] = {
    "filter": a_filter,
    "join": a_join,
    "lookup": a_lookup,
    "enable": enabled,
    "short tasks": short_tasks,
    "watch": watched,
    "live": seen_live,
}


def main(master: str, *arguments: str) -> None:
    """Run the paths in their order."""
    settings = dict(each.split("=", 1) for each in arguments if each.startswith("spark."))
    spark = eddyline.session(master=master, config=settings)
    for path in arguments[len(settings) :]:
        if path.startswith("send="):
            spark.sparkContext.addPyFile(path.removeprefix("send="))
            continue
        try:
            said = PATHS[path](spark)
        except PythonException as error:
            said = str(error).splitlines()[-1]
        print(f"{path}: {said}", flush=True)  # noqa: T201 - all that it is for
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
