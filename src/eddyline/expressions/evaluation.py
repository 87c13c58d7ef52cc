"""Evaluates expressions, and tells beforehand whether it can.

That is found out by trying, before anybody counts on it. First
:func:`~eddyline.expressions.expression.fault_of` answers by types alone. Then each operator is
prepared and run by the very code that a worker will use, over one row of NULLs, so that a kernel's
refusal shows as well: a type that Arrow does not compare, a LIKE pattern of a size that its regular
expressions do not take.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.errors import UnsupportedExpressionError
from eddyline.expressions.expression import Expression, fault_of, type_of, with_children
from eddyline.expressions.leaves import Argument, Call, Literal
from eddyline.expressions.program import Program
from eddyline.expressions.vector import Scope, Vector

# Programs by the identity of their expression, which is kept alive with it, as
# hashing a large expression for every vector would cost more than running it.
_prepared: dict[int, tuple[Expression, Program]] = {}
_PREPARED_LIMIT = 1 << 14
"""Programs that are kept; a block of a thousand terms has some thousand, so this bounds a leak."""

_REFUSALS: Final = (pa.ArrowException, ArithmeticError, LookupError, TypeError, ValueError)
"""What the preparation, Arrow and NumPy raise for what they cannot do."""


def evaluate(expression: Expression, scope: Scope) -> Vector:
    """Return one result per row of ``scope``, as Spark would compute it, errors kept by row.

    The vector has ``type_of(expression)``. Raises :class:`UnsupportedExpressionError`
    for an expression in which :func:`fault_of` finds something.
    """
    entry = _prepared.get(id(expression))
    if entry is None:
        if len(_prepared) >= _PREPARED_LIMIT:
            _prepared.clear()
        entry = _prepared[id(expression)] = (expression, prepare(expression))
    return entry[1].run(scope)


def forget_programs() -> None:
    """Forget the programs of expressions that will not come again, as at the end of a task."""
    _prepared.clear()


def prepare(expression: Expression) -> Program:
    """Return the program of an expression.

    Raises :class:`UnsupportedExpressionError` where :func:`fault_of` finds something.
    """
    reason = fault_of(expression)
    if reason is not None:
        raise UnsupportedExpressionError(
            f"{reason} is not evaluated exactly as Spark does; leave the expression to Spark."
        )
    return expression.program()


def reason_not_to_evaluate(expression: Expression) -> str | None:
    """Return why an expression cannot be evaluated, in a few words; None if it can.

    The arguments of calls are looked at too, calls are not made. Each operator is run by itself,
    over columns in place of its operands, so that none is skipped because of another's value, and
    the work grows with the size of the expression.
    """
    reason = fault_of(expression)
    if reason is not None:
        return reason
    for node in expression.walk():
        if not isinstance(node, Argument | Call | Literal):  # these are the scope's to answer
            try:
                _rehearse(node)
            except _REFUSALS as refusal:
                return f"{type(node).__name__}: {str(refusal).rstrip('.')}"
    return None


def _rehearse(node: Expression) -> None:
    """Run one operator; constants stay, since kernels take them as they are."""
    types: list[pa.DataType] = []

    def column(child: Expression) -> Expression:
        if isinstance(child, Literal):
            return child
        types.append(type_of(child))
        return Argument(len(types) - 1, types[-1])

    shallow = with_children(node, column)
    prepare(shallow).run(_Nulls(tuple(types), 1))


@dataclass(frozen=True, slots=True)
class _Nulls:
    """A scope of rows that hold nothing but NULL."""

    types: tuple[pa.DataType, ...]
    rows: int

    def __len__(self) -> int:
        return self.rows

    def argument(self, index: int) -> pa.Array:
        return pa.nulls(self.rows, self.types[index])

    def call(self, call: Call) -> Vector:
        return Vector(pa.nulls(self.rows, call.type))

    def narrow(self, positions: npt.NDArray[np.int64]) -> _Nulls:
        return _Nulls(self.types, len(positions))
