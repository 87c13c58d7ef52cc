"""Operators that are NULL where an operand is NULL, and fail where an operand fails.

Spark looks at the operands one after the other and stops at the first that is
NULL or fails: that one decides the row. So NULL + (1 / 0) is NULL and
(1 / 0) + NULL fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from eddyline.expressions.program import Errors, Program, Run, null_mask, run_at
from eddyline.expressions.vector import NO_ERRORS, Scope, Vector

Operand: TypeAlias = "pa.Array | pa.Scalar"

# A kernel takes arrays, or an array and a scalar that is not NULL, and gives one
# array, NULL where an operand is, and the errors that it found itself.
UnaryKernel: TypeAlias = Callable[[pa.Array], tuple[pa.Array, Errors]]
BinaryKernel: TypeAlias = Callable[[Operand, Operand], tuple[pa.Array, Errors]]


def unary(operand: Program, kernel: UnaryKernel) -> Run:
    """Return the program's ``run`` of a kernel over one operand."""

    def run(scope: Scope) -> Vector:
        vector = operand.run(scope)
        values, found = kernel(vector.values)
        return Vector(values, merged(vector.errors, found))

    return run


def binary(first: Program, second: Program, kernel: BinaryKernel) -> Run:
    """Return the program's ``run`` of a kernel over two operands, in Spark's order of evaluation.

    Where the first operand is NULL or failed, the second is not called for.
    """
    if second.constant is not None:
        constant = second.constant
        return unary(first, lambda values: kernel(values, constant))
    if first.constant is not None:
        constant = first.constant
        return unary(second, lambda values: kernel(constant, values))

    def run(scope: Scope) -> Vector:
        left, right = pair(first, second, scope)
        values, found = kernel(left.values, right.values)
        return Vector(values, merged(merged(left.errors, right.errors), found))

    return run


def pair(first: Program, second: Program, scope: Scope) -> tuple[Vector, Vector]:
    """Run two operands; the second keeps no error where the first is NULL or failed."""
    left = first.run(scope)
    if not left.values.null_count:
        return left, second.run(scope)
    if second.calls:
        return left, run_at(second, scope, np.flatnonzero(~null_mask(left.values)))
    right = second.run(scope)
    if right.errors:
        errors = {row: error for row, error in right.errors.items() if left.values[row].is_valid}
        right = Vector(right.values, errors)
    return left, right


def merged(earlier: Errors, later: Errors) -> Errors:
    """Return both, the earlier one where a row has two."""
    if not later:
        return earlier
    if not earlier:
        return later
    return {**later, **earlier}


def without_errors(kernel: Callable[[Operand, Operand], pa.Array]) -> BinaryKernel:
    """Turn a function that never fails into a kernel."""
    return lambda left, right: (kernel(left, right), NO_ERRORS)
