"""A job during which the process that adapts its queries is killed and stopped.

Prints what happened, one JSON a line, and waits in the end for whoever kills its JVM.
"""

import json
import os
import signal
import sys
import time

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

spark = SparkSession.builder.getOrCreate()


@udf("boolean")
def even(n: int) -> bool:
    return n % 2 == 0


@udf("boolean")
def tenth(n: int) -> bool:
    return n % 10 == 0


def say(what: dict[str, object]) -> None:
    sys.stdout.write(f"{json.dumps(what)}\n")
    sys.stdout.flush()


def process() -> int:
    """The process that answers, as soon as there is one."""
    until = time.monotonic() + 60
    while True:
        try:
            status = spark.sql("SELECT json FROM eddyline_status()").collect()[0][0]
            return int(json.loads(status)["pid"])
        except Exception:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def query(name: str, number: int, **more: object) -> None:
    """Run a query that is new each time, and say how it went."""
    begun = time.monotonic()
    frame = spark.range(number).filter(even("id") & tenth("id"))
    rows = frame.count()
    took = time.monotonic() - begun
    say({"name": name, "right": rows == -(-number // 10), "took": took} | more)


def is_gone(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


query("first", 100)
first = process()
os.kill(first, signal.SIGKILL)
query("killed", 110)
second = process()
query("again", 120, other=second != first)
os.kill(second, signal.SIGSTOP)
query("stopped", 130)
query("after", 140, gone=is_gone(second))
third = process()
query("third", 150, other=third != second)
say({"name": "pids", "java": os.getppid(), "python": third})
sys.stdin.read()
