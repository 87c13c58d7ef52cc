"""Garbage that workers of PySpark's look for after each task: among what has come since.

The daemon's loop collects all garbage before a worker can have its next task, and looks at all
that was imported: 40 to 60 ms with pandas, pyarrow and the eddy, more with a user's libraries.
"""

from __future__ import annotations

import gc
import sys
from types import SimpleNamespace
from typing import Any

_DAEMONS = ("__main__", "pyspark.daemon")
"""Modules whose loop a worker may be in: the program itself, or what a daemon of ours calls."""


def look_among_what_is_new() -> None:
    """Have this worker leave out of its collections what it had before, from the next one on.

    Does nothing in a process that is no worker of a daemon.
    """
    for name in _DAEMONS:
        daemon: Any = sys.modules.get(name)
        if hasattr(daemon, "manager") and getattr(daemon, "gc", None) is gc:
            daemon.gc = SimpleNamespace(**vars(gc) | {"collect": Collections().collect})


class Collections:
    """Collections after tasks, of which a few keep for good what they have found in use.

    These are the first, the second, the fourth and so on: a worker imports most for its first
    tasks, and what is kept is not looked at if only a circle of references holds it later.
    """

    def __init__(self) -> None:
        self._tasks = 0

    def collect(self) -> int:
        """Collect garbage after a task, and return how many objects that were."""
        found = gc.collect()
        self._tasks += 1
        if self._tasks & (self._tasks - 1) == 0:  # a power of two
            gc.freeze()
        return found
