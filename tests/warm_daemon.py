"""The daemon of workers, which has also loaded the kernels of joins before it forks the first one.

That workers can do without this module is tested where Spark runs in a process of its own.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

from eddyline.tasks.daemon import have_any_text_written, leave_archive_out, prepare
from eddyline.tasks.garbage_collection import collect_cheaply

leave_archive_out()  # from it PySpark would be compiled, each time

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
    collect_cheaply()
    daemon.manager()


if __name__ == "__main__":
    serve()
