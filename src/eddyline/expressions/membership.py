"""SQL's IN: TRUE at the first equal option, else NULL if one was NULL, else FALSE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.expressions.catalyst_classes import CatalystClass, Ingredients, SparkOperator
from eddyline.expressions.comparison import equality, fault_of_comparison
from eddyline.expressions.expression import Expression, Names, Types, type_of
from eddyline.expressions.leaves import Literal
from eddyline.expressions.program import (
    Positions,
    Program,
    Run,
    null_mask,
    true_mask,
    unary,
)
from eddyline.expressions.value_types import is_floating
from eddyline.expressions.vector import NO_ERRORS, Scope, Vector


@dataclass(frozen=True, slots=True)
class In(Expression):
    """SQL's IN over expressions of the operand's type, NULLs among the options included."""

    operand: Expression
    options: tuple[Expression, ...]

    @property
    def children(self) -> tuple[Expression, ...]:
        """The operand, then the options."""
        return (self.operand, *self.options)

    def fault(self, types: Types) -> str | None:
        """Refuse no options, whose value for NULL depends on a legacy setting, and odd types."""
        if not self.options:
            return "IN without options"
        return fault_of_comparison(types, only_equality=False)

    def run(self, operands: tuple[Program, ...]) -> Run:
        """Return the search among the options."""
        literals = tuple(option for option in self.options if isinstance(option, Literal))
        if len(literals) == len(self.options):
            return _among_literals(operands[0], literals)
        return _among(operands[0], operands[1:])

    def text(self, names: Names) -> str:
        """Return the operand and the options."""
        options = ", ".join(option.text(names) for option in self.options)
        return f"{self.operand.part(names)} IN ({options})"


# ---------------------------------------------------------------- over vectors


def _among_literals(operand: Program, options: tuple[Literal, ...]) -> Run:
    """Return IN over constants, by one look-up in a hash table."""
    has_null = any(option.value is None for option in options)
    choices = pa.array(
        [option.value for option in options if option.value is not None], operand.type
    )
    floating = is_floating(operand.type)
    lookup = pc.SetLookupOptions(value_set=_positive_zeros(choices) if floating else choices)
    is_in = pc.get_function("is_in")

    def kernel(values: pa.Array) -> pa.Array:
        hits = is_in.call([_positive_zeros(values) if floating else values], lookup)
        if has_null:
            return pc.if_else(hits, hits, pa.scalar(None, pa.bool_()))
        if values.null_count:
            return pc.if_else(values.is_valid(), hits, pa.scalar(None, pa.bool_()))
        return hits

    return unary(operand, lambda values: (kernel(values), NO_ERRORS))


def _among(operand: Program, options: tuple[Program, ...]) -> Run:
    """Return IN over expressions; as in Spark a row looks at no option after its match.

    An option that failed makes the row fail, unless an option before it matched.
    """
    equal = equality(operand.type)

    def run(scope: Scope) -> Vector:
        vector = operand.run(scope)
        rows = len(scope)
        errors = dict(vector.errors)
        unknown = null_mask(vector.values).copy()
        matched = np.zeros(rows, dtype=np.bool_)
        undecided: Positions = np.flatnonzero(~unknown)
        for option in options:
            if not len(undecided):
                break
            here = scope if len(undecided) == rows else scope.narrow(undecided)
            candidate = option.run(here)
            verdict = equal(vector.values.take(pa.array(undecided)), candidate.values)
            hit = true_mask(verdict)
            matched[undecided[hit]] = True
            unknown[undecided[null_mask(verdict)]] = True
            failed = np.fromiter(candidate.errors, dtype=np.int64)
            for row in failed:
                errors[int(undecided[row])] = candidate.errors[int(row)]
            left = ~hit
            left[failed] = False
            undecided = undecided[left]
        return Vector(pa.array(matched, mask=unknown & ~matched), errors)

    return run


def _positive_zeros(values: pa.Array) -> pa.Array:
    """Turn -0.0 into 0.0, its equal, which a hash table keeps apart (NaN finds NaN)."""
    return pc.add(values, pa.scalar(0.0, values.type))


# ---------------------------------------------------------------- of Spark's expressions


def _in(given: Ingredients) -> Expression:
    operand, *options = given.operands()
    return In(operand, tuple(options))


def _in_set(given: Ingredients) -> Expression:
    operand = given.operand()
    return In(operand, tuple(given.members(type_of(operand))))


def _is_in_constants(node: SparkOperator) -> bool:
    """Whether a value is looked up among constants: no operand decides whether another is read."""
    return all(name == "Literal" for name in node.operand_names[1:])


CATALYST: Final = (
    CatalystClass("In", _in, is_strict=_is_in_constants),
    CatalystClass("InSet", _in_set, is_strict=_is_in_constants),
)
