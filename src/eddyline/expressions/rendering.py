"""Expressions as text, for people."""

from __future__ import annotations

from collections.abc import Sequence

from eddyline.expressions.expression import (
    And,
    Argument,
    Arithmetic,
    ArithmeticOperator,
    Call,
    Case,
    Cast,
    Coalesce,
    Comparison,
    Expression,
    Failure,
    In,
    IsNaN,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    StringMatch,
)


def render(expression: Expression, functions: Sequence[str], arguments: Sequence[str]) -> str:  # noqa: C901, PLR0911, PLR0912 - one case a kind of expression
    """Return an expression as SQL-like text.

    ``functions`` and ``arguments`` are the names of the block's functions and
    columns by number.

    >>> import pyarrow as pa
    >>> from eddyline.expressions.expression import ComparisonOperator
    >>> text = Argument(0, pa.string())
    >>> score = Call(0, (text,), pa.float64())
    >>> high = Comparison(ComparisonOperator.GREATER, score, Literal(0.7, pa.float64()))
    >>> render(Or((high, Not(IsNull(text)))), ["score"], ["title"])
    'score(title) > 0.7 OR title IS NOT NULL'
    """

    def text(inner: Expression) -> str:
        return render(inner, functions, arguments)

    def part(inner: Expression) -> str:
        return f"({text(inner)})" if isinstance(inner, And | Or | Comparison) else text(inner)

    match expression:
        case Argument(index=index):
            return arguments[index]
        case Literal(value=None):
            return "NULL"
        case Literal(value=value):
            return repr(value)
        case Call(function=number, arguments=inner):
            return f"{functions[number]}({', '.join(map(text, inner))})"
        case And(terms=terms):
            return " AND ".join(f"({text(t)})" if isinstance(t, Or) else text(t) for t in terms)
        case Or(terms=terms):
            return " OR ".join(f"({text(t)})" if isinstance(t, And) else text(t) for t in terms)
        case Not(operand=IsNull(operand=operand)):
            return f"{part(operand)} IS NOT NULL"
        case Not(operand=operand):
            return f"NOT {part(operand)}"
        case Comparison(operator=operator, left=left, right=right):
            return f"{part(left)} {operator} {part(right)}"
        case Arithmetic(operator=ArithmeticOperator.NEGATE, operands=(operand,)):
            return f"-{part(operand)}"
        case Arithmetic(operator=ArithmeticOperator.ABSOLUTE, operands=(operand,)):
            return f"abs({text(operand)})"
        case Arithmetic(operator=operator, operands=operands):
            return "(" + f" {operator} ".join(map(part, operands)) + ")"
        case IsNull(operand=operand):
            return f"{part(operand)} IS NULL"
        case IsNaN(operand=operand):
            return f"isnan({text(operand)})"
        case In(operand=operand, options=options):
            return f"{part(operand)} IN ({', '.join(map(text, options))})"
        case Like(operand=operand, pattern=pattern):
            return f"{part(operand)} LIKE {pattern!r}"
        case StringMatch(test=test, operand=operand, needle=needle):
            return f"{part(operand)} {test} {needle!r}"
        case Case(branches=branches, otherwise=otherwise):
            whens = " ".join(f"WHEN {text(c)} THEN {text(v)}" for c, v in branches)
            return f"CASE {whens} ELSE {text(otherwise)} END"
        case Coalesce(operands=operands):
            return f"coalesce({', '.join(map(text, operands))})"
        case Failure(condition=condition):
            return f"<{condition}>"
        case Cast(operand=operand, type=type_):
            return f"CAST({text(operand)} AS {type_})"
    raise TypeError(f"no text for {type(expression).__name__}")
