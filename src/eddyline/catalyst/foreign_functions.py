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

_contexts: list[SparkContext] = []


class ForeignFunctionError(ValueError):
    """Nothing can be made of a function here; whatever calls it is left to Spark."""


def belong_to_others(context: SparkContext) -> None:
    """Take note that functions in plans are not this process's, which has this context."""
    _contexts[:] = [context]


def require_usable(commands: Iterable[bytes], version: Callable[[], Any]) -> None:
    """Raise ``ForeignFunctionError`` where nothing can be made of functions of a Python's version.

    The ``version`` is only asked for where it matters.
    """
    if not _contexts:
        return
    own, theirs = _contexts[0].pythonVer, str(version())
    if theirs != own:
        raise ForeignFunctionError(
            f"its functions are those of Python {theirs}, and Eddyline's process runs Python "
            f"{own}: spark.eddyline.python names another one"
        )
    if any(_ADDS in command for command in commands):
        raise ForeignFunctionError(
            "a function adds to an accumulator of the application's own Python"
        )


def accumulator_for(function: Any) -> Any:  # noqa: ANN401 - Py4J has no types
    """Return what gets the updates of a function that is made of one of the application's."""
    return _contexts[0]._javaAccumulator if _contexts else function.accumulator()
