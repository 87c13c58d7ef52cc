"""Whether an expression can be evaluated: found out by doing it, before anybody counts on it.

What :func:`~eddyline.expressions.support.supported` says by types alone is asked first.
Then each operator is prepared and run by the very code that a worker will use, over one row of
NULLs, so that what a kernel refuses shows as well: a type that Arrow does not compare, a LIKE
pattern of a size that its regular expressions do not take.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.expressions.expression import Argument, Call, Expression, Literal, with_children
from eddyline.expressions.preparation import prepare
from eddyline.expressions.support import fault_of, type_of
from eddyline.expressions.vector import Vector

_REFUSALS: Final = (pa.ArrowException, ArithmeticError, LookupError, TypeError, ValueError)
"""What the preparation, Arrow and NumPy raise for what they cannot do."""


def reason_not_to_evaluate(expression: Expression) -> str | None:
    """Return why an expression cannot be evaluated, in a few words; None if it can.

    The arguments of calls are looked at too, calls are not made. Each operator is run by
    itself, over columns in place of its operands, so that none is skipped for what another
    gives, and the work grows with the size of the expression.
    """
    reason = fault_of(expression)
    if reason is not None:
        return reason
    for node in expression.walk():
        if not isinstance(node, Argument | Call | Literal):  # these are the scope's to answer
            try:
                _run(node)
            except _REFUSALS as refusal:
                return f"{type(node).__name__}: {str(refusal).rstrip('.')}"
    return None


def _run(node: Expression) -> None:
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
