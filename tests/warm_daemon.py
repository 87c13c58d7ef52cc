"""PySpark's daemon, which has imported all that workers import before it forks the first one.

A worker of the tests lives for a minute or two, needs 1.6 s to import pandas and the engine and
to load a kernel, and collects garbage after every task, among all that was imported. Forked from
this daemon it has everything, frozen: the workers of ``test_shapes.py`` take 19 s of CPU instead
of 95. That workers can do without is tested where Spark runs in a process of its own.
"""

from __future__ import annotations

import gc

import pandas as pd
from pyspark.daemon import manager

import eddyline.spark.worker.filter_task
import eddyline.spark.worker.join_task
import tests.joins as small

__all__ = ["eddyline", "pd"]


def warm() -> None:
    """Load the kernels of a join."""
    query = small.query_of([small.relation("R"), small.relation("S")], small.equal((0, 1), (1, 0)))
    small.joined(query, [[(0, key) for key in range(50)], [(key * 10**9, 0) for key in range(50)]])


if __name__ == "__main__":
    warm()
    gc.freeze()
    manager()
