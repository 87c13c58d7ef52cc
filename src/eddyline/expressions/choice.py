"""CASE and COALESCE: every part is computed only for the rows that come to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from eddyline.expressions.catalyst_classes import CatalystClass, Ingredients
from eddyline.expressions.expression import BOOLEAN, Expression, Names, Types, type_of
from eddyline.expressions.leaves import Call, Literal
from eddyline.expressions.program import (
    Positions,
    Program,
    Run,
    moved,
    null_mask,
    true_mask,
)
from eddyline.expressions.vector import Scope, Vector


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """CASE WHEN: the value of the first branch whose condition is TRUE, else ``otherwise``.

    A branch's value is computed only for the rows that take it.
    """

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression
    type: pa.DataType

    @property
    def children(self) -> tuple[Expression, ...]:
        """Condition and value of every branch, then the default."""
        return (*(part for branch in self.branches for part in branch), self.otherwise)

    def fault(self, types: Types) -> str | None:
        """Refuse conditions that are not boolean, and values of several types."""
        conditions, values = types[:-1:2], (*types[1:-1:2], types[-1])
        if set(conditions) != {BOOLEAN}:
            return "CASE without a boolean condition"
        return None if set(values) == {self.type} else "CASE of several types"

    def run(self, operands: tuple[Program, ...]) -> Run:
        """Return the choice of a branch; a condition that failed makes its row fail."""
        branches = tuple(zip(operands[:-1:2], operands[1:-1:2], strict=True))
        return _case(branches, operands[-1])

    def text(self, names: Names) -> str:
        """Return the branches."""
        whens = " ".join(f"WHEN {c.text(names)} THEN {v.text(names)}" for c, v in self.branches)
        return f"CASE {whens} ELSE {self.otherwise.text(names)} END"


@dataclass(frozen=True, slots=True)
class Coalesce(Expression):
    """The first operand that is not NULL; a later one is computed only where needed."""

    operands: tuple[Expression, ...]
    type: pa.DataType

    @property
    def children(self) -> tuple[Expression, ...]:
        """The operands."""
        return self.operands

    def fault(self, types: Types) -> str | None:
        """Refuse operands of several types."""
        return None if set(types) == {self.type} else "COALESCE of several types"

    def run(self, operands: tuple[Program, ...]) -> Run:
        """Return the search for a value; an operand that failed ends it."""
        return _coalesce(operands)

    def text(self, names: Names) -> str:
        """Return the operands."""
        return f"coalesce({', '.join(operand.text(names) for operand in self.operands)})"


def called_where(needed: Expression, call: Call) -> Case:
    """Return a call that is made only for rows for which a condition is TRUE, NULL elsewhere."""
    return Case(((needed, call),), Literal(None, call.type), call.type)


def call_of(value: Call | Case) -> Call:
    """Return the call of a value that is one, even if it is made for some rows only."""
    if isinstance(value, Call):
        return value
    call = value.branches[0][1]
    if not isinstance(call, Call):
        raise TypeError(f"{value} is no call that is made for some rows")
    return call


# ---------------------------------------------------------------- over vectors


class _Assembly:
    """A column put together from parts, each of which knows its rows."""

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


def _case(branches: tuple[tuple[Program, Program], ...], otherwise: Program) -> Run:
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


def _coalesce(operands: tuple[Program, ...]) -> Run:
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
                there = np.flatnonzero(~null)
                assembly.add(Vector(vector.values.take(pa.array(there))), undecided[there])
            null[list(vector.errors)] = False
            undecided = undecided[null]
        _add_run(assembly, last, scope, undecided)
        return assembly.vector()

    return run


def _narrowed(scope: Scope, positions: Positions) -> Scope:
    return scope if len(positions) == len(scope) else scope.narrow(positions)


def _add_run(assembly: _Assembly, program: Program, scope: Scope, positions: Positions) -> None:
    """Run a program for the rows that want it, and not at all if none does."""
    if len(positions):
        assembly.add(program.run(_narrowed(scope, positions)), positions)


# ---------------------------------------------------------------- of Spark's expressions


def _case_when(given: Ingredients) -> Expression:
    parts = given.operands()
    branches = tuple(zip(parts[:-1:2], parts[1::2], strict=False))
    result = type_of(parts[1])
    otherwise = parts[-1] if len(parts) % 2 else Literal(None, result)
    return Case(branches, otherwise, result)


def _if(given: Ingredients) -> Expression:
    condition, value, otherwise = given.operands()
    return Case(((condition, value),), otherwise, type_of(value))


def _first_value(given: Ingredients) -> Expression:
    operands = given.operands()
    return Coalesce(operands, type_of(operands[0]))


CATALYST: Final = (
    CatalystClass("CaseWhen", _case_when),
    CatalystClass("Coalesce", _first_value),
    CatalystClass("If", _if),
)
