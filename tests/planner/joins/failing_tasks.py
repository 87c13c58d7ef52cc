"""Blocks in a session of its own whose tasks fail: a local master retries no task unless told to.

``python -m tests.planner.joins.failing_tasks FOLDER`` prints what became of each, as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

import eddyline
from tests.planner.joins.spilled_files import spilled_files
from tests.validated import SETTINGS

LARGE, SMALL, KEYS = 2000, 100, 50
"""Rows of both inputs, and how many values their keys have."""

ROW = 1777
"""The row at which what is over both inputs fails: one of the last partition."""

FIRST_ROW = 503
"""The row at which what is over one input fails: early, while it is tried on the map side."""

DEADLY = 77
"""The value at which a filter's worker dies."""

ROOM = 300_000
"""Bytes that workers may write to a file; what Numba keeps in its cache is less."""

LIMITED = f"""
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, ({ROOM}, {ROOM}))
"""
"""Python reads it when it starts, so that workers are limited and the JVM is not."""


@dataclass(frozen=True)
class Failure:
    """What fails, once, and how: a function over one input or over both."""

    name: str
    alone: bool
    how: str
    shuffled: bool


FAILURES = (
    Failure("exit on the map side", alone=True, how="exit", shuffled=True),
    Failure("kill on the reduce side", alone=False, how="kill", shuffled=True),
    Failure("raise on the reduce side", alone=False, how="raise", shuffled=True),
    Failure("exit in place", alone=False, how="exit", shuffled=False),
    Failure("raise in place", alone=False, how="raise", shuffled=False),
)


class RefusedError(Exception):
    """What is raised once."""


def stage() -> int:
    """Return the number of the stage that this task is of."""
    context = TaskContext.get()
    assert context is not None
    return context.stageId()


def fail_once(mark: str, how: str) -> None:
    """Fail, but only the first time in whatever process, and leave a mark."""
    try:
        file = os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        return
    os.write(file, str(stage()).encode())
    os.close(file)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "exit":
        os._exit(13)
    raise RefusedError("only once")


def predicates(failure: Failure, folder: Path) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return a function over one input and one over both; one of them fails once."""
    mark, last = str(folder / f"{failure.name}.failed"), str(folder / f"{failure.name}.last")
    how, alone_fails = failure.how, failure.alone

    def alone(number: int) -> bool:
        if alone_fails and number == FIRST_ROW:
            fail_once(mark, how)
        return number % 7 != 0

    def both(number: int, other: int) -> bool:
        if number == ROW:
            Path(last).write_text(str(stage()), encoding="utf-8")
            if not alone_fails:
                fail_once(mark, how)
        return (number + other) % 3 != 0

    # They look at the task, and at files, and answer the same all the same: joins may take them.
    same = eddyline.deterministic
    return F.udf(same(alone), "boolean"), F.udf(same(both), "boolean")


def joined(spark: SparkSession, failure: Failure, folder: Path) -> DataFrame:
    """Return the join of two tables."""
    alone, both = predicates(failure, folder)
    key = F.col("id") % KEYS
    large = spark.range(0, LARGE, numPartitions=4).select(F.col("id").alias("a"), key.alias("k"))
    small = spark.range(0, SMALL, numPartitions=2).select(F.col("id").alias("b"), key.alias("k"))
    frame = large.join(small, "k").filter(alone("a") & both("a", "b"))
    return frame.select("a", "b")


def expected() -> Counter[tuple[int, int]]:
    """Return the rows of the join."""
    return Counter(
        (a, b) for a in range(LARGE) if a % 7 for b in range(a % KEYS, SMALL, KEYS) if (a + b) % 3
    )


def outcome(spark: SparkSession, failure: Failure, folder: Path) -> dict[str, Any]:
    """Return what became of a join with a failure."""
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1" if failure.shuffled else "10MB")
    frame = joined(spark, failure, folder)
    adapted = eddyline.adapt(frame)
    rows = adapted.toArrow()
    found = Counter(zip(rows["a"].to_pylist(), rows["b"].to_pylist(), strict=True))
    wanted = expected()
    (block,) = eddyline.report(adapted).blocks
    assert block.record is not None
    assert block.record.join is not None
    return {
        "missing": (wanted - found).total(),
        "extra": (found - wanted).total(),
        "layout": block.layout,
        "failed_in": int((folder / f"{failure.name}.failed").read_text(encoding="utf-8")),
        "joined_in": int((folder / f"{failure.name}.last").read_text(encoding="utf-8")),
        "read": sorted(block.record.join.read),
        "rows_out": block.record.rows_out,
        "wanted": wanted.total(),
    }


def dying(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Return what became of a filter in which a worker dies in the middle, between batches."""
    mark = str(folder / "filter.failed")

    def dies_once(number: int) -> bool:
        if number == DEADLY:
            fail_once(mark, "exit")
        return number % 3 == 0 or number == DEADLY

    frame = spark.range(0, LARGE, numPartitions=2).withColumn("v", F.col("id") % 1000)
    odd = F.udf(lambda number: number % 2 == 1, "boolean")
    adapted = eddyline.adapt(frame.filter(F.udf(dies_once, "boolean")("v") & odd("v")))
    batch = "spark.sql.execution.arrow.maxRecordsPerBatch"
    spark.conf.set(batch, "100")
    found = sorted(row.id for row in adapted.collect())
    spark.conf.unset(batch)
    kept = [n for n in range(1000) if (n % 3 == 0 or n == DEADLY) and n % 2 == 1]
    return {
        "adapted": adapted is not frame,
        "died": Path(mark).exists(),
        "found": found,
        "wanted": [n + start for start in range(0, LARGE, 1000) for n in kept],
    }


def full_disk(spark: SparkSession, local: Path) -> dict[str, Any]:
    """Return what became of a join that has to spill where there is no room."""
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    one_key = F.col("id") % 1
    sides = [
        spark.range(0, 100_000, numPartitions=2).select(F.col("id").alias(n), one_key.alias("k"))
        for n in "ab"
    ]
    adapted = eddyline.adapt(sides[0].join(sides[1], "k"), joins="always", memory="64KB")
    try:
        adapted.count()
    except PySparkException as error:
        return {"error": str(error), "left": spilled_files(local)}
    return {"error": None}


def main() -> None:
    """Run them all."""
    folder = Path(sys.argv[1])
    local = folder / "local"
    (folder / "sitecustomize.py").write_text(LIMITED, encoding="utf-8")
    path = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = f"{folder}{os.pathsep}{path}".rstrip(os.pathsep)
    settings = SETTINGS | {"spark.local.dir": str(local)}
    spark = eddyline.session("failing", master="local[2,4]", config=settings)
    outcomes = {"full disk": full_disk(spark, local), "filter": dying(spark, folder)}
    for failure in FAILURES:
        outcomes[failure.name] = outcome(spark, failure, folder)
    print(json.dumps(outcomes))  # noqa: T201 - whoever started this reads it
    spark.stop()


if __name__ == "__main__":
    main()
