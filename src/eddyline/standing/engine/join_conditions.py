"""Conditions on columns of several streams, as frozen data: what is asked of joined tuples.

They are part of the join, as windows are. A conjunct is an attribute of joined tuples, an
expression over columns of several streams, and ranges, one of which must hold its value. So
queries that differ in constants share the attribute's value, and an index finds them by it
(Madden et al., 2002, Section 3.2.1, for the attributes of one stream).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

import pyarrow as pa

from eddyline.expressions import Argument, Expression, cannot_fail
from eddyline.expressions.terms import Term, conjuncts_of, expression_of
from eddyline.standing.engine.ranges import Range, boxes_of

MOST_COLUMNS: Final = 1 << 20
"""Columns of one stream: in conditions, arguments are numbered stream by stream, so far apart."""

_TRUE: Final = (Range.of(True),)  # noqa: FBT003 - a value, no switch


def column_of(stream: int, column: int, a_type: pa.DataType) -> Argument:
    """Return a column of a stream as an argument of conditions."""
    return Argument(stream * MOST_COLUMNS + column, a_type)


def streams_in(expression: Expression) -> int:
    """Return the streams whose columns are in a condition, as a mask."""
    mask = 0
    for node in expression.walk():
        if isinstance(node, Argument) and node.index >= 0:
            mask |= 1 << node.index // MOST_COLUMNS
    return mask


@dataclass(frozen=True, slots=True)
class JoinAttribute:
    """An expression over columns of ``streams``, a mask, and what there is to know of it.

    ``constants`` are the arguments below 0 in it, which stand for constants of the query.
    """

    expression: Expression
    streams: int
    may_fail: bool
    constants: tuple[Argument, ...] = ()

    @classmethod
    def of(cls, expression: Expression) -> JoinAttribute:
        """Return what there is to know of an expression."""
        arguments = {node for node in expression.walk() if isinstance(node, Argument)}
        constants = sorted(
            (argument for argument in arguments if argument.index < 0), key=lambda a: -a.index
        )
        return cls(
            expression, streams_in(expression), not cannot_fail(expression), tuple(constants)
        )

    def needs(self, streams: int) -> int:
        """Return the streams that a tuple must span where a query of ``streams`` asks for it.

        Those that it is about; but all streams of the query where it may fail: so it does not
        depend on the order of joins whether an error is met.
        """
        several = self.streams & (self.streams - 1)
        return self.streams if several and not self.may_fail else streams


class JoinCondition(NamedTuple):
    """A conjunct: the value of ``attribute`` lies in one of ``ranges``.

    ``predicate`` says the same; in it arguments below 0 stand for ``constants``, -1 for the first.
    Those of all conditions of a query are the same ones. One that is ``delayed`` is a selection of
    the single stream that it is about, asked where a row was stored without having been asked.
    """

    attribute: JoinAttribute
    ranges: tuple[Range, ...]
    predicate: Expression
    constants: tuple[object, ...] = ()
    delayed: bool = False

    @property
    def selecting(self) -> int | None:
        """The stream whose selection it is, if it is a delayed one."""
        return self.attribute.streams.bit_length() - 1 if self.delayed else None


def conditions_in(some: Iterable[Expression | JoinCondition]) -> list[JoinCondition]:
    """Return conditions as conjuncts; those that are conjuncts already stay as they are."""
    conditions: list[JoinCondition] = []
    for condition in some:
        conditions += [condition] if isinstance(condition, JoinCondition) else _split(condition)
    return conditions


@lru_cache(maxsize=1 << 12)
def _split(predicate: Expression) -> tuple[JoinCondition, ...]:
    return tuple(condition_of(term) for term in conjuncts_of(predicate))


def condition_of(term: Term) -> JoinCondition:
    """Return a conjunct as a condition: ranges of one attribute, or that it is TRUE itself."""
    predicate = expression_of(term)
    whole = JoinAttribute.of(predicate)
    boxes = None if whole.constants else boxes_of(term, may_fail=True)
    if boxes and all(len(box) == 1 for box in boxes):
        attributes = {attribute for box in boxes for attribute in box}
        if len(attributes) == 1:
            (attribute,) = attributes
            ranges = tuple(box[attribute] for box in boxes)
            return JoinCondition(JoinAttribute.of(attribute), ranges, predicate)
    return JoinCondition(whole, _TRUE, predicate)


def met(some: tuple[Range, ...], others: tuple[Range, ...]) -> tuple[Range, ...]:
    """Return ranges that hold what is in one of ``some`` and in one of ``others``."""
    ranges = (one.meet(other) for one in some for other in others)
    return tuple(dict.fromkeys(range_ for range_ in ranges if range_ is not None))
