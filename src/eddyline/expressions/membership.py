"""SQL's IN: TRUE at the first equal option, else NULL if one was NULL, else FALSE."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.expressions.comparison import equality
from eddyline.expressions.expression import Literal
from eddyline.expressions.families import is_floating
from eddyline.expressions.program import Positions, Program, Run, null_mask, true_mask
from eddyline.expressions.strict import unary
from eddyline.expressions.vector import NO_ERRORS, Scope, Vector


def among_literals(operand: Program, options: tuple[Literal, ...]) -> Run:
    """Prepare IN over constants, by one look-up in a hash table."""
    has_null = any(option.value is None for option in options)
    choices = pa.array(
        [option.value for option in options if option.value is not None], operand.type
    )
    floating = is_floating(operand.type)
    lookup = pc.SetLookupOptions(value_set=_positive_zeros(choices) if floating else choices)
    is_in = pc.get_function("is_in")

    def kernel(values: pa.Array) -> pa.Array:
        found = is_in.call([_positive_zeros(values) if floating else values], lookup)
        if has_null:
            return pc.if_else(found, found, pa.scalar(None, pa.bool_()))
        if values.null_count:
            return pc.if_else(values.is_valid(), found, pa.scalar(None, pa.bool_()))
        return found

    return unary(operand, lambda values: (kernel(values), NO_ERRORS))


def among(operand: Program, options: tuple[Program, ...]) -> Run:
    """Prepare IN over expressions; as in Spark a row looks at no option after its match.

    An option that failed makes the row fail, unless an option before it matched.
    """
    equal = equality(operand.type)

    def run(scope: Scope) -> Vector:
        vector = operand.run(scope)
        rows = len(scope)
        errors = dict(vector.errors)
        unknown = null_mask(vector.values).copy()
        found = np.zeros(rows, dtype=np.bool_)
        undecided: Positions = np.flatnonzero(~unknown)
        for option in options:
            if not len(undecided):
                break
            here = scope if len(undecided) == rows else scope.narrow(undecided)
            candidate = option.run(here)
            verdict = equal(vector.values.take(pa.array(undecided)), candidate.values)
            hit = true_mask(verdict)
            found[undecided[hit]] = True
            unknown[undecided[null_mask(verdict)]] = True
            failed = np.fromiter(candidate.errors, dtype=np.int64)
            for row in failed:
                errors[int(undecided[row])] = candidate.errors[int(row)]
            left = ~hit
            left[failed] = False
            undecided = undecided[left]
        return Vector(pa.array(found, mask=unknown & ~found), errors)

    return run


def _positive_zeros(values: pa.Array) -> pa.Array:
    """Turn -0.0 into 0.0, its equal, which a hash table keeps apart (NaN finds NaN)."""
    return pc.add(values, pa.scalar(0.0, values.type))
