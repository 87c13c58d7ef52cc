"""An expression made ready to run on vector after vector.

Whatever depends on the expression alone (which kernel, the scalar of a literal,
whether a user function is involved) is found out once, so that running a
comparison of a call with a literal over 1,000 rows costs a few microseconds
above the kernel itself.

Most operators are *strict*: NULL where an operand is NULL, failed where one fails.
Spark looks at the operands in order and stops at the first that is NULL or fails: that one decides
the row. So NULL + (1 / 0) is NULL and (1 / 0) + NULL fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.expressions.vector import NO_ERRORS, Scope, Vector

Errors = Mapping[int, Exception]
Positions = npt.NDArray[np.int64]
Run = Callable[[Scope], Vector]


@dataclass(frozen=True, slots=True)
class Program:
    """One prepared expression.

    ``run`` gives a vector of ``type`` with one result per row of the scope.
    ``calls`` says whether running it may call a user function, so is worth
    avoiding. ``constant`` is the value of a literal that is not NULL, which
    kernels take as it is instead of a column of copies.
    """

    run: Run
    type: pa.DataType
    calls: bool = False
    constant: pa.Scalar | None = None


def run_at(program: Program, scope: Scope, positions: Positions) -> Vector:
    """Run ``program`` for some rows of ``scope`` only; every other row is NULL.

    With no positions nothing is run at all, so no user function is called.
    """
    rows = len(scope)
    if len(positions) == rows:
        return program.run(scope)
    if not len(positions):
        return Vector(pa.nulls(rows, program.type))
    vector = program.run(scope.narrow(positions))
    return Vector(spread(vector.values, positions, rows), moved(vector.errors, positions))


def spread(values: pa.Array, positions: Positions, rows: int) -> pa.Array:
    """Return the values of some rows as a column of all rows, NULL for the others."""
    if len(positions) == rows:
        return values
    source = np.full(rows, -1, dtype=np.int64)
    source[positions] = np.arange(len(positions))
    return values.take(pa.array(source, mask=source < 0))


def moved(errors: Errors, positions: Positions) -> Errors:
    """Return the errors of a narrowed scope under the row numbers of the wider one."""
    if not errors:
        return NO_ERRORS
    return {int(positions[position]): error for position, error in errors.items()}


def with_nulls(values: pa.Array, positions: Iterable[int]) -> pa.Array:
    """Return ``values`` with NULL at ``positions``: what a row that failed must hold."""
    failed = np.zeros(len(values), dtype=np.bool_)
    failed[list(positions)] = True
    return pc.if_else(pa.array(failed), pa.scalar(None, values.type), values)


def true_mask(values: pa.Array) -> npt.NDArray[np.bool_]:
    """Return where a boolean array is TRUE (not FALSE, not NULL)."""
    if values.null_count:
        values = pc.fill_null(values, fill_value=False)
    mask: npt.NDArray[np.bool_] = values.to_numpy(zero_copy_only=False)
    return mask


def null_mask(values: pa.Array) -> npt.NDArray[np.bool_]:
    """Return where an array is NULL."""
    mask: npt.NDArray[np.bool_] = values.is_null().to_numpy(zero_copy_only=False)
    return mask


# ---------------------------------------------------------------- strict operators

Operand: TypeAlias = "pa.Array | pa.Scalar"

# A kernel takes arrays, or an array and a scalar that is not NULL, and gives one
# array, NULL where an operand is, and the errors that it found itself.
UnaryKernel: TypeAlias = Callable[[pa.Array], tuple[pa.Array, Errors]]
BinaryKernel: TypeAlias = Callable[[Operand, Operand], tuple[pa.Array, Errors]]


def unary(operand: Program, kernel: UnaryKernel) -> Run:
    """Return the program's ``run`` of a kernel over one operand."""

    def run(scope: Scope) -> Vector:
        vector = operand.run(scope)
        values, errors = kernel(vector.values)
        return Vector(values, merged(vector.errors, errors))

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
        values, errors = kernel(left.values, right.values)
        return Vector(values, merged(merged(left.errors, right.errors), errors))

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
