"""Applications with an event log, one after the other in a process, for ``test_event_log``.

Run with a folder. Each has a folder in it, and writes what ``eddyline.report`` says of its actions
into ``said.json`` there, and what sinks of Spark's metrics and OpenTelemetry show.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import udf

import eddyline

ROWS = 400
THREADS = 4

SINK = "spark.metrics.conf.*.sink.prometheusServlet"
SETTINGS = {
    "spark.eventLog.enabled": "true",
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    f"{SINK}.class": "org.apache.spark.metrics.sink.PrometheusServlet",
    f"{SINK}.path": "/metrics/prometheus",
}


def even(number: int) -> bool:
    return number % 2 == 0


def third(number: int) -> bool:
    return number % 3 == 0


def picky(number: int) -> bool:
    if number == ROWS - 4:  # in the last of many tasks: of others there are records by then
        raise ValueError("not this one")
    return number % 3 == 0


def asked(
    spark: SparkSession, *functions: Callable[..., bool], rows: int = ROWS, tasks: int = 2
) -> DataFrame:
    df = spark.range(0, rows, numPartitions=tasks)
    condition: Column | None = None
    for function in functions or (even, third):
        called = udf(function, "boolean")("id")
        condition = called if condition is None else condition & called
    assert condition is not None
    return df.filter(condition)


def prometheus(spark: SparkSession) -> dict[str, int] | None:
    """Return Eddyline's counters as the servlet shows them; None where there is no such sink."""
    port = str(spark.sparkContext.uiWebUrl).rpartition(":")[2]
    try:
        with urlopen(f"http://127.0.0.1:{port}/metrics/prometheus/") as answer:
            lines = answer.read().decode().splitlines()
    except HTTPError:
        return None
    found = {}
    for line in lines:
        name, _, value = line.partition(" ")
        _, mark, counter = name.partition("_driver_eddyline_")
        if mark:
            found[counter.partition("_Count")[0]] = int(value)
    return found


def open_telemetry(spark: SparkSession) -> list[dict[str, dict[str, Any]]] | None:
    """Return what a reader sees, read twice, then after a stop; None without an SDK."""
    try:
        from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415 - it may be missing
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader  # noqa: PLC0415
    except ModuleNotFoundError:
        return None
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])

    def read() -> dict[str, dict[str, Any]]:
        data: Any = reader.get_metrics_data()
        if data is None:
            return {}
        return {
            metric.name: {
                "unit": metric.unit,
                "values": [
                    [dict(point.attributes), point.value] for point in metric.data.data_points
                ],
            }
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    with eddyline.telemetry(spark, provider=provider), eddyline.telemetry(provider=provider):
        seen = [read(), read()]
    with eddyline.telemetry(spark, provider=provider):
        seen.append(read())
    seen.append(read())
    provider.shutdown()
    return seen


def joined(spark: SparkSession) -> DataFrame:
    one = spark.range(60).selectExpr("id AS k", "id AS v").filter(udf(even, "boolean")("v"))
    other = spark.range(60).selectExpr("id AS k", "id * 3 AS w").filter(udf(third, "boolean")("w"))
    return one.join(other, "k").filter(udf(lambda v, w: v < w, "boolean")("v", "w"))


def looked_up_or_scanned(spark: SparkSession) -> DataFrame:
    """Return a join in which no eddy runs: keys are asked for, as a scan would take too long."""
    eddyline.lookup_table(
        spark,
        "squares",
        "number long, square long",
        ["number"],
        eddyline.PythonLookup(lambda keys: [(key, key * key) for key in keys]),
        key=["number"],
        scan=spark.range(ROWS).selectExpr("id AS number", "id * id AS square"),
        scan_seconds=1_000.0,
    )
    few = spark.range(3).withColumnRenamed("id", "number")
    return eddyline.adapt(few.join(spark.table("squares"), "number"))


def begun(folder: Path, settings: dict[str, str]) -> SparkSession:
    folder.mkdir()
    log = {"spark.eventLog.dir": folder.as_uri()}
    spark = eddyline.session("logged", master="local[2]", config=SETTINGS | log | settings)
    spark.sparkContext.setLogLevel("OFF")
    return spark


def ended(folder: Path, said: dict[str, Any], spark: SparkSession) -> None:
    """End at once, as a job does."""
    (folder / "said.json").write_text(json.dumps(said), encoding="utf-8")
    spark.stop()


def one_action(folder: Path, settings: dict[str, str]) -> None:
    """Adapt one DataFrame, and a join with a table that is looked up or scanned."""
    spark = begun(folder, settings)
    fast = eddyline.adapt(asked(spark))
    fast.collect()
    reports = [eddyline.report(fast).to_dict()]
    shown = prometheus(spark)
    chosen = looked_up_or_scanned(spark)
    chosen.collect()
    reports.append(eddyline.report(chosen).to_dict())
    ended(folder, {"reports": reports, "prometheus": shown}, spark)


def many_actions(folder: Path) -> None:
    """Run actions of all kinds."""
    spark = begun(folder, {})
    said: dict[str, Any] = {"prometheus before": prometheus(spark)}
    reports: list[Any] = []
    said["reports"] = reports

    def noted(df: DataFrame) -> None:
        reports.append(eddyline.report(df).to_dict())

    with eddyline.enable(spark):
        counted = asked(spark)
        counted.count()
        noted(counted)
        said["prometheus"] = prometheus(spark)
        both = asked(spark).groupBy("id").count().filter(udf(even, "boolean")("count"))
        both.collect()
        noted(both)
        spark.range(5).count()  # no eddy runs in it
        several = joined(spark)
        several.collect()
        noted(several)
        said["telemetry"] = open_telemetry(spark)
    said["prometheus after"] = prometheus(spark)
    fast = eddyline.adapt(asked(spark, third, even))
    fast.collect()
    noted(fast)
    fast.count()
    noted(fast)
    try:
        eddyline.adapt(asked(spark, even, picky, tasks=8)).collect()
    except PySparkException as error:
        said["error"] = str(error)
    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(lambda _: fast.count(), range(2 * THREADS)))
    last = eddyline.adapt(asked(spark, even, third, rows=100))
    last.collect()
    noted(last)
    ended(folder, said, spark)


def main(folder: Path) -> None:
    """Run the applications."""
    many_actions(folder / "many")
    one_action(folder / "always", {"spark.eddyline.metrics": "true"})
    off = {"spark.eddyline.eventLog": "false", "spark.eddyline.metrics": "false"}
    one_action(folder / "off", off | {"spark.eventLog.rolling.enabled": "false"})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
