"""A job on a cluster that never heard of Eddyline: prints rows, plans and a report."""

import json
import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

spark = SparkSession.builder.getOrCreate()


@udf("boolean")
def even(n: int) -> bool:
    return n % 2 == 0


@udf("boolean")
def tenth(n: int) -> bool:
    return n % 10 == 0


rows = spark.range(0, 2_000, 1, 4).filter(even("id") & tenth("id"))
left = spark.range(200).selectExpr("id AS a", "id % 20 AS k")
right = spark.range(100).selectExpr("id AS b", "id % 20 AS k")
joined = left.join(right, "k").filter(even("a") & tenth(left.a + right.b))
rows.createOrReplaceTempView("some")
said = {
    "counts": [rows.count(), joined.count(), len(spark.table("some").collect())],
    "eddy": [
        "eddy[" in frame._jdf.queryExecution().optimizedPlan().toString()
        for frame in (rows, joined)
    ],
    "report": spark.sql("SELECT report FROM eddyline_report('some')").collect()[0][0],
}
sys.stdout.write(f"{json.dumps(said)}\n")
spark.stop()
