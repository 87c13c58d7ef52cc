"""Counters in Spark's own metrics system."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from py4j.clientserver import ClientServer
from py4j.protocol import Py4JError
from pyspark import SparkContext

from eddyline.catalyst.gateway import GONE
from eddyline.catalyst.pipeline import new_alone
from eddyline.catalyst.python_side import python_side

_log: Final = logging.getLogger("eddyline")


class ShownCounters:
    """Counters that the sinks of an application show, until :meth:`end`."""

    def __init__(self, source: Any) -> None:  # noqa: ANN401 - Py4J has no types
        """Take what sinks read, in the JVM."""
        self._source: Final = source

    def end(self) -> None:
        """Have them shown no more; does nothing where Spark has stopped."""
        with contextlib.suppress(*GONE):
            self._source.end()


def show_counters(
    names: Sequence[str], unanswered: str, values: Callable[[], Sequence[int]]
) -> ShownCounters | None:
    """Show counters of the running application as ``eddyline.<name>``; None where that fails.

    ``values`` is asked when a sink reads, in a thread of its own. The counter named ``unanswered``
    is not taken from there: it has the plans about which Python gave no answer, which is asked of
    nobody who may not answer.
    """
    if not isinstance(SparkContext._gateway, ClientServer):
        _log.info("Spark's metrics have no counters with PYSPARK_PIN_THREAD=false.")
        return None
    try:
        side = python_side()
        source = new_alone("CounterSource")
        source.begin(side, ",".join(names), unanswered, _Values(values))
    except (Py4JError, TypeError) as error:  # TypeError: no such class
        _log.info("Spark's metrics have no counters: %s", error)
        return None
    return ShownCounters(source)


class _Values:
    def __init__(self, values: Callable[[], Sequence[int]]) -> None:
        self._values = values

    def get(self) -> str:
        """Return all values, with commas between."""
        return ",".join(map(str, self._values()))

    class Java:
        """The interface of Java that this implements, as Py4J wants it told."""

        implements = ("java.util.function.Supplier",)
