"""A job that never heard of Eddyline: prints rows and plans, one JSON a line.

It asks in SQL what a client would ask, and has each query run plainly, too.
"""

import json
import sys
import threading
from collections.abc import Callable
from typing import Any
from urllib.request import urlopen

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf

spark = SparkSession.builder.getOrCreate()
jvm: Any = spark._jvm


@udf("boolean")
def even(n: int) -> bool:
    return n % 2 == 0


@udf("boolean")
def tenth(n: int) -> bool:
    return n % 10 == 0


@udf("long")
def doubled(n: int) -> int:
    return 2 * n


def say(**what: object) -> None:
    sys.stdout.write(f"{json.dumps(what)}\n")
    sys.stdout.flush()


def both(name: str, make: Callable[[SparkSession], DataFrame]) -> None:
    """The rows of a query with the plug-in, and without it."""
    rows = []
    for setting in ("true", "false"):
        spark.sql(f"SET spark.eddyline.enabled={setting}")
        frame = make(spark)
        plan = frame._jdf.queryExecution().optimizedPlan().toString()
        rows.append((sorted(map(str, frame.collect())), "eddy[" in plan))
    spark.sql("SET spark.eddyline.enabled=true")
    say(
        name=name,
        equal=rows[0][0] == rows[1][0],
        count=len(rows[0][0]),
        eddy=[rows[0][1], rows[1][1]],
    )


def filtered(session: SparkSession) -> DataFrame:
    return session.range(0, 2_000, 1, 4).filter(even("id") & tenth("id"))


def joined(session: SparkSession) -> DataFrame:
    left = session.range(200).selectExpr("id AS a", "id % 20 AS k")
    right = session.range(100).selectExpr("id AS b", "id % 20 AS k")
    return left.join(right, "k").filter(even("a") & tenth(left.a + right.b))


both("filter", filtered)
both("join", joined)
both(
    "nested", lambda session: session.range(300).filter(even(doubled("id")) & tenth(doubled("id")))
)
both("select", lambda session: session.range(300).select(doubled(doubled("id") % 7).alias("d")))

spark.udf.register("even", even)
spark.udf.register("tenth", tenth)
both("sql", lambda session: session.sql("SELECT id FROM range(500) WHERE even(id) AND tenth(id)"))

# An accumulator belongs to this process, and so do its counts.
seen = spark.sparkContext.accumulator(0)


@udf("boolean")
def counted(n: int) -> bool:
    seen.add(1)
    return n % 3 == 0


both("accumulator", lambda session: session.range(300).filter(counted("id") & even("id")))
say(name="accumulated", count=seen.value)
both("other", filtered)  # after it

# What anybody can ask.
filtered(spark).createOrReplaceTempView("some")
spark.table("some").collect()
report = spark.sql("SELECT * FROM eddyline_report('some')").collect()[0]
data = json.loads(report["json"])
say(
    name="report", text=report["report"], rows=[block["run"]["rows_in"] for block in data["blocks"]]
)
explained = spark.sql("SELECT * FROM eddyline_explain('SELECT * FROM some')").collect()[0]
told = json.loads(explained["json"])
say(name="explain", text=explained["explain"], found={key: len(told[key]) for key in told})
url = spark.sql("SELECT live FROM eddyline_live()").collect()[0][0]
again = spark.sql("SELECT live FROM eddyline_live()").collect()[0][0]
spark.table("some").count()
with urlopen(url) as page:  # noqa: S310 - the page of the job itself
    say(name="live", same=url == again, page=len(page.read()))
try:
    spark.sql("SELECT * FROM eddyline_explain('DROP VIEW some')").collect()
except Exception as error:  # noqa: BLE001 - whatever Spark makes of it
    say(name="command", text=str(error))
say(name="still there", count=spark.table("some").count())
spark.sql("SET spark.eddyline.policy=nonsense")
both("nonsense", filtered)
spark.sql("RESET spark.eddyline.policy")


# Many sessions, each with threads of its own.
def process() -> dict[str, Any]:
    return dict(json.loads(spark.sql("SELECT json FROM eddyline_status()").collect()[0][0]))


wrong: list[int] = []


def of_session(number: int) -> None:
    session = spark.newSession()
    for query in range(3):
        made = udf(lambda n, number=number, query=query: n % (2 + number + query) == 0, "boolean")
        if session.range(100).filter(even("id") & made("id")).count() != sum(
            n % 2 == 0 and n % (2 + number + query) == 0 for n in range(100)
        ):
            wrong.append(number)


workers = [threading.Thread(target=of_session, args=(number,)) for number in range(8)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
say(name="threads", wrong=wrong, process=process())
default = jvm.org.apache.spark.sql.SparkSession.getDefaultSession().get()
say(name="default", own=default.sessionUUID() == spark._jsparkSession.sessionUUID())
spark.stop()
