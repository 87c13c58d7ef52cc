"""Threads of Python's that answer what the JVM asks, each over a connection of its own.

A plan is rewritten when Spark asks for it, in any thread of the JVM: one for each
``toPandas``, for each thread of Python's, for each stream. Py4J opens a connection back into Python
for each, with a thread at its end, and closes neither. So Python calls the JVM instead, from a few
threads, and is given there what to answer, over the connections of these calls. They are as many
however many threads come and go, and need no callback server.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
from dataclasses import dataclass
from typing import Any, Final, cast

from pyspark import SparkContext

from eddyline.catalyst.gateway import GONE
from eddyline.catalyst.pipeline import new_alone

THREADS: Final = 4
"""Plans that are rewritten at a time; Python runs one thread at a time anyway."""

NAME: Final = "eddyline-rewriting"
"""What the names of these threads begin with."""

_SECONDS: Final = 1.0
"""How long a thread waits after its connection has failed, before it opens another one."""


@dataclass(frozen=True, slots=True)
class RewriteCounts:
    """How many plans Python was asked about since the JVM began.

    ``failed`` are those about which it gave no answer in time, ``passed_over`` those about which it
    was not asked for a while after that; all of these ran as Spark had planned them. ``why`` says
    what was the matter last. ``reused`` are plans for which it was not asked because an equal one
    was known, one of the ``kept``.
    """

    answered: int
    failed: int
    passed_over: int
    why: str
    reused: int
    kept: int


def python_side() -> Any:  # noqa: ANN401 - Py4J has no types
    """Return the object in the JVM that asks Python, with threads of Python's that answer.

    The threads begin with the first call; a later one replaces those that something has ended.

    Raises ``Py4JError`` or TypeError where nothing can be compiled.
    """
    with _beginning:
        side, threads, process = _side_of(id(SparkContext._jvm))
        for number in range(THREADS) if os.getpid() == process else ():  # not in a fork of it
            if number == len(threads) or not threads[number].is_alive():
                threads[number : number + 1] = [_begun(side, number)]
        return side


def answers() -> RewriteCounts | None:
    """Return how Python's answers went; None where nobody has asked, or the JVM is gone."""
    if _side_of.cache_info().currsize == 0:
        return None
    side = python_side()
    try:
        answered, failed, passed_over = map(int, side.counts())
        kept, _, reused = map(int, side.rewritings().counts())
        why = str(side.lastFailure())
        return RewriteCounts(answered, failed, passed_over, why, reused, kept)
    except GONE:
        return None


def forget_rewritings() -> None:
    """Have every plan rewritten that comes from now on."""
    if _side_of.cache_info().currsize:
        with contextlib.suppress(*GONE):
            python_side().rewritings().clear()


_beginning: Final = threading.Lock()
_given: Final[list[Any]] = []  # what has started this process in the JVM


def serve_at(process: Any) -> None:  # noqa: ANN401 - Py4J has no types
    """Have threads serve the JVM that has started this process, which it knows as this."""
    _given[:] = [process]


def lasting_reporter(reports: Any) -> Any:  # noqa: ANN401 - Py4J has no types
    """Return what the JVM can ask for reports as long as it lives; None where it knows that.

    A process that the JVM has started may die and have another one after it.
    """
    return _given[0].reportedBy(reports) if _given else reports


@functools.cache
def _side_of(_gateway: int) -> tuple[Any, list[threading.Thread], int]:
    if _given:
        return _given[0].side(), [], os.getpid()
    side = new_alone("PythonSide")
    side.tend(cast("Any", SparkContext._gateway).java_gateway_server)
    return side, [], os.getpid()


def _begun(side: Any, number: int) -> threading.Thread:  # noqa: ANN401 - Py4J has no types
    name = f"{NAME}-{number}"
    thread = threading.Thread(target=_serve, args=(side, SparkContext._jvm), name=name, daemon=True)
    thread.start()
    return thread


def _serve(side: Any, jvm: object) -> None:  # noqa: ANN401 - Py4J has no types
    """Answer as long as there is this JVM."""
    while SparkContext._jvm is jvm and not _has_ended():
        try:
            side.serve()
        except GONE:
            time.sleep(_SECONDS)


def _has_ended() -> bool:
    """Whether the JVM that Python has started is gone."""
    process = getattr(SparkContext._gateway, "proc", None)
    return process is not None and process.poll() is not None
