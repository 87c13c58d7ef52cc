"""Three-valued logic, with an error as a fourth value; tests for NULL and NaN.

AND and OR do not depend on the order of their terms: FALSE decides an AND and
TRUE an OR whatever the other terms are, NULL or failed, and only then does an
error count. Spark, which goes from left to right, fails on some of these rows;
it never gives another value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.expressions.catalyst_classes import (
    CatalystClass,
    Ingredients,
    NotTranslatedError,
    yes,
)
from eddyline.expressions.expression import BOOLEAN, Expression, Names, OfOne, Types, type_of
from eddyline.expressions.program import Errors, Program, Run, run_at, unary, with_nulls
from eddyline.expressions.value_types import is_floating
from eddyline.expressions.vector import NO_ERRORS, Scope, Vector, hides


@dataclass(frozen=True, slots=True)
class _Connective(Expression):
    """Base of AND and OR: boolean terms; a term of the ``decisive`` value decides."""

    terms: tuple[Expression, ...]
    is_compound: ClassVar[bool] = True
    word: ClassVar[str]
    decisive: ClassVar[bool]

    def __post_init__(self) -> None:
        """Check that there is a term."""
        if not self.terms:
            raise ValueError(f"{self.word} needs a term")

    @property
    def children(self) -> tuple[Expression, ...]:
        """The terms."""
        return self.terms

    def fault(self, types: Types) -> str | None:
        """Refuse terms that are no conditions."""
        return _fault_of_terms(self, types)

    def run(self, operands: tuple[Program, ...]) -> Run:
        """Return Kleene's meaning of the terms."""
        return _connective(operands, decisive=self.decisive)

    def text(self, names: Names) -> str:
        """Return the terms, those of the other connective in parentheses."""
        return f" {self.word} ".join(
            term.part(names)
            if isinstance(term, _Connective) and term.word != self.word
            else term.text(names)
            for term in self.terms
        )


@dataclass(frozen=True, slots=True)
class And(_Connective):
    """Kleene's AND of boolean terms; ValueError where there is none."""

    word: ClassVar[str] = "AND"
    decisive: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Or(_Connective):
    """Kleene's OR of boolean terms; ValueError where there is none."""

    word: ClassVar[str] = "OR"
    decisive: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Not(OfOne):
    """Kleene's NOT."""

    def fault(self, types: Types) -> str | None:
        """Refuse an operand that is no condition."""
        return _fault_of_terms(self, types)

    def run(self, operands: tuple[Program, ...]) -> Run:
        """Return NOT, which leaves NULL as it is."""
        return unary(operands[0], lambda values: (pc.invert(values), NO_ERRORS))

    def text(self, names: Names) -> str:
        """Return the test that is written so, or NOT."""
        if isinstance(self.operand, IsNull):
            return f"{self.operand.operand.part(names)} IS NOT NULL"
        return f"NOT {self.operand.part(names)}"


@dataclass(frozen=True, slots=True)
class IsNull(OfOne):
    """TRUE where the operand is NULL, else FALSE."""

    def fault(self, types: Types) -> None:
        """Return None: any value may be NULL."""

    def run(self, operands: tuple[Program, ...]) -> Run:
        """Return the test: never NULL itself, but failed where the operand failed."""
        (operand,) = operands

        def run(scope: Scope) -> Vector:
            vector = operand.run(scope)
            return _total(vector.values.is_null(), vector.errors)

        return run

    def text(self, names: Names) -> str:
        """Return the test."""
        return f"{self.operand.part(names)} IS NULL"


@dataclass(frozen=True, slots=True)
class IsNaN(OfOne):
    """TRUE where the operand is NaN, else FALSE; FALSE for NULL, as in Spark."""

    def fault(self, types: Types) -> str | None:
        """Refuse what cannot be NaN."""
        return None if is_floating(types[0]) else f"isnan of {types[0]}"

    def run(self, operands: tuple[Program, ...]) -> Run:
        """Return the test."""
        (operand,) = operands

        def run(scope: Scope) -> Vector:
            vector = operand.run(scope)
            values = pc.is_nan(vector.values)
            if values.null_count:
                values = pc.fill_null(values, fill_value=False)
            return _total(values, vector.errors)

        return run

    def text(self, names: Names) -> str:
        """Return the test."""
        return f"isnan({self.operand.text(names)})"


def require_boolean(predicate: Expression) -> None:
    """Raise ValueError where a predicate, or a term of its AND, OR and NOT, is not boolean."""
    if isinstance(predicate, And | Or | Not):
        for term in predicate.children:
            require_boolean(term)
        return
    if type_of(predicate) != BOOLEAN:
        raise ValueError(f"{predicate} is {type_of(predicate)}, not boolean, and no predicate")


def _fault_of_terms(expression: Expression, types: Types) -> str | None:
    if set(types) == {BOOLEAN}:
        return None
    return f"{type(expression).__name__} of what is not boolean"


# ---------------------------------------------------------------- over vectors


def _total(values: pa.Array, errors: Errors) -> Vector:
    return Vector(with_nulls(values, errors), errors) if errors else Vector(values)


def _connective(terms: tuple[Program, ...], *, decisive: bool) -> Run:
    combine = pc.or_kleene if decisive else pc.and_kleene
    # Terms without calls come first: they cost microseconds and may spare calls.
    order = sorted(range(len(terms)), key=lambda number: terms[number].calls)

    def run(scope: Scope) -> Vector:
        first = terms[order[0]].run(scope)
        values = first.values
        failed: dict[int, Errors] = {order[0]: first.errors} if first.errors else {}
        for number in order[1:]:
            term = terms[number]
            vector = _run_undecided(term, scope, values, decisive=decisive)
            values = combine(values, vector.values)
            if vector.errors:
                failed[number] = vector.errors
        return Vector(values, _undecided_errors(failed, values) if failed else NO_ERRORS)

    return run


def _run_undecided(term: Program, scope: Scope, values: pa.Array, *, decisive: bool) -> Vector:
    """Run a term, sparing its calls for the rows that the terms before have decided."""
    trues = values.true_count
    decided = trues if decisive else len(values) - values.null_count - trues
    if not term.calls or not decided:
        return term.run(scope)
    # A decided row gets NULL here, which leaves it as it is.
    undecided = pc.fill_null(values, fill_value=not decisive).to_numpy(zero_copy_only=False)
    return run_at(term, scope, np.flatnonzero(undecided != decisive))


def _undecided_errors(failed: dict[int, Errors], values: pa.Array) -> Errors:
    """Return the errors of rows without a decision, of the first term in written order.

    Of several rows one that may go away when its row is tried alone goes first.
    """
    errors: dict[int, Exception] = {}
    several = len(values) > 1
    for number in sorted(failed):
        for row, error in failed[number].items():
            # A row with an error is NULL unless another term decided it.
            if not values[row].is_valid and (
                row not in errors or (several and hides(errors[row], error))
            ):
                errors[row] = error
    return errors


# ---------------------------------------------------------------- of Spark's expressions


def _and(given: Ingredients) -> Expression:
    terms: list[Expression] = []
    for operand in given.operands():
        terms.extend(operand.terms if isinstance(operand, And) else (operand,))
    return And(tuple(terms))


def _or(given: Ingredients) -> Expression:
    terms: list[Expression] = []
    for operand in given.operands():
        terms.extend(operand.terms if isinstance(operand, Or) else (operand,))
    return Or(tuple(terms))


def _at_least_non_nulls(given: Ingredients) -> Expression:
    """Build ``df.dropna()``: so many operands must be neither NULL nor NaN."""
    operands = given.operands()
    wanted = given.fields.get("n")
    if wanted not in (1, len(operands)):
        raise NotTranslatedError("a count of operands that are not NULL")
    tests: list[Expression] = []
    for operand in operands:
        present: Expression = Not(IsNull(operand))
        if is_floating(type_of(operand)):
            present = And((present, Not(IsNaN(operand))))
        tests.append(present)
    if len(tests) == 1:
        return tests[0]
    return And(tuple(tests)) if wanted == len(operands) else Or(tuple(tests))


CATALYST: Final = (
    CatalystClass("And", _and),
    CatalystClass("AtLeastNNonNulls", _at_least_non_nulls),
    CatalystClass("IsNaN", lambda given: IsNaN(given.operand())),
    CatalystClass("IsNotNull", lambda given: Not(IsNull(given.operand()))),
    CatalystClass("IsNull", lambda given: IsNull(given.operand())),
    # These tell the optimizer something and leave the value as it is.
    CatalystClass("KnownFloatingPointNormalized", lambda given: given.operand()),
    CatalystClass("KnownNotNull", lambda given: given.operand()),
    CatalystClass("KnownNullable", lambda given: given.operand()),
    CatalystClass("Not", lambda given: Not(given.operand()), is_strict=yes),
    CatalystClass("Or", _or),
)
