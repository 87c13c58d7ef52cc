"""For which rows an expression asks for a call that must be made beforehand.

Evaluation at once calls a function when it comes to it, and so only where a branch is taken. A call
that is answered later is made before the expression is evaluated; here the expression says for
which rows. It is exactly what evaluation comes to, or more: where a condition cannot be looked at
before, as it needs the call itself, all rows count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from eddyline.expressions.choice import Case, Coalesce
from eddyline.expressions.expression import BOOLEAN, Expression
from eddyline.expressions.leaves import Call, Literal, calls_in
from eddyline.expressions.logic import And, IsNull, Not, Or

_ALL: Final = Literal(True, BOOLEAN)  # noqa: FBT003 - SQL's TRUE
_NONE: Final = Literal(False, BOOLEAN)  # noqa: FBT003 - SQL's FALSE


def demand(
    call: Call, expressions: Iterable[Expression], answers_later: Callable[[Call], bool]
) -> Expression | None:
    """Return a predicate that is TRUE for the rows that need a call; None where all do.

    O(nodes of the expressions x their depth).

    >>> import pyarrow as pa
    >>> from eddyline.expressions import Argument
    >>> few, call = Argument(0, pa.bool_()), Call(0, (Argument(1, pa.int64()),), pa.int64())
    >>> case = Case(((few, call),), Literal(None, pa.int64()), pa.int64())
    >>> demand(call, [case], lambda _: True) == few
    True
    >>> demand(call, [case, call], lambda _: True)
    """
    asked = _any(_demanded(expression, call, answers_later) for expression in expressions)
    return None if asked == _ALL else asked


def _demanded(
    expression: Expression, call: Call, answers_later: Callable[[Call], bool]
) -> Expression:
    if expression == call:
        return _ALL
    if call not in calls_in(expression):
        return _NONE

    def of(part: Expression) -> Expression:
        return _demanded(part, call, answers_later)

    match expression:
        case Case():
            return _of_case(expression, of)
        case Coalesce():
            tests = [Not(IsNull(operand)) for operand in expression.operands]
            return _of_first(expression.operands, tests, of)
        case And() | Or():
            return _of_terms(expression, of, answers_later)
    return _any(map(of, expression.children))


def _of_case(case: Case, of: Callable[[Expression], Expression]) -> Expression:
    conditions = [condition for condition, _ in case.branches]
    asked = [_where_none(conditions[:n], of(test)) for n, test in enumerate(conditions)]
    branches = [(condition, of(value)) for condition, value in case.branches]
    return _any([*asked, _case(branches, of(case.otherwise))])


def _of_first(
    operands: Sequence[Expression],
    ends: Sequence[Expression],
    of: Callable[[Expression], Expression],
) -> Expression:
    """Return the demand of operands; each is looked at where none before it ``ends``."""
    return _any(_where_none(ends[:n], of(operand)) for n, operand in enumerate(operands))


def _of_terms(
    expression: And | Or,
    of: Callable[[Expression], Expression],
    answers_later: Callable[[Call], bool],
) -> Expression:
    """Return the demand of an AND or OR: terms without calls are looked at before all others.

    Terms with calls that are answered later do not wait for each other: they are made together.
    """
    parts: list[Expression] = []
    for position, term in enumerate(expression.terms):
        demanded = of(term)
        if demanded == _NONE:
            continue
        deciding: list[Expression] = []
        for place, other in enumerate(expression.terms):
            calls = calls_in(other)
            if not calls or (place < position and not any(map(answers_later, calls))):
                deciding.append(Not(other) if isinstance(expression, And) else other)
        parts.append(_where_none(deciding, demanded))
    return _any(parts)


def _where_none(conditions: Sequence[Expression], demanded: Expression) -> Expression:
    """Return a demand for the rows for which none of some conditions is TRUE."""
    return _case([(condition, _NONE) for condition in conditions], demanded)


def _case(branches: Sequence[tuple[Expression, Expression]], otherwise: Expression) -> Expression:
    if all(value == otherwise for _, value in branches):
        return otherwise
    if otherwise == _NONE and len(branches) == 1 and branches[0][1] == _ALL:
        return branches[0][0]
    return Case(tuple(branches), otherwise, BOOLEAN)


def _any(demands: Iterable[Expression]) -> Expression:
    several = [one for one in dict.fromkeys(demands) if one != _NONE]
    if _ALL in several:
        return _ALL
    return Or(tuple(several)) if len(several) > 1 else next(iter(several), _NONE)
