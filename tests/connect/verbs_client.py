"""A client of Spark Connect that uses each verb, and tells what it saw; see ``test_connect.py``."""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from pyspark.sql.functions import col

import eddyline

spark = SparkSession.builder.getOrCreate()

udf = F.udf


@udf("boolean", useArrow=True)
def even(n: int) -> bool:
    return n % 2 == 0


@udf("boolean", useArrow=True)
def tenth(n: int) -> bool:
    return n % 10 == 0


@udf("boolean", useArrow=True)
def fails_on_odd(n: int) -> bool:
    if n % 2:
        raise ValueError(f"{n} is odd")
    return True


@udf("boolean", useArrow=False)
def pickled_third(n: int) -> bool:
    return n % 3 == 0


def rows(df: DataFrame) -> list[str]:
    return sorted(repr(tuple(row)) for row in df.collect())


def numbers(many: int = 1000) -> DataFrame:
    return spark.range(many)


def error_of(do: Callable[[], object]) -> str:
    try:
        do()
    except Exception as error:  # noqa: BLE001 - it is told
        return f"{type(error).__name__}: {error}"
    return ""


def report() -> dict[str, Any]:
    adapted = eddyline.adapt(numbers().filter(even("id") & tenth("id")), seed=3)
    before = eddyline.report(adapted).blocks[0].record is None
    frame = adapted.toPandas()
    (block,) = eddyline.report(adapted).blocks
    adapted.select((col("id") + 1).alias("more")).collect()
    twice = eddyline.report(adapted, all=True).blocks[0].record
    assert block.record is not None
    assert twice is not None
    return {
        "before": before,
        "rows": [block.record.rows_in, block.record.rows_out, len(frame)],
        "seen": [predicate.rows_in for predicate in block.record.predicates],
        "twice": twice.rows_in,
        "attributes": sorted(frame.attrs),
        "text": "even" in str(eddyline.report(adapted)),
    }


def derived() -> dict[str, Any]:
    adapted = eddyline.adapt(numbers().filter(even("id") & tenth("id")))
    on = adapted.withColumn("m", adapted.id * 2).filter(adapted.id > 500)
    on.collect()
    return {
        "rows": len(rows(on)),
        "explained": "Runs in eddies" in str(eddyline.explain(on)),
        "left": "Left to Spark" in str(eddyline.explain(on)),
        "reported": eddyline.report(on).blocks[0].record is not None,
        "again": eddyline.adapt(on) is on,
    }


def errors() -> dict[str, Any]:
    guarded = numbers().filter(fails_on_odd("id") & even("id"))
    failing = eddyline.adapt(numbers().filter(fails_on_odd("id") & pickled_third("id")))
    told = error_of(failing.collect)
    return {
        "guarded": len(rows(eddyline.adapt(guarded))),
        "raised": "is odd" in told,
        "frames": "eddyline" in told.partition("JVM stacktrace")[0],
    }


def kinds() -> dict[str, Any]:
    df = numbers(3000).filter(pickled_third("id") & even("id"))
    adapted = eddyline.adapt(df)
    same = rows(adapted) == rows(df)
    record = eddyline.report(adapted).blocks[0].record
    assert record is not None
    return {"same": same, "calls": [function.calls for function in record.functions]}


def left_in_order() -> dict[str, Any]:
    """What is left to Spark keeps its place among the kinds of functions that Spark asks."""
    label = udf(lambda n: f"{n}", "string", useArrow=True)
    odd_text = F.upper(label("id")) > "5"  # is left
    first = eddyline.adapt(numbers().filter(pickled_third("id") & even("id") & odd_text))
    last = eddyline.adapt(numbers().filter(odd_text & pickled_third("id") & even("id")))
    plain = numbers().filter(pickled_third("id") & even("id") & odd_text)
    return {
        "same": rows(first) == rows(last) == rows(plain),
        "first": [list(block.predicates) for block in eddyline.explain(first).blocks],
        "last": [list(block.predicates) for block in eddyline.explain(last).blocks],
    }


def enabled() -> dict[str, Any]:
    df = numbers().filter(even("id") & tenth("id"))
    plain = rows(df)
    adapted = eddyline.adapt(df.select("id", even("id")))
    enabling: Any = eddyline.enable(spark)
    same = rows(df) == plain
    as_it_was = rows(adapted) == rows(df.select("id", even("id")))
    twice = [block.record.tasks for block in eddyline.report(adapted).blocks if block.record]
    record = eddyline.report(df).blocks[0].record
    assert record is not None
    with redirect_stdout(io.StringIO()) as shown:
        df.show(3)
    with tempfile.TemporaryDirectory() as folder:
        df.write.parquet(f"{folder}/written")
        written = spark.read.parquet(f"{folder}/written").count()
    every = eddyline.report(df, all=True).blocks[0].record
    with eddyline.disable(spark):
        inside = len(enabling.spark.client._session_hooks)
    after = len(spark.client._session_hooks)
    with eddyline.enable(spark, policy="static"):
        pass
    hooks: list[Any] = spark.client._session_hooks
    kept = hooks == [enabling._hook]
    eddyline.disable(spark)
    assert every is not None
    return {
        "same": same,
        "adapted": [as_it_was, len(twice)],
        "rows": record.rows_in,
        "shown": shown.getvalue().count("\n"),
        "written": written,
        "every": every.rows_in,
        "hooks": [inside, after, kept, len(spark.client._session_hooks)],
    }


def cached() -> dict[str, Any]:
    df = numbers().filter(even("id") & tenth("id")).persist()
    df.count()
    above = df.filter(col("id") > 3)
    left = eddyline.adapt(above) is above and "cached" in str(eddyline.explain(above))
    adapted = eddyline.adapt(df.filter(pickled_third("id") & fails_on_odd("id")))
    of_cache = [list(block.predicates) for block in eddyline.explain(adapted).blocks]
    df.unpersist(blocking=True)
    return {"left": left, "above": of_cache, "again": eddyline.adapt(above) is not above}


def sent() -> dict[str, Any]:
    @udf("string", useArrow=True)
    def where(n: int) -> str:  # noqa: ARG001 - a function has an argument
        import eddyline  # noqa: PLC0415 - in the worker

        return str(eddyline.__file__)

    eddyline.adapt(numbers().filter(even("id") & tenth("id")))
    (row,) = spark.range(1).select(where("id")).collect()
    return {"where": row[0], "path": [place for place in sys.path if place.endswith(".zip")]}


def refused() -> dict[str, Any]:
    df = numbers().filter(even("id") & tenth("id"))
    return {
        "policy": error_of(lambda: eddyline.adapt(df, policy="best")),
        "seed": error_of(lambda: eddyline.adapt(df, seed=-1)),
        "stage": error_of(lambda: eddyline.explain(df, stage="read")),
        "learned": error_of(lambda: eddyline.enable(spark, learned="x")),
        "watch": error_of(lambda: eddyline.watch(df)),
        "pinned": str(eddyline.adapt(df, pin_order=True) is df),
    }


def remembering() -> dict[str, Any]:
    """Functions of a select list and of an aggregate, each for ten distinct arguments."""

    @udf("long", useArrow=True)
    def slow_square(n: int) -> int:
        time.sleep(0.0003)
        return n * n

    @udf("string", useArrow=False)
    def text(n: int) -> str:
        time.sleep(0.0003)
        return f"<{n}>"

    some = numbers(600).withColumn("k", col("id") % 10)
    selected = some.select("id", slow_square("k"), text("k").alias("t"), text(text("k")).alias("u"))
    grouped = some.groupBy(text("k")).agg(F.max(slow_square("k")), F.count("*"))
    fast = [eddyline.adapt(df) for df in (selected, grouped)]
    same = [rows(one) == rows(df) for one, df in zip(fast, (selected, grouped), strict=True)]
    told = [
        (function.calls + function.remembered, function.remembered > 0)
        for block in eddyline.report(fast[0]).blocks
        if block.record is not None
        for function in block.record.functions
    ]
    forgetful = eddyline.adapt(selected, remember=False) is selected
    schemas = [one.schema == df.schema for one, df in zip(fast, (selected, grouped), strict=True)]
    return {"same": same, "schemas": schemas, "told": told, "forgetful": forgetful}


SCENARIOS = (
    remembering,
    report,
    derived,
    errors,
    kinds,
    left_in_order,
    enabled,
    cached,
    sent,
    refused,
)


def main() -> None:
    with Path(os.environ["TOLD"]).open("w", encoding="utf-8") as file:
        for scenario in SCENARIOS:
            if len(sys.argv) > 1 and scenario.__name__ not in sys.argv[1:]:
                continue
            try:
                told = scenario()
            except Exception:  # noqa: BLE001 - it is told
                told = {"failed": traceback.format_exc()}
            print(json.dumps({"scenario": scenario.__name__, **told}), file=file, flush=True)


if __name__ == "__main__":
    main()
