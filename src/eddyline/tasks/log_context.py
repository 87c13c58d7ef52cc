"""What Spark's log of a worker says of who has written a line: the user's function.

Where ``spark.sql.pyspark.worker.logging.enabled`` is set, each line comes with the function and
class that stand lowest on the stack except PySpark's. For what runs in an eddy that would be
Eddyline's, so here Eddyline's frames count as PySpark's do.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from itertools import pairwise
from types import FrameType
from typing import Final

_LOGGING: Final = "PYSPARK_SPARK_SESSION_UUID"
"""Set by Spark in the environment of a worker whose lines are kept."""

_SYSTEM: Final = ("eddyline.", "pyspark.")


def show_users_functions() -> None:
    """Have the lines that this task writes from now on name the user's function."""
    if _LOGGING not in os.environ:  # as with a PySpark that has no such log
        return
    from pyspark.logger.worker_io import JSONFormatterWithMarker, JsonOutput  # noqa: PLC0415

    outputs = (output for output in (sys.stdout, sys.stderr) if isinstance(output, JsonOutput))
    formatters = [output._formatter for output in outputs]  # noqa: SLF001 - there is no other way to it
    formatters += [
        handler.formatter
        for handler in logging.getLogger().handlers
        if isinstance(handler.formatter, JSONFormatterWithMarker)
    ]
    for formatter in formatters:
        formatter._context_provider = users_function  # noqa: SLF001 - likewise


def users_function() -> dict[str, str]:
    """Return the lowest function on the stack that is a user's, and its class, by Spark's names."""
    lowest: FrameType | None = None
    for frame, below in pairwise(_frames()):
        if _is_system(below) and not _is_system(frame):
            lowest = frame
    if lowest is None:
        return {}
    context = {"func_name": lowest.f_code.co_name}
    if "self" in lowest.f_locals:
        context["class_name"] = type(lowest.f_locals["self"]).__name__
    elif "cls" in lowest.f_locals:
        context["class_name"] = lowest.f_locals["cls"].__name__
    return context


def _frames() -> Iterator[FrameType]:
    frame = sys._getframe()  # noqa: SLF001 - as public as a frame is
    while frame.f_back is not None:
        frame = frame.f_back
        yield frame


def _is_system(frame: FrameType) -> bool:
    name = str(frame.f_globals.get("__name__", ""))
    if name == "__main__":
        main = sys.modules.get(name)
        if main is None or frame.f_globals is not vars(main):
            return False  # what a user's program has defined, as it comes with the function
        spec = main.__spec__  # the worker is started as a program
        name = spec.name if spec is not None else name
    return name.startswith(_SYSTEM) and ".tests." not in name
