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
from rich.console import Console

import eddyline
from eddyline.blocks.filter_block import FilterBlock
from eddyline.connect.client_book import book_of

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
    kept = hooks == [enabling._own]
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


def ended_out_of_order() -> dict[str, Any]:
    """A block that ends while another one is at work, which was begun later, has ended for good."""
    first, second = eddyline.enable(spark), eddyline.enable(spark, policy="static")
    df = numbers().filter(even("id") & tenth("id"))
    at_work = []
    for ending in (first, second):
        ending.__exit__(None, None, None)
        before = len(eddyline.report(df).blocks)
        df.collect()
        at_work.append([before, len(spark.client._session_hooks)])
    with first, first:  # begins again, and ends when it was left twice
        with first:
            pass
        inside = len(spark.client._session_hooks)
    return {"at_work": at_work, "inside": inside, "after": len(spark.client._session_hooks)}


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

    @udf("long", useArrow=True)
    def frozen(n: int) -> int:  # noqa: ARG001 - likewise
        import gc  # noqa: PLC0415 - likewise

        return gc.get_freeze_count()

    eddyline.adapt(numbers().filter(even("id") & tenth("id")))
    (row,) = spark.range(1).select(where("id")).collect()
    tries = (spark.range(1).select(frozen("id")).collect()[0][0] for _ in range(10))
    return {
        "where": row[0],
        "path": [place for place in sys.path if place.endswith(".zip")],
        "frozen": any(tries),
    }


def refused() -> dict[str, Any]:
    df = numbers().filter(even("id") & tenth("id"))
    return {
        "policy": error_of(lambda: eddyline.adapt(df, policy="best")),
        "seed": error_of(lambda: eddyline.adapt(df, seed=-1)),
        "stage": error_of(lambda: eddyline.explain(df, stage="read")),
        "keep": error_of(lambda: eddyline.enable(spark, keep="x")),
        "learned": error_of(lambda: eddyline.enable(spark, learned=3)),  # type: ignore[arg-type]
        "watch": error_of(lambda: eddyline.watch(df)),
        "pinned": str(eddyline.adapt(df, pin_order=True) is df),
        "joins": error_of(lambda: eddyline.adapt(df, joins="some")),
        "memory": error_of(lambda: eddyline.enable(spark, memory="1XB")),
        "no frame": error_of(lambda: eddyline.explain(df.groupBy("id"))),  # type: ignore[call-overload]
        "no column": error_of(lambda: eddyline.adapt(col("id"))),  # type: ignore[arg-type]
        "no session": error_of(lambda: eddyline.learned(df)),  # type: ignore[arg-type]
        "no progress": error_of(lambda: eddyline.progress(df)),  # type: ignore[arg-type]
        **stopped(),
    }


def stopped() -> dict[str, str]:
    """What is said of a session that was stopped."""
    other = spark.newSession()
    df = other.range(3).filter(even("id") & tenth("id"))
    adapted = eddyline.adapt(df)
    adapted.collect()
    other.stop()
    return {
        "stopped frame": error_of(lambda: eddyline.adapt(df)),
        "stopped session": error_of(lambda: eddyline.enable(other)),
        "report": error_of(lambda: eddyline.report(adapted)),
        "disable": error_of(lambda: eddyline.disable(other)),
    }


def noted(folder: str) -> Callable[[int], float]:
    """Return a function that notes its calls in a folder, as one process does for itself."""

    def score(n: int) -> float:
        with Path(folder, str(os.getpid())).open("ab") as notes:
            notes.write(b".")
        return float(n % 100)

    return score


def noted_in(folder: str) -> int:
    """Return how many calls were noted, and forget them."""
    files = list(Path(folder).iterdir())
    calls = sum(file.stat().st_size for file in files)
    for file in files:
        file.unlink()
    return calls


def added_columns() -> dict[str, Any]:
    """Filters on columns that functions make, which are handed on."""
    label = udf(lambda x: f"<{x}>", "string", useArrow=True)
    in_sixties = udf(lambda text: text.startswith("<6"), "boolean", useArrow=True)
    with tempfile.TemporaryDirectory() as folder:
        score = udf(noted(folder), "double", useArrow=True)
        some = numbers(2000).withColumn("s", score("id")).withColumn("u", col("s") * 2)
        some = some.filter(col("u") > 90).withColumn("t", label("s")).filter(col("id") > 10)
        df = some.filter(in_sixties("t") & even("id")).withColumn("v", some.s + 1)
        plain = rows(df)
        calls = [noted_in(folder)]
        adapted = eddyline.adapt(df)
        same = rows(adapted) == plain and adapted.schema == df.schema
        calls.append(noted_in(folder))
        limited = rows(adapted.select("s", "t", adapted.v).filter(col("id") < 500))
        calls.append(noted_in(folder))
        texts = [len(block.predicates) for block in eddyline.explain(adapted).blocks]
        record = eddyline.report(adapted).blocks[0].record
        joined = df.join(numbers(100).withColumnRenamed("id", "other"), col("s") == col("other"))
        over_join = eddyline.adapt(joined.filter(in_sixties("t")))
        both = rows(over_join) == rows(joined.filter(in_sixties("t")))
        noted_in(folder)
        expected = rows(df.select("s", "t", df.v).filter(col("id") < 500))
    return {
        "same": same and both and limited == expected,
        "rows": len(plain),
        "calls": calls,
        "predicates": texts,
        "reported": record is not None,
    }


def fewer_calls() -> dict[str, Any]:
    """Queries in which a function need not be called as often as plain Spark does."""
    with tempfile.TemporaryDirectory() as folder:
        score = udf(noted(folder), "double", useArrow=True)
        some = numbers(2000).withColumn("k", col("id") % 10)
        queries = {
            "handed": some.filter(score("id") > 49).select("id", score("id").alias("s")),
            "late": some.select("id", score("id").alias("s")).orderBy(F.desc("id")).limit(10),
            "alone": some.filter(score("k") > 4),
        }
        told: dict[str, Any] = {}
        for name, df in queries.items():
            plain = [rows(df), noted_in(folder)]
            for remember in (True, False):
                fast = eddyline.adapt(df, remember=remember)
                same = rows(fast) == plain[0]
                told.setdefault(name, [same, plain[1]]).append(noted_in(folder))
                told[name][0] &= same
        with redirect_stdout(io.StringIO()) as planned:
            eddyline.adapt(queries["late"]).explain()
    return {**told, "first": "TakeOrdered" in planned.getvalue().partition("EvalPython")[2]}


def concurrent() -> dict[str, Any]:
    """Concurrent functions, which each worker process calls for its tasks."""
    with tempfile.TemporaryDirectory() as folder:
        note = noted(folder)

        @eddyline.concurrent(returns="long", max_in_flight=8)
        async def doubled(n: int) -> int:
            import asyncio  # noqa: PLC0415 - in the worker

            note(n)
            await asyncio.sleep(0.005)
            return n * 2

        @eddyline.concurrent(returns="string", batch=10, on_error="null", retries=0)
        def named(many: list[int]) -> list[str]:
            if 7 in many:
                raise ValueError("seven")
            return [f"<{n}>" for n in many]

        some = numbers(400).withColumn("k", col("id") % 20)
        filtered = some.filter((doubled("k") > 10) & even("id"))
        plain = sorted(repr((n, n % 20)) for n in range(400) if n % 20 * 2 > 10 and n % 2 == 0)
        adapted = eddyline.adapt(filtered)
        same = [rows(adapted) == plain]
        calls = [noted_in(folder)]
        explained = str(eddyline.explain(adapted))
        selected = some.select("id", doubled("k"), F.upper(named("k")).alias("n"))
        fast = eddyline.adapt(selected)
        wanted = [repr((n, n % 20 * 2, None if n % 20 == 7 else f"<{n % 20}>")) for n in range(400)]
        same.append(rows(fast) == sorted(wanted))
        same.append(fast.columns == selected.columns == ["id", "doubled(k)", "n"])
        calls.append(noted_in(folder))
        added = some.withColumn("v", doubled("k")).filter(col("v") > 30)
        more = eddyline.adapt(added)
        same.append(
            rows(more) == sorted(repr((n, n % 20, n % 20 * 2)) for n in range(400) if n % 20 > 15)
        )
        calls.append(noted_in(folder))
        blocks = len(eddyline.explain(more).blocks)
        few = eddyline.adapt(some.withColumn("v", doubled("k")).drop("k").limit(3))
        limits = [len(few.collect()), *(block.limit for block in sent_blocks(few))]
        with eddyline.enable(spark):
            same.append(rows(filtered) == plain)
            other = numbers(3).withColumnRenamed("id", "other")
            placed = some.join(other, doubled("k") == col("other"))
            misplaced = error_of(placed.collect)
        return {
            "same": same,
            "calls": calls,
            "blocks": blocks,
            "limits": limits,
            "explained": "called by each worker, for 8 values" in explained,
            "misplaced": misplaced,
            "alone": error_of(filtered.collect),
            "rate": error_of(lambda: eddyline.concurrent(rate=3.0, returns="long")(abs)),
            "raised": error_of(eddyline.adapt(some.select(failing("k"))).collect),
        }


@eddyline.concurrent(returns="long", retries=0)
def failing(n: int) -> int:
    raise KeyError(f"no {n}")


def sent_blocks(df: DataFrame) -> list[FilterBlock]:
    plan: Any = df
    relation = plan._plan.plan(plan._session.client)
    return [sent.block for sent in book_of(spark.client).blocks_in(relation)]


def learning() -> dict[str, Any]:
    """What tasks report later blocks begin with, and so do those of another application."""
    df = numbers(4000).filter(tenth("id") & pickled_third("id"))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "learned.json")
        eddyline.enable(spark, learned=file)
        df.collect()
        eddyline.disable(spark)
        kept = json.loads(file.read_text("utf-8"))
    (block,) = sent_blocks(eddyline.adapt(df))
    known = eddyline.learned(spark)
    return {
        "kept": len(kept["predicates"]) >= 2,
        "known": "tenth" in str(known),
        "priors": [round(prior.selectivity, 1) for prior in block.priors if prior is not None],
    }


def settings() -> dict[str, Any]:
    """What a session has not set is as the server has it by default."""

    @udf("boolean", useArrow=True)
    def is_bytes(content: bytes) -> bool:
        return type(content) is bytes

    @udf("long", useArrow=True)
    def largest(n: int) -> int:
        return (1 << 63) - 1 - n

    content = numbers().withColumn("content", F.encode(col("id").cast("string"), "utf-8"))
    bytes_only = content.filter(is_bytes("content") & even("id"))
    overflowing = numbers().filter((largest("id") + 1 > 0) & even("id"))
    texts = [error_of(df.collect) for df in (overflowing, eddyline.adapt(overflowing))]
    return {
        "bytes": [bytes_only.count(), eddyline.adapt(bytes_only).count()],
        "blocks": len(eddyline.explain(eddyline.adapt(overflowing)).blocks),
        "overflow": ["overflow" in text.lower() for text in texts],
    }


def progress() -> dict[str, Any]:
    """Actions are shown while they run, by what the server says of their tasks."""

    @udf("boolean", useArrow=True)
    def slow(n: int) -> bool:
        time.sleep(3.0)  # the server tells of tasks every two seconds
        return n > 1

    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    display = eddyline.progress(spark, console=console)
    with display:
        numbers(2).filter(slow("id")).collect()
    handlers = len(spark.client._progress_handlers)
    display.stop()
    return {"shown": console.file.getvalue(), "handlers": handlers}  # type: ignore[attr-defined]


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
    added_columns,
    fewer_calls,
    concurrent,
    progress,
    learning,
    settings,
    report,
    derived,
    errors,
    kinds,
    left_in_order,
    enabled,
    ended_out_of_order,
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
