"""Predicates that differ in constants only: what they have in common is done once.

Selections become boxes, and clauses of patterns. In a condition on several streams an attribute
that is compared with a constant, ``expression > :c``, has a range of each query, found by an index;
where a constant is inside, ``price > q.price * :c``, all queries have the expression in common,
which is evaluated for pairs of a tuple and a query's constants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import pyarrow as pa

from eddyline.expressions import (
    Argument,
    Comparison,
    ComparisonOperator,
    Expression,
    Not,
    VariableMatch,
    cannot_fail,
)
from eddyline.expressions.strings import TextTest
from eddyline.expressions.terms import (
    Conjunction,
    Leaf,
    Term,
    conjuncts_of,
    expression_of,
    terms_of,
)
from eddyline.standing.engine.join_conditions import JoinAttribute, JoinCondition, condition_of
from eddyline.standing.engine.pattern_clauses import (
    PatternClause,
    PatternClauses,
    clauses_of,
    without_implied,
)
from eddyline.standing.engine.ranges import (
    EVERY,
    Box,
    Key,
    Range,
    boxes_of,
    has_order,
    ordered_keys,
)
from eddyline.standing.engine.selections import SplitSelection

_NEVER: Final = SplitSelection((), ())
"""The selection of no tuple."""

_RANGES: Final[dict[ComparisonOperator, Callable[[Key], Range]]] = {
    ComparisonOperator.EQUAL: Range.of,
    ComparisonOperator.LESS: lambda key: Range(None, (key, -1)),
    ComparisonOperator.LESS_OR_EQUAL: lambda key: Range(None, (key, 0)),
    ComparisonOperator.GREATER: lambda key: Range((key, 1)),
    ComparisonOperator.GREATER_OR_EQUAL: lambda key: Range((key, 0)),
}


def selections_of(
    predicate: Expression, constants: Sequence[pa.Array]
) -> list[SplitSelection] | None:
    """Return the selections that a predicate stands for, one for each row of ``constants``.

    In it an argument with number -1 is the first of the constants, -2 the second. None where it
    is no conjunction of comparisons of an attribute with a constant or a pattern, and of what has
    no constants and is one box or about patterns: then each has to be split by itself, which takes
    200 microseconds instead of 5.
    """
    term = terms_of(predicate)
    conjuncts = term.terms if isinstance(term, Conjunction) else (term,)
    common: Box = {}
    changing: dict[Expression, list[Range | None]] = {}
    common_patterns: PatternClauses = ()
    patterns: list[list[PatternClause | None]] = []
    for conjunct in conjuncts:
        if not _has_constants(conjunct):
            clauses = clauses_of(conjunct)
            if clauses is not None:
                common_patterns += clauses
                continue
            boxes = boxes_of(conjunct)
            if boxes is None or len(boxes) != 1:
                return None
            met = _met(common, boxes[0])
            if met is None:
                return [_NEVER] * len(constants[0]) if constants else None
            common = met
            continue
        searched = _searched(conjunct, constants)
        if searched is not None:
            patterns.append(searched)
            continue
        comparison = compared(conjunct, constants)
        if comparison is None:
            return None
        attribute, ranges = comparison
        before = changing.get(attribute)
        changing[attribute] = ranges if before is None else list(map(_both, before, ranges))
    if not changing and not patterns:
        return None
    for attribute in common.keys() & changing.keys():
        changing[attribute] = _all_met(common[attribute], changing[attribute])
    nothing: Sequence[tuple[()]] = ((),) * len(constants[0])
    ranges_of_rows = zip(*changing.values(), strict=True) if changing else nothing
    clauses_of_rows = zip(*patterns, strict=True) if patterns else nothing
    return [
        _NEVER
        if None in ranges or None in own
        else _selection(
            {**common, **dict(zip(changing, ranges, strict=True))}, common_patterns + own
        )
        for ranges, own in zip(ranges_of_rows, clauses_of_rows, strict=True)
    ]


def _all_met(fixed: Range, ranges: list[Range | None]) -> list[Range | None]:
    """Return what of each range is in a fixed one, too; the ranges are of values, not of NULL."""
    if fixed == EVERY:  # as IS NOT NULL says, which Spark adds to each comparison
        return ranges
    return [_both(fixed, range_) for range_ in ranges]


def _both(one: Range | None, other: Range | None) -> Range | None:
    if one is None or other is None:
        return None
    lower, upper, null = one
    further, least, other_null = other
    if upper is None and further is None and lower and least and not (null or other_null):
        # As in BETWEEN: there is nothing to find out about which bound is the narrower one.
        return None if lower > least else Range(lower, least)
    return one.meet(other)


def _searched(conjunct: Term, constants: Sequence[pa.Array]) -> list[PatternClause | None] | None:
    """Return for each row what is looked for in a text, None for nothing that could be found.

    None where a conjunct is no test of a text against a pattern that is a constant.
    """
    if not isinstance(conjunct, Leaf):
        return None
    negated = isinstance(conjunct.expression, Not)
    match = (
        conjunct.expression.operand
        if isinstance(conjunct.expression, Not)
        else (conjunct.expression)
    )
    if not isinstance(match, VariableMatch) or not isinstance(match.pattern, Argument):
        return None
    if _mentions(match.operand) or not cannot_fail(match.operand):
        return None
    tests = map(match.against, constants[-1 - match.pattern.index].to_pylist())
    return [
        (PatternClause((), (test,)) if negated else PatternClause((test,)))
        if isinstance(test, TextTest)
        else None
        for test in tests
    ]


def _selection(box: Box, clauses: PatternClauses) -> SplitSelection:
    return SplitSelection((without_implied(box, clauses) if clauses else box,), (), clauses)


def compared(
    conjunct: Term, constants: Sequence[pa.Array], *, may_fail: bool = False
) -> tuple[Expression, list[Range | None]] | None:
    """Return an attribute, and for each row the range that it must lie in, None for nowhere.

    None where a conjunct is no comparison of an attribute with a constant; with ``may_fail``, of
    any attribute, and else of one that cannot.
    """
    if not isinstance(conjunct, Leaf):
        return None
    match conjunct.expression:
        case Comparison(operator, attribute, Argument(number)) if number < 0:
            pass
        case Comparison(operator, Argument(number), attribute) if number < 0:
            operator = operator.mirrored
        case _:
            return None
    kind = constants[-1 - number].type
    make = _RANGES.get(operator)
    if make is None or _mentions(attribute) or not has_order(kind):
        return None
    if not may_fail and not cannot_fail(attribute):
        return None
    keys = ordered_keys(constants[-1 - number])
    return attribute, [None if key is None else make(key) for key in keys]


def _met(one: Box, other: Box) -> Box | None:
    box = dict(one)
    for attribute, range_ in other.items():
        met = range_ if attribute not in box else box[attribute].meet(range_)
        if met is None:
            return None
        box[attribute] = met
    return box


def _has_constants(term: Term) -> bool:
    if isinstance(term, Leaf):
        return _mentions(term.expression)
    return any(map(_has_constants, term.terms))


def _mentions(expression: Expression) -> bool:
    return any(isinstance(node, Argument) and node.index < 0 for node in expression.walk())


Row: TypeAlias = tuple[object, ...]


def conditions_of(
    conditions: Sequence[Expression | JoinCondition], constants: Sequence[pa.Array]
) -> Iterator[tuple[JoinCondition, ...]]:
    """Yield the conditions of queries, one for each row of ``constants``, which has one at least.

    In ``conditions`` an argument with number -1 is the first of the constants, -2 the second.
    Takes 2 microseconds a query and conjunct.
    """
    if not conditions:
        yield from (() for _ in range(len(constants[0])))
        return
    rows: list[Row] = list(zip(*(column.to_pylist() for column in constants), strict=True))
    conjuncts = [
        _of_rows(term, constants, rows)
        for condition in conditions
        for term in conjuncts_of(
            condition.predicate if isinstance(condition, JoinCondition) else condition
        )
    ]
    yield from zip(*conjuncts, strict=True)


def _of_rows(
    term: Term, constants: Sequence[pa.Array], rows: Sequence[Row]
) -> Sequence[JoinCondition]:
    common = condition_of(term)
    if not common.attribute.constants:
        return [common] * len(rows)
    ranged = compared(term, constants, may_fail=True)
    if ranged is None:
        return [common._replace(constants=row) for row in rows]
    expression, ranges = ranged
    attribute, predicate = JoinAttribute.of(expression), expression_of(term)
    return [
        JoinCondition(attribute, _holding(range_), predicate, row)
        for range_, row in zip(ranges, rows, strict=True)
    ]


def _holding(range_: Range | None) -> tuple[Range, ...]:
    return () if range_ is None else (range_,)
