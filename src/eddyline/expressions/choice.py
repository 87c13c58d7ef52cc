"""CASE and COALESCE: every part is computed only for the rows that come to it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eddyline.expressions.program import (
    Positions,
    Program,
    Run,
    moved,
    null_mask,
    true_mask,
)
from eddyline.expressions.vector import Scope, Vector


class _Assembly:
    """A column put together from parts, each of which knows the rows that it is for."""

    def __init__(self, rows: int, column_type: pa.DataType) -> None:
        self._rows = rows
        self._type = column_type
        self._parts: list[pa.Array] = []
        self._places: list[Positions] = []
        self._errors: dict[int, Exception] = {}

    def add(self, part: Vector, places: Positions) -> None:
        """Add the results of the rows ``places``."""
        self._parts.append(part.values)
        self._places.append(places)
        self._errors.update(moved(part.errors, places))

    def fail(self, errors: dict[int, Exception]) -> None:
        """Add rows that failed before they had a value, by row number."""
        if errors:
            failed = np.fromiter(errors, dtype=np.int64, count=len(errors))
            self.add(Vector(pa.nulls(len(failed), self._type)), failed)
            self._errors.update(errors)

    def vector(self) -> Vector:
        """Return the whole column; every row must have been added once."""
        if len(self._parts) == 1:  # the one part has all the rows, in order
            return Vector(self._parts[0], self._errors)
        if not self._parts:
            return Vector(pa.nulls(0, self._type))
        source = np.empty(self._rows, dtype=np.int64)
        source[np.concatenate(self._places)] = np.arange(self._rows)
        return Vector(pa.concat_arrays(self._parts).take(pa.array(source)), self._errors)


def case(branches: tuple[tuple[Program, Program], ...], otherwise: Program) -> Run:
    """Prepare CASE WHEN; a condition that failed makes its row fail."""

    def run(scope: Scope) -> Vector:
        assembly = _Assembly(len(scope), otherwise.type)
        undecided: Positions = np.arange(len(scope))
        for condition, value in branches:
            if not len(undecided):
                break
            verdict = condition.run(_narrowed(scope, undecided))
            failures = dict(moved(verdict.errors, undecided))
            assembly.fail(failures)
            taken = true_mask(verdict.values)
            _add_run(assembly, value, scope, undecided[taken])
            left = ~taken
            left[list(verdict.errors)] = False
            undecided = undecided[left]
        _add_run(assembly, otherwise, scope, undecided)
        return assembly.vector()

    return run


def coalesce(operands: tuple[Program, ...]) -> Run:
    """Prepare COALESCE: the first operand that is not NULL; a failed one ends the search."""
    *earlier, last = operands

    def run(scope: Scope) -> Vector:
        assembly = _Assembly(len(scope), last.type)
        undecided: Positions = np.arange(len(scope))
        for operand in earlier:
            if not len(undecided):
                break
            vector = operand.run(_narrowed(scope, undecided))
            failures = dict(moved(vector.errors, undecided))
            assembly.fail(failures)
            null = null_mask(vector.values)
            if not null.all():
                found = np.flatnonzero(~null)
                assembly.add(Vector(vector.values.take(pa.array(found))), undecided[found])
            null[list(vector.errors)] = False
            undecided = undecided[null]
        _add_run(assembly, last, scope, undecided)
        return assembly.vector()

    return run


def _narrowed(scope: Scope, positions: Positions) -> Scope:
    return scope if len(positions) == len(scope) else scope.narrow(positions)


def _add_run(assembly: _Assembly, program: Program, scope: Scope, positions: Positions) -> None:
    """Run a program where it is wanted, and not at all where it is not."""
    if len(positions):
        assembly.add(program.run(_narrowed(scope, positions)), positions)
