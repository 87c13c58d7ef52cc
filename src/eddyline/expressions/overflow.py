"""Where integer arithmetic leaves its width, found on whole arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from eddyline.expressions.expression import ArithmeticOperator

Integers = npt.NDArray[Any]


def overflows(
    operator: ArithmeticOperator, left: Integers, right: Integers, wrapped: Integers
) -> npt.NDArray[np.bool_]:
    """Return where ``left operator right`` is not ``wrapped``, its result modulo the width.

    All three are of one signed integer type; the operator is ADD, SUBTRACT or MULTIPLY.
    """
    if operator is ArithmeticOperator.ADD:
        return np.asarray(((wrapped ^ left) & (wrapped ^ right)) < 0)
    if operator is ArithmeticOperator.SUBTRACT:
        return np.asarray(((left ^ right) & (wrapped ^ left)) < 0)
    lowest = np.iinfo(wrapped.dtype).min
    # A wrapped product is off by a multiple of 2^width, which dividing by a factor
    # shows, except for lowest * -1: there the division itself wraps around.
    divisor = np.where(left == 0, 1, left)
    with np.errstate(over="ignore"):
        differs = (left != 0) & (wrapped // divisor != right)
    negated_lowest = ((left == -1) & (right == lowest)) | ((left == lowest) & (right == -1))
    return np.asarray(differs | negated_lowest)


def overflows_alone(operand: Integers) -> npt.NDArray[np.bool_]:
    """Return where the negative or the absolute value of an integer does not fit its width."""
    return np.asarray(operand == np.iinfo(operand.dtype).min)
