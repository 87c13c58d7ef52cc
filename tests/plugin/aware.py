"""A program that uses Eddyline itself, in an application that has the plug-in."""

import json
import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf

import eddyline

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
said = {"adapted": [by_hand.count(), seen(by_hand)]}
with eddyline.enable(spark):
    own = filtered(1_000)
    said["enabled"] = [len(own.collect()), seen(own)]
theirs = filtered(500)
said["after"] = [len(theirs.collect()), seen(theirs)]
theirs.createOrReplaceTempView("theirs")
told = json.loads(spark.sql("SELECT json FROM eddyline_report('theirs')").collect()[0][0])
said["told"] = [block["run"]["rows_in"] for block in told["blocks"]]
sys.stdout.write(f"{json.dumps(said)}\n")
spark.stop()
