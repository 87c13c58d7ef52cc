"""Functions that another Python process than this one has made.

A worker sends what its functions have added to accumulators to the process that one of them
belongs to. In a process that a driver's plug-in has started (:mod:`eddyline.catalyst.attaching`),
users' functions belong to the application's own Python, or to a client elsewhere, while what tasks
record of eddies is to come here: what is made of such functions belongs to this process. It cannot
be made of functions that add to accumulators themselves, nor of those of another Python's bytecode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from pyspark import SparkContext

_ADDS: Final = b"_deserialize_accumulator"
"""What a pickle says that holds one of PySpark's accumulators."""

Probe = Callable[[str], str]
"""From a Python of workers to why it can run nothing of Eddyline's; empty where it can."""

_attached: list[tuple[SparkContext, Probe]] = []


class ForeignFunctionError(ValueError):
    """Nothing can be made of a function here; whatever calls it is left to Spark."""


def belong_to_others(context: SparkContext, probe: Probe) -> None:
    """Take note that functions in plans are not this process's, which has this context."""
    _attached[:] = [(context, probe)]


def require_usable(commands: Iterable[bytes], function: Any) -> None:  # noqa: ANN401 - as below
    """Raise ``ForeignFunctionError`` where nothing can be made of functions that run as this one.

    It is asked nothing where functions are this process's own.
    """
    if not _attached:
        return
    context, probe = _attached[0]
    version = str(function.pythonVer())
    if version != context.pythonVer:
        raise ForeignFunctionError(
            f"its functions are those of Python {version}, and Eddyline's process runs Python "
            f"{context.pythonVer}: spark.eddyline.python names another one"
        )
    if any(_ADDS in command for command in commands):
        raise ForeignFunctionError(
            "a function adds to an accumulator of the application's own Python"
        )
    if why := probe(str(function.pythonExec())):
        raise ForeignFunctionError(why)


def accumulator_for(function: Any) -> Any:  # noqa: ANN401 - Py4J has no types
    """Return what gets the updates of a function that is made of one of the application's."""
    return _attached[0][0]._javaAccumulator if _attached else function.accumulator()
