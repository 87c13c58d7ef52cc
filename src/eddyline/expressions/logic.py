"""Three-valued logic, with an error as a fourth value.

AND and OR do not depend on the order of their terms: FALSE decides an AND and
TRUE an OR whatever the other terms are, NULL or failed, and only then does an
error count. Spark, which goes from left to right, fails on some of these rows;
it never gives another value.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.expressions.collective_failure import hides
from eddyline.expressions.program import Errors, Program, Run, run_at, with_nulls
from eddyline.expressions.strict import unary
from eddyline.expressions.vector import NO_ERRORS, Scope, Vector


def conjunction(terms: tuple[Program, ...]) -> Run:
    """Prepare Kleene's AND of the terms."""
    return _connective(terms, decisive=False)


def disjunction(terms: tuple[Program, ...]) -> Run:
    """Prepare Kleene's OR of the terms."""
    return _connective(terms, decisive=True)


def negation(operand: Program) -> Run:
    """Prepare NOT."""
    return unary(operand, lambda values: (pc.invert(values), NO_ERRORS))


def null_test(operand: Program) -> Run:
    """Prepare IS NULL: never NULL itself, but failed where the operand failed."""

    def run(scope: Scope) -> Vector:
        vector = operand.run(scope)
        return _total(vector.values.is_null(), vector.errors)

    return run


def nan_test(operand: Program) -> Run:
    """Prepare IS NaN, which is FALSE for NULL."""

    def run(scope: Scope) -> Vector:
        vector = operand.run(scope)
        values = pc.is_nan(vector.values)
        if values.null_count:
            values = pc.fill_null(values, fill_value=False)
        return _total(values, vector.errors)

    return run


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
    """Run a term, sparing its calls for the rows of which the terms before decided."""
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
