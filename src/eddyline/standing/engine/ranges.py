"""Predicates as boxes: for each attribute a range of its values, all of which must hold.

A grouped filter indexes ranges (Madden et al., 2002; Krishnamurthy et al., 2004, Section 4.3).
So comparisons, BETWEEN, IN, IS NULL, LIKE with a prefix, and what NOT, AND and OR make of them
become boxes here, by De Morgan's laws and with Kleene's logic: a range holds values, or NULL
alone, and a predicate counts only where it is TRUE.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa

from eddyline.expressions import (
    Comparison,
    ComparisonOperator,
    Expression,
    In,
    IsNaN,
    IsNull,
    Literal,
    Not,
    cannot_fail,
    is_floating,
    is_text,
    type_of,
)
from eddyline.expressions.strings import TextTest
from eddyline.expressions.terms import Conjunction, Leaf, Term

MOST_BOXES: Final = 64
"""Boxes of one predicate; AND over ORs multiplies them. Beyond, it is evaluated as a whole."""

Key: TypeAlias = Any
"""A value as something that Python orders as Spark does: NaN last, texts by their bytes."""

Position: TypeAlias = "tuple[Key, int]"
"""A place among the values of an attribute: just below (-1), at (0) or just above (1) a key."""


class Range(NamedTuple):
    """Values from ``lower`` to ``upper``, None for no bound; or NULL alone."""

    lower: Position | None = None
    upper: Position | None = None
    null: bool = False

    @classmethod
    def of(cls, key: Key) -> Range:
        """Return the range of a single value."""
        return cls((key, 0), (key, 0))

    def meet(self, other: Range) -> Range | None:
        """Return what is in both; None where nothing can be."""
        lower, upper, null = self
        further, least, other_null = other
        if null or other_null:
            return self if self == other else None
        if lower is None or (further is not None and further > lower):
            lower = further
        if upper is None or (least is not None and least < upper):
            upper = least
        if lower is not None and upper is not None and lower > upper:
            return None
        return Range(lower, upper)


EVERY: Final = Range()
"""All values, and not NULL."""

NULL: Final = Range(null=True)

Box: TypeAlias = Mapping[Expression, Range]
"""For each attribute the range that it must lie in; other attributes may be anything."""


def boxes_of(term: Term, *, may_fail: bool = False) -> tuple[Box, ...] | None:
    """Return boxes, at least one of which holds exactly where a term is TRUE.

    An attribute is a column, or an expression over columns that calls no function and cannot
    fail; where nothing else is to be said of a leaf, the leaf itself is one, which must be
    TRUE. None for a term with a leaf that calls functions or may fail, and for one that would
    have more than :data:`MOST_BOXES` boxes. Boxes may overlap.

    With ``may_fail``, attributes may fail, too: the boxes tell of rows for which none has.
    """
    if isinstance(term, Leaf):
        return _boxes_of_leaf(term.expression, may_fail=may_fail)
    parts = [boxes_of(part, may_fail=may_fail) for part in term.terms]
    if isinstance(term, Conjunction):
        return reduce(_both, parts)
    return reduce(_either, parts)


def _either(some: tuple[Box, ...] | None, others: tuple[Box, ...] | None) -> tuple[Box, ...] | None:
    if some is None or others is None or len(some) + len(others) > MOST_BOXES:
        return None
    return (*some, *others)


def all_of(parts: Iterable[tuple[Box, ...]]) -> tuple[Box, ...] | None:
    """Return the boxes of what is in some box of each of these; None for too many."""
    boxes: tuple[Box, ...] | None = ({},)
    for part in parts:
        boxes = _both(boxes, part)
    return boxes


def _both(some: tuple[Box, ...] | None, others: tuple[Box, ...] | None) -> tuple[Box, ...] | None:
    if some is None or others is None or len(some) * len(others) > MOST_BOXES:
        return None
    met = (_met(one, other) for one in some for other in others)
    return tuple(box for box in met if box is not None)


def _met(one: Box, other: Box) -> Box | None:
    box = dict(one)
    for attribute, range_ in other.items():
        common = range_.meet(box[attribute]) if attribute in box else range_
        if common is None:
            return None
        box[attribute] = common
    return box


def _boxes_of_leaf(leaf: Expression, *, may_fail: bool) -> tuple[Box, ...] | None:
    negated = isinstance(leaf, Not)
    positive = leaf.operand if isinstance(leaf, Not) else leaf
    if not may_fail and not cannot_fail(positive):
        return None
    if isinstance(positive, Literal):
        return ({},) if positive.value is (not negated) else ()
    attribute, true, false = _ranges_of(positive)
    return tuple({attribute: range_} for range_ in (false if negated else true))


def _ranges_of(leaf: Expression) -> tuple[Expression, list[Range], list[Range]]:
    """Return what a leaf speaks of, where it is TRUE, and where FALSE."""
    meaning = None
    match leaf:
        case IsNull(operand):
            return operand, [NULL], [EVERY]
        case IsNaN(operand):
            nan = Range.of((True, 0.0))
            return operand, [nan], [*_outside(nan), NULL]
        case Comparison(operator, Literal() as constant, operand) if not isinstance(
            operand, Literal
        ):
            meaning = operand, *_compared(operator.mirrored, constant)
        case Comparison(operator, operand, Literal() as constant):
            meaning = operand, *_compared(operator, constant)
        case In(operand, options) if all(isinstance(option, Literal) for option in options):
            meaning = (
                operand,
                *_among([option for option in options if isinstance(option, Literal)]),
            )
        case TextTest() if (prefix := leaf.prefix) is not None:
            meaning = leaf.children[0], *_prefixed(prefix)
    if meaning is None or not has_order(type_of(meaning[0])):
        return leaf, [Range.of(True)], [Range.of(False)]  # noqa: FBT003 - a value, no switch
    return meaning


def _compared(operator: ComparisonOperator, constant: Literal) -> tuple[list[Range], list[Range]]:
    null_safe = operator is ComparisonOperator.NULL_SAFE_EQUAL
    if constant.value is None:
        return ([NULL], [EVERY]) if null_safe else ([], [])
    key = key_of(constant)
    match operator:
        case ComparisonOperator.LESS:
            true = Range(upper=(key, -1))
        case ComparisonOperator.LESS_OR_EQUAL:
            true = Range(upper=(key, 0))
        case ComparisonOperator.GREATER:
            true = Range(lower=(key, 1))
        case ComparisonOperator.GREATER_OR_EQUAL:
            true = Range(lower=(key, 0))
        case _:
            true = Range.of(key)
    return [true], [*_outside(true), NULL] if null_safe else _outside(true)


def _outside(range_: Range) -> list[Range]:
    """Return the values below and above a range."""
    ranges = []
    if range_.lower is not None:
        key, side = range_.lower
        ranges.append(Range(upper=(key, side - 1)))
    if range_.upper is not None:
        key, side = range_.upper
        ranges.append(Range(lower=(key, side + 1)))
    return ranges


def _among(options: Iterable[Literal]) -> tuple[list[Range], list[Range]]:
    """Return where an operand is among constants, and where it certainly is not."""
    constants = list(options)
    keys = sorted({key_of(option) for option in constants if option.value is not None})
    true = [Range.of(key) for key in keys]
    if any(option.value is None for option in constants):
        return true, []  # not equal to NULL: nobody knows
    starts: list[Position | None] = [None, *((key, 1) for key in keys)]
    stops: list[Position | None] = [*((key, -1) for key in keys), None]
    return true, [Range(start, stop) for start, stop in zip(starts, stops, strict=True)]


def _prefixed(prefix: str) -> tuple[list[Range], list[Range]]:
    start = prefix.encode()
    # The least text that is greater than all with this prefix: its last byte one more.
    kept = start.rstrip(b"\xff")
    after = kept[:-1] + bytes([kept[-1] + 1]) if kept else None
    true = Range((start, 0), None if after is None else (after, -1))
    return [true], _outside(true)


def has_order(a_type: pa.DataType) -> bool:
    """Tell whether Python can order the values of a type as Spark does."""
    types = pa.types
    return any(
        test(a_type)
        for test in (
            types.is_integer,
            types.is_floating,
            types.is_decimal,
            types.is_boolean,
            types.is_date,
            types.is_timestamp,
            types.is_duration,
            types.is_string,
            types.is_large_string,
            types.is_binary,
            types.is_large_binary,
        )
    )


def key_of(constant: Literal) -> Key:
    """Return a constant that is not NULL as something that Python orders as Spark does."""
    value = pa.scalar(constant.value, constant.type)
    return ordered_key(value.as_py(), constant.type)


def ordered_key(value: Any, a_type: pa.DataType) -> Key:  # noqa: ANN401 - of any type
    """Return a value of a type, as Arrow gives it, as something that is ordered as in Spark."""
    if is_floating(a_type):
        return (True, 0.0) if math.isnan(value) else (False, value + 0.0)
    return value.encode() if isinstance(value, str) else value


def ordered_keys(values: pa.Array) -> list[Key | None]:
    """Return values as :func:`ordered_key` has them, and None for NULL."""
    listed: list[Any] = values.to_pylist()
    if is_floating(values.type):
        return [
            None if v is None else (False, v + 0.0) if v == v else (True, 0.0)  # noqa: PLR0124 - NaN
            for v in listed
        ]
    if is_text(values.type):
        return [None if v is None else v.encode() for v in listed]
    return listed
