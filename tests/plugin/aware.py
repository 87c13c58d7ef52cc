"""A program that uses Eddyline itself, in an application that has the plug-in."""

import json
import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf

import eddyline
from eddyline.planner.session_rules import tell_limits

spark = SparkSession.builder.getOrCreate()


@udf("boolean")
def even(n: int) -> bool:
    return n % 2 == 0


@udf("boolean")
def tenth(n: int) -> bool:
    return n % 10 == 0


def filtered(rows: int) -> DataFrame:
    return spark.range(0, rows, 1, 4).filter(even("id") & tenth("id"))


def seen(frame: DataFrame) -> list[int]:
    """Rows that came to the blocks of a DataFrame, as this program knows."""
    blocks = eddyline.report(frame).to_dict()["blocks"]
    return [block["run"]["rows_in"] for block in blocks]


by_hand = eddyline.adapt(filtered(2_000))
said: dict[str, object] = {"adapted": [by_hand.count(), seen(by_hand)]}
with eddyline.enable(spark):
    own = filtered(1_000)
    said["enabled"] = [len(own.collect()), seen(own)]
theirs = filtered(500)
said["after"] = [len(theirs.collect()), seen(theirs)]
theirs.createOrReplaceTempView("theirs")
told = json.loads(spark.sql("SELECT json FROM eddyline_report('theirs')").collect()[0][0])
said["told"] = [block["run"]["rows_in"] for block in told["blocks"]]


def in_eddies(rows: int) -> bool:
    """Whether a query that is new runs in an eddy, whoever adapts it."""
    return "eddy[" in filtered(rows)._jdf.queryExecution().optimizedPlan().toString()


with eddyline.disable(spark):
    said["off in a block"] = in_eddies(301)
said["on after it"] = in_eddies(302)
tell_limits(spark)
said["on beside what tells of limits"] = in_eddies(303)
eddyline.disable(spark)
said["off"] = in_eddies(304)
with eddyline.enable(spark):
    said["enabled again"] = in_eddies(305)
with eddyline.disable(spark):
    said["off in a block again"] = in_eddies(306)
said["off still"] = in_eddies(307)
spark.sql("SET spark.eddyline.enabled=true")
said["set"] = in_eddies(308)
sys.stdout.write(f"{json.dumps(said)}\n")
spark.stop()
