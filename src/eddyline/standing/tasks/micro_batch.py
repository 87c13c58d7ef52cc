"""The micro-batch that a task belongs to."""

from __future__ import annotations

from typing import NamedTuple

from pyspark import TaskContext

from eddyline.standing.log.joined_streams import BATCH, SAMPLE, VERSION, WAKE


class MicroBatch(NamedTuple):
    """The number of a micro-batch, and the version of the queries that it runs.

    ``kept`` is the part of its rows that is taken; ``wakes`` says whether this task, one of all,
    lets all cells work.
    """

    number: int
    version: int
    kept: float
    wakes: bool = False


def micro_batch() -> MicroBatch:
    """Return the micro-batch of this task; RuntimeError outside of one."""
    context = TaskContext.get()
    properties = [
        context.getLocalProperty(key) if context else None for key in (BATCH, VERSION, SAMPLE)
    ]
    if context is None or None in properties:
        raise RuntimeError("standing queries are worked in the tasks of a micro-batch")
    number, version, kept = map(str, properties)
    wakes = context.getLocalProperty(WAKE) == "1" and context.partitionId() == 0
    return MicroBatch(int(number), int(version), float(kept), wakes)
