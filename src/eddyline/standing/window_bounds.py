"""Which attributes of a plan above windows say of which window a row is, and so when it comes.

The groups of windows that end at one time come in one micro-batch, and so do rows that are joined
of such groups: what compares rows with others has to compare rows of such windows only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from eddyline.planner.read.chains import ExpressionId, Tree
from eddyline.standing.existences import ONE_SIDED


class Bound(StrEnum):
    """What of a window a value says."""

    WHOLE = "window"
    START = "window.start"
    END = "window.end"


class WindowBound(NamedTuple):
    """What a value says of windows of a size, in microseconds; of sessions where that is None."""

    bound: Bound
    size: int | None

    def end_together(self, other: WindowBound) -> bool:
        """Tell whether two windows of which these are equal end at the same time."""
        if self.size is None or other.size is None or self.bound is not other.bound:
            return False
        return self.bound is Bound.END or self.size == other.size


class _Known(NamedTuple):
    """A bound, and the parts of a step of which one says it where it is not missing."""

    bound: WindowBound
    parts: frozenset[int]


@dataclass(frozen=True)
class WindowBounds:
    """The attributes of a plan that say of which window a row is.

    An outer join may leave out some of the parts that rows are joined of: ``cases`` are the parts
    that a row may have.
    """

    known: Mapping[ExpressionId, _Known]
    cases: frozenset[frozenset[int]]

    @classmethod
    def of_part(cls, number: int, bounds: Mapping[ExpressionId, WindowBound]) -> WindowBounds:
        """Return the bounds of what an aggregate puts out, the part of a number."""
        own = frozenset([number])
        known = {identity: _Known(bound, own) for identity, bound in bounds.items()}
        return cls(known, frozenset([own]))

    def with_names(self, named: Mapping[ExpressionId, Tree]) -> WindowBounds:
        """Return these and further names for some of them."""
        found = {identity: self._of(tree) for identity, tree in named.items()}
        more = {identity: known for identity, known in found.items() if known is not None}
        return WindowBounds({**self.known, **more}, self.cases) if more else self

    def joined(self, other: WindowBounds, kind: str) -> WindowBounds:
        """Return those of a join of rows with the rows of another plan."""
        if kind in ONE_SIDED:
            return self
        cases = {one | two for one in self.cases for two in other.cases}
        if kind in {"LEFT OUTER", "FULL OUTER"}:
            cases |= self.cases
        if kind in {"RIGHT OUTER", "FULL OUTER"}:
            cases |= other.cases
        return WindowBounds({**self.known, **other.known}, frozenset(cases))

    def says_window(self, tree: Tree) -> bool:
        """Tell whether a value says the window of each row."""
        known = self._of(tree)
        return known is not None and all(known.parts & case for case in self.cases)

    def are_joined(self, other: WindowBounds, condition: Tree) -> bool:
        """Tell whether rows of both that a condition is true of are of windows that end together.

        It is an equality of bounds; one that NULLs meet must be of bounds that are never missing.
        """
        if condition.name not in {"EqualTo", "EqualNullSafe"}:
            return False
        for one, two in (condition.children, reversed(condition.children)):
            left, right = self._of(one), other._of(two)
            if left is None or right is None or not left.bound.end_together(right.bound):
                continue
            if condition.name == "EqualTo":
                return True
            return self.says_window(one) and other.says_window(two)
        return False

    def _of(self, tree: Tree) -> _Known | None:
        """Return what a value says of windows; None for nothing."""
        match tree.name:
            case "AttributeReference":
                return self.known.get(tree.identity)
            case "Alias":
                return self._of(tree.children[0])
            case "GetStructField":
                return _field(self._of(tree.children[0]), int(str(tree.node.fields["ordinal"])))
            case "Coalesce":
                return _either(list(map(self._of, tree.children)))
        return None


def _field(whole: _Known | None, ordinal: int) -> _Known | None:
    if whole is None or whole.bound.bound is not Bound.WHOLE:
        return None
    bound = field_of(whole.bound, ordinal)
    return None if bound is None else _Known(bound, whole.parts)


def _either(values: Sequence[_Known | None]) -> _Known | None:
    """Return what the first of some values says that is not missing."""
    known = [value for value in values if value is not None]
    if len(known) < len(values) or len({value.bound for value in known}) > 1:
        return None
    return _Known(known[0].bound, frozenset().union(*(value.parts for value in known)))


def field_of(window: WindowBound, ordinal: int) -> WindowBound | None:
    """Return what a field of a window says: its start, or its end.

    None for the start of a session: others that begin with it may end at any time.
    """
    if ordinal == 0:
        return None if window.size is None else window._replace(bound=Bound.START)
    return window._replace(bound=Bound.END)
