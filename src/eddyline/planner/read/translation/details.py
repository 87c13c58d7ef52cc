"""What Catalyst's JSON leaves out, and who is asked for it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from eddyline.planner.read.translation.tree import Path


class EvaluationMode(StrEnum):
    """What an arithmetic expression or a cast does where it has no result; Spark's ``EvalMode``."""

    LEGACY = "LEGACY"  # wraps around, clamps, or gives NULL
    ANSI = "ANSI"  # raises
    TRY = "TRY"  # gives NULL


class Details(Protocol):
    """Fields of nodes that JSON does not show (checked with Spark 4.3), by the node's path.

    The host adapter answers from the expression in the JVM. A question costs a
    trip there, so only what matters for the translation is asked for.
    """

    def evaluation_mode(self, path: Path) -> EvaluationMode:
        """Return ``evalMode`` of an arithmetic expression or a ``Cast``: null in JSON."""
        ...

    def escape(self, path: Path) -> str:
        """Return ``escapeChar`` of a ``Like``: null in JSON."""
        ...

    def value(self, path: Path) -> object:
        """Return Catalyst's own value of a ``Literal`` that is not NULL.

        JSON shows a timestamp as local time, which one hour a year is ambiguous,
        and of binary only an address. Microseconds since 1970 and ``bytes`` are
        meant; days since 1970 for a date.
        """
        ...

    def members(self, path: Path) -> Sequence[object]:
        """Return ``hset`` of an ``InSet``, null in JSON: Catalyst's own values, None for NULL.

        Numbers, booleans and ``bytes`` as themselves, dates in days, timestamps in
        microseconds; strings and decimals as text.
        """
        ...
