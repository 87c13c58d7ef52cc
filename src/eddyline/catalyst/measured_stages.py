"""What adaptive execution has measured of shuffles that have a name, of actions that are over."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Final, cast

from py4j.protocol import Py4JError
from pyspark import SparkContext

from eddyline.catalyst.gateway import GONE
from eddyline.catalyst.handles import Plan
from eddyline.catalyst.pipeline import new_alone

PATIENCE: Final = 2.0
"""Seconds for which news of an action that has just ended are waited for: Spark's bus is late."""

_log: Final = logging.getLogger("eddyline")


@dataclass(frozen=True, slots=True)
class MeasuredStage:
    """The rows of a shuffle, None where Spark does not say, and their bytes in memory.

    ``outcome`` is what became of them: ``broadcast``; ``shuffled``, where what they are joined with
    was shuffled as well; ``other-broadcast``, where that was broadcast instead; or ``gone``, where
    nothing had to be joined with them. They were there ``seconds`` after the action had begun, None
    where nobody knows.
    """

    name: str
    rows: int | None
    bytes: int
    outcome: str
    seconds: float | None


class MeasuredStages:
    """Hears of the actions of a context, from now on.

    It keeps some words for each of the last 512 actions. Where nothing can be compiled, or Spark is
    of another make, nothing is known.
    """

    def __init__(self, context: SparkContext) -> None:
        """Begin to listen."""
        self._heard: Any = None
        try:
            heard = new_alone("MeasuredStages")
            heard.begin(cast("Any", context)._jsc.sc())
        except (Py4JError, TypeError) as error:  # TypeError: no such class
            _log.info("Reports do not say what large inputs have waited for: %s", error)
        else:
            self._heard = heard

    def name(self, shuffle: Plan, name: str) -> None:
        """Give a shuffle its name, without a line's end in it."""
        if self._heard is not None:
            self._heard.name(shuffle.java, name)

    def of(self, action: int) -> tuple[MeasuredStage, ...]:
        """Return what was measured in an action that is over, by its number."""
        if self._heard is None:
            return ()
        try:
            lines = str(self._heard.told(action, int(PATIENCE * 1000)))
        except GONE:
            return ()
        return tuple(map(_stage, lines.splitlines()))


def _stage(line: str) -> MeasuredStage:
    rows, size, outcome, waited, name = line.split(" ", 4)
    return MeasuredStage(
        name,
        None if int(rows) < 0 else int(rows),
        int(size),
        outcome,
        None if int(waited) < 0 else int(waited) / 1000,
    )
