"""``python -m bench functions``: slow functions, beside what people write by hand.

100,000 rows with 5,000 distinct keys; a function asks a service, which answers after 20 ms, 32
requests at a time. Once for a column of the select list; once for two predicates, each with a
service of its own, of which the one written first keeps 90 % of the rows and the other 10 %.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import httpx
import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from bench import report
from bench.lookups.benchmark import IN_FLIGHT, KEYS, ROWS, seen, service
from bench.turns import Spread, in_turns

KEEPS: Final = (0.9, 0.1)
"""Part of the keys that each predicate keeps, in the order in which they are written."""

Make = Callable[[DataFrame, Sequence[str]], DataFrame]


def keeps(income: float, predicate: int) -> bool:
    """Tell whether a predicate keeps the key with this income; the two are independent."""
    key = round(income / 1.5)
    return (key * (31, 17)[predicate] % 100) < 100 * KEEPS[predicate]


def asking(url: str) -> Callable[[int], Any]:
    """Return the function as its user writes it: a client for each call under way.

    httpx looks through all connections of a client whenever a request begins or ends: with one
    client of 32 connections a request takes it several times as long as with one of its own.
    """
    free: list[httpx.AsyncClient] = []

    async def income(zip_code: int) -> float:
        client = free.pop() if free else httpx.AsyncClient()
        try:
            answer = await client.get(f"{url}/income/{zip_code}")
        finally:
            free.append(client)
        answer.raise_for_status()
        return float(answer.json()[0]["income"])

    return income


def in_pandas(url: str, in_flight: int) -> Callable[..., Any]:
    """Return what a good engineer writes: asyncio over batches, clients and a cache a task."""

    def incomes(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
        known: dict[int, float] = {}
        income = asking(url)  # with clients of its own, as they belong to an event loop

        async def ask(key: int, free: asyncio.Semaphore) -> None:
            async with free:
                known[key] = await income(key)

        async def ask_all(keys: set[int]) -> None:
            free = asyncio.Semaphore(in_flight)
            await asyncio.gather(*(ask(key, free) for key in keys))

        with asyncio.Runner() as runner:
            for batch in batches:
                runner.run(ask_all(set(batch.unique().tolist()) - known.keys()))
                yield batch.map(known)

    typed: Callable[..., Any] = F.pandas_udf(incomes, "double")  # type: ignore[attr-defined]  # PySpark's own lists no such name
    return typed


def column_of(function: Callable[..., Any], rows: DataFrame) -> DataFrame:
    """Return the rows with the function's value."""
    return rows.withColumn("income", function("zip"))


def predicate(income: F.Column, number: int) -> F.Column:  # type: ignore[name-defined]  # likewise
    """Return a predicate over a value, as Spark computes it."""
    key = F.round(income / 1.5).cast("long")
    return (key * (31, 17)[number] % 100) < 100 * KEEPS[number]


def verdict(url: str, number: int) -> Any:  # noqa: ANN401 - a UDF
    """Return a predicate that asks a service, as a concurrent function."""
    ask = asking(url)

    @eddyline.concurrent(returns="boolean", max_in_flight=IN_FLIGHT)
    async def accepts(zip_code: int) -> bool:
        return keeps(await ask(zip_code), number)

    return accepts


def filtered_by_eddy(rows: DataFrame, urls: Sequence[str]) -> DataFrame:
    """Return the rows that both predicates keep, routed."""
    first, second = (verdict(url, number) for number, url in enumerate(urls))
    return eddyline.adapt(rows.where(first("zip") & second("zip")))


def filtered_in_pandas(rows: DataFrame, urls: Sequence[str], *, best: bool = False) -> DataFrame:
    """Return the rows that both predicates keep: as written, or by hand in the best order.

    Where the order is by hand, a column of the first function stands between the two, which
    Spark computes and filters before it calls the second.
    """
    tasks = rows.sparkSession.sparkContext.defaultParallelism
    functions = [in_pandas(url, IN_FLIGHT // tasks) for url in urls]
    if not best:
        both = predicate(functions[0]("zip"), 0) & predicate(functions[1]("zip"), 1)
        return rows.where(both)
    chosen = rows.withColumn("second", functions[1].asNondeterministic()("zip"))  # type: ignore[attr-defined]  # a UDF has it
    kept = chosen.where(predicate(F.col("second"), 1)).drop("second")
    return kept.where(predicate(functions[0].asNondeterministic()("zip"), 0))  # type: ignore[attr-defined]  # likewise


def contestants(
    spark: SparkSession, rows: DataFrame, urls: Sequence[str]
) -> dict[str, dict[str, Callable[[], DataFrame]]]:
    """Return what is compared, case by case."""
    tasks = spark.sparkContext.defaultParallelism
    income = eddyline.concurrent(asking(urls[0]), returns="double", max_in_flight=IN_FLIGHT)
    by_hand = in_pandas(urls[0], IN_FLIGHT // tasks)
    return {
        "a column": {
            "eddyline": lambda: eddyline.adapt(column_of(income, rows)),
            "pandas_udf with asyncio": lambda: column_of(by_hand, rows),
        },
        "two predicates": {
            "eddyline": partial(filtered_by_eddy, rows, urls),
            "pandas_udf with asyncio": partial(filtered_in_pandas, rows, urls),
            "the same, ordered by hand": partial(filtered_in_pandas, rows, urls, best=True),
        },
    }


def main(arguments: Sequence[str]) -> int:
    """Run all contestants in turns; print and write what was measured."""
    options = report.argument_parser("bench functions", __doc__).parse_args(arguments)
    spark = eddyline.session("eddyline-bench-functions", master="local[2]")
    rows = spark.range(0, ROWS, 1, 2).selectExpr("id", f"id * 7919 % {KEYS} AS zip").cache()
    rows.count()
    found: dict[str, dict[str, list[float]]] = {}
    logs: dict[str, dict[str, list[dict[str, Any]]]] = {}
    with contextlib.ExitStack() as services:
        urls = [services.enter_context(service()) for _ in KEEPS]

        def run(case: str, name: str, make: Callable[[], DataFrame]) -> float:
            for url in urls:
                seen(url)
            began = time.perf_counter()
            columns = ["count(*)", "sum(income)"] if case == "a column" else ["count(*)"]
            counted = make().selectExpr(*columns).collect()[0][0]
            seconds = time.perf_counter() - began
            logs.setdefault(case, {})[name] = [seen(url) | {"rows": counted} for url in urls]
            return seconds

        for case, makes in contestants(spark, rows, urls).items():
            runs = {name: partial(run, case, name, make) for name, make in makes.items()}
            found[case] = in_turns(runs, options.turns)
            counts = {log[0]["rows"] for log in logs[case].values()}
            if len(counts) != 1:
                raise AssertionError(f"{case}: they differ in their rows, {counts}")
    spark.stop()
    report.write(options, "functions", {"seconds": found, "services": logs})
    for case, times in found.items():
        table = (
            _row(name, taken, times["eddyline"], logs[case][name]) for name, taken in times.items()
        )
        heading = ("", "seconds", "over eddyline", "requests", "refused")
        report.show(report.table(f"{case}: {ROWS:,} rows, {KEYS:,} keys", heading, table, ""))
    return 0


def _row(
    name: str, taken: Sequence[float], own: Sequence[float], log: Sequence[dict[str, Any]]
) -> Sequence[str]:
    ratio = Spread.of(t / e for t, e in zip(taken, own, strict=True))
    return (
        name,
        str(Spread.of(taken)),
        str(ratio),
        json.dumps([each["requests"] for each in log]),
        f"{sum(each['refused'] for each in log):,}",
    )
