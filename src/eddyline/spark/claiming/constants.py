"""Constants that a condition gives for a column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eddyline.query.expressions import (
    Argument,
    Comparison,
    ComparisonOperator,
    Expression,
    In,
    Literal,
    Or,
)


@dataclass(frozen=True, slots=True)
class Constants:
    """The distinct values, none of them NULL, of which a column has one."""

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
        case Comparison(ComparisonOperator.EQUAL, Argument() as column, Literal() as literal):
            return _constants(column, [literal])
        case Comparison(ComparisonOperator.EQUAL, Literal() as literal, Argument() as column):
            return _constants(column, [literal])
        case In(Argument() as column, options):
            return _constants(column, options)
        case Or(terms):
            found = [constants_in(term) for term in terms]
            parts = [part for part in found if part is not None]
            if len(parts) == len(found) and len({part.column for part in parts}) == 1:
                values = dict.fromkeys(value for part in parts for value in part.values)
                return Constants(parts[0].column, tuple(values))
    return None


def _constants(column: Argument, options: Sequence[Expression]) -> Constants | None:
    literals = [option for option in options if isinstance(option, Literal)]
    if len(literals) < len(options) or any(each.type != column.type for each in literals):
        return None
    values = dict.fromkeys(each.value for each in literals if each.value is not None)
    return Constants(column, tuple(values))
