"""The micro-batch that a task belongs to."""

from __future__ import annotations

from typing import NamedTuple

from pyspark import TaskContext

from eddyline.spark.query_log.joined_streams import BATCH, VERSION


class MicroBatch(NamedTuple):
    """The number of a micro-batch, and the version of the queries that it runs."""

    number: int
    version: int


def micro_batch() -> MicroBatch:
    """Return the micro-batch of this task; RuntimeError outside of one."""
    context = TaskContext.get()
    found = [context.getLocalProperty(key) if context else None for key in (BATCH, VERSION)]
    if None in found:
        raise RuntimeError("standing queries are worked in the tasks of a micro-batch")
    return MicroBatch(*(int(str(value)) for value in found))
