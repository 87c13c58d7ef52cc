"""Why a predicate over Python functions stays where Spark put it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final


class DeclineReason(StrEnum):
    """The reasons; a member's value is what users read."""

    FEWER_THAN_TWO_TERMS = "there are fewer than two terms to reorder"
    NON_DETERMINISTIC = "it is not deterministic"
    UNSUPPORTED_TYPE = "a type cannot be carried to an eddy"
    UNSUPPORTED_FUNCTION = "a function cannot be called exactly as Spark calls it"
    STATEFUL_ITERATOR = "an iterator function may carry state from row to row"
    UNTRANSLATABLE = "an expression is not understood"
    MAY_THROW = "an expression could raise an error that a filter guards against"
    JOIN_KEY = "it makes the key of a join, so that Spark computes it below"
    MUCH_TO_MOVE = "it is asked about few of the rows that a join in an eddy would have to shuffle"
    SIDES_ALIKE = "Spark computes both sides of a join once, as they are the same"
    CALLED_FOR_EVERY_ROW = "it is called for every row"
    PROFILED = "a profiler of Spark's is on, which shows functions as Spark calls them"
    UNTESTED = "this PySpark is not tested, and a tiny query of this kind went wrong"
    CACHED = "its rows are cached"
    OUT_OF_REACH = "it is out of the reach of a client of Spark Connect"
    READS_THE_CLOCK = "the stream asks for the current time, which would stand still"


@dataclass(frozen=True, slots=True)
class LeftToSpark:
    """A predicate that was left to Spark: as text, and why; and the functions that it asks.

    These are known by their pickles, since several may have one name.
    """

    text: str
    reason: DeclineReason
    detail: str = ""
    functions: frozenset[tuple[bytes, ...]] = field(default=frozenset(), compare=False)

    @property
    def why(self) -> str:
        """The reason and its detail, as text."""
        return f"{self.reason.value} ({self.detail})" if self.detail else self.reason.value

    def __str__(self) -> str:
        """Return one line for people."""
        return f"{self.text}: {self.why}"


def worded_beside(left: LeftToSpark, remembering: Collection[tuple[bytes, ...]]) -> LeftToSpark:
    """Return what is left, worded for functions that remember all the same, given as pickled."""
    if not left.functions or not left.functions <= set(remembering):
        return left
    what = "the function still remembers" if len(left.functions) == 1 else "the functions remember"
    return replace(left, detail=what)


class DeclinedError(Exception):
    """Ends the claim of a predicate, or of a region of joins; never leaves the rewrite.

    ``text`` is what is declined, where that is known; ``path`` leads to the node of the region
    that stands in the way.
    """

    def __init__(
        self, reason: DeclineReason, detail: str, text: str = "", path: tuple[int, ...] = ()
    ) -> None:
        super().__init__(reason, detail, text, path)
        self.reason = reason
        self.detail = detail
        self.text = text
        self.path = path

    def of(self, text: str, path: tuple[int, ...] = ()) -> DeclinedError:
        """Return the same about what stands in a node of a region."""
        return DeclinedError(self.reason, self.detail, text, path)

    @property
    def left(self) -> tuple[LeftToSpark, ...]:
        """What is left to Spark by it."""
        return (self.left_to_spark(),)

    def left_to_spark(self) -> LeftToSpark:
        """Return the record for people."""
        return LeftToSpark(self.text, self.reason, self.detail)


class EndsBelowError(DeclinedError):
    """Ends a region below a node with values that Spark is to compute before a lookup.

    Nothing is left to Spark by that.
    """

    def of(self, _text: str, _path: tuple[int, ...] = ()) -> DeclinedError:
        """Return this: it says already where that is."""
        return self

    @property
    def left(self) -> tuple[LeftToSpark, ...]:
        """Nothing."""
        return ()


def not_understood(detail: str) -> DeclinedError:
    """Return what ends the translation of an expression that cannot be evaluated exactly."""
    return DeclinedError(DeclineReason.UNTRANSLATABLE, detail)


LOST: Final = (
    "Spark drops these filters, which look at nothing but partition columns of files that a source "
    "of version 2 reads; eddyline.adapt keeps them:"
)
"""The warning where plain Spark gives too many rows."""
