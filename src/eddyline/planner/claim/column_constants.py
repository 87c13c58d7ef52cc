"""Constants that a condition gives for a column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from eddyline.expressions import (
    Argument,
    Comparison,
    ComparisonOperator,
    Expression,
    In,
    Literal,
    Or,
)
from eddyline.planner.read.chains import Tree

_EQUALITIES = frozenset({ComparisonOperator.EQUAL, ComparisonOperator.NULL_SAFE_EQUAL})


@dataclass(frozen=True, slots=True)
class Constants:
    """The only values that a column may have: distinct, and none of them NULL."""

    column: Argument
    values: tuple[object, ...]


def constants_in(condition: Expression) -> Constants | None:
    """Return the constants that a condition is about, if it is about nothing else.

    >>> import pyarrow as pa
    >>> column, one = Argument(0, pa.int64()), Literal(1, pa.int64())
    >>> constants_in(In(column, (one, one, Literal(None, pa.int64()), Literal(2, pa.int64()))))
    Constants(column=Argument(index=0, type=DataType(int64)), values=(1, 2))
    >>> constants_in(Comparison(ComparisonOperator.LESS, column, one)) is None
    True
    """
    match condition:
        case Comparison(operator, Argument() as column, Literal() as literal) | Comparison(
            operator, Literal() as literal, Argument() as column
        ) if operator in _EQUALITIES:
            if operator is ComparisonOperator.NULL_SAFE_EQUAL and literal.value is None:
                return None
            return _constants(column, [literal])
        case In(Argument() as column, options):
            return _constants(column, options)
        case Or(terms):
            constants = [constants_in(term) for term in terms]
            parts = [part for part in constants if part is not None]
            if len(parts) == len(constants) and len({part.column for part in parts}) == 1:
                values = dict.fromkeys(value for part in parts for value in part.values)
                return Constants(parts[0].column, tuple(values))
    return None


def constants_implied(
    condition: Tree, exactly: Callable[[Tree], Constants | None]
) -> dict[Argument, Constants]:
    """Return the constants that a condition leaves columns at the most, whatever else it says.

    In an AND any part may give them, in an OR each must: ``k = 3 OR (k = 5 AND x > 2)`` is about
    3 and 5. ``exactly`` tells the constants of a part that is neither, as :func:`constants_in`.
    """
    if condition.name == "And":
        fewest: dict[Argument, Constants] = {}
        for part in _parts(condition, "And"):
            for column, candidate in constants_implied(part, exactly).items():
                known = fewest.get(column)
                if known is None or len(candidate.values) < len(known.values):
                    fewest[column] = candidate
        return fewest
    if condition.name == "Or":
        by_part = []
        for part in _parts(condition, "Or"):
            by_part.append(constants_implied(part, exactly))
            if not by_part[-1]:
                return {}
        return {
            column: Constants(
                column,
                tuple(dict.fromkeys(v for implied in by_part for v in implied[column].values)),
            )
            for column in by_part[0]
            if all(column in implied for implied in by_part)
        }
    constants = exactly(condition)
    return {} if constants is None else {constants.column: constants}


def _parts(condition: Tree, name: str) -> Iterator[Tree]:
    """Yield what a chain of ANDs or ORs connects, in order."""
    left = [condition]
    while left:
        tree = left.pop()
        if tree.name == name:
            left += reversed(tree.children)
        else:
            yield tree


def _constants(column: Argument, options: Sequence[Expression]) -> Constants | None:
    literals = [option for option in options if isinstance(option, Literal)]
    if len(literals) < len(options) or any(literal.type != column.type for literal in literals):
        return None
    values = dict.fromkeys(literal.value for literal in literals if literal.value is not None)
    return Constants(column, tuple(values))
