"""The daemon of workers, which has also loaded the kernels of joins before it forks the first one.

A worker of the tests lives for a minute or two. It does not look for garbage after every task:
among the test modules that it has imported that took 40 % of its time. That workers can do without
this module is tested where Spark runs in a process of its own.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import SimpleNamespace

from eddyline.tasks.daemon import (
    forget_readers,
    have_any_text_written,
    prepare,
    without_archive,
)

kept = without_archive(sys.path)  # from it PySpark would be compiled, each time
left_out = set(sys.path).difference(kept)
sys.path[:] = kept
forget_readers(left_out)

from pyspark import daemon, worker  # noqa: E402 - as installed

import tests.joins as small  # noqa: E402 - imports PySpark
from eddyline.engine.storage.few_rows import compile_at_once  # noqa: E402 - likewise


def warm() -> None:
    """Load the kernels of a join, and have them used for few rows, too."""
    compile_at_once()
    query = small.query_of([small.relation("R"), small.relation("S")], small.equal((0, 1), (1, 0)))
    small.joined(query, [[(0, key) for key in range(50)], [(key * 10**9, 0) for key in range(50)]])


def serve(*others: Callable[[], None]) -> None:
    """Load all of it, and what others load, and be the daemon."""
    prepare()
    have_any_text_written(worker)
    for load in (warm, *others):
        load()
    gc.freeze()
    vars(daemon)["gc"] = SimpleNamespace(collect=lambda: None)
    daemon.manager()


if __name__ == "__main__":
    serve()
