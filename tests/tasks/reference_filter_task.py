"""A fused function without an eddy: it evaluates everything, row by row, in plain Python.

It shows whether a plan was rewritten rightly, whatever the engine does. It
knows the functions and the operators that the tests use, no others.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark import cloudpickle
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import Row
from pyspark.sql.types import BooleanType, StructField, StructType

from eddyline.blocks.column_types import arrow_type, spark_type
from eddyline.blocks.filter_block import FilterBlock, FunctionKind, UserFunction
from eddyline.expressions import (
    And,
    Argument,
    Arithmetic,
    ArithmeticOperator,
    Call,
    Case,
    Cast,
    Coalesce,
    Comparison,
    ComparisonOperator,
    Expression,
    In,
    IsNaN,
    IsNull,
    Literal,
    Not,
    Or,
    StringMatch,
    StringTest,
    call_of,
)
from eddyline.planner.rewrite.filter_rewrite import FusedFunction
from eddyline.quirks import arrow_columns

_PICKLER: Any = CloudPickleSerializer()  # type: ignore[no-untyped-call]

# Workers cannot import the tests, so this module's code travels whole.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


def fuse(block: FilterBlock) -> FusedFunction:
    """Return the block as one function that computes every row in full."""
    types = [block.functions[call_of(each).function].return_type for each in block.outputs]
    fields = [StructField(f"v{i}", spark_type(text)) for i, text in enumerate(types)]
    result = StructType([StructField("keep", BooleanType()), *fields])
    return FusedFunction(
        _PICKLER.dumps((arrow_columns.by_task(Fused(block)), result)), result.json()
    )


class Fused:
    """The callable that Spark runs on the batches of a task."""

    def __init__(self, block: FilterBlock) -> None:
        self.block = block

    def __call__(self, batches: Iterator[Any]) -> Iterator[pa.StructArray]:
        functions = [loaded(function) for function in self.block.functions]
        outputs = [self.block.functions[call_of(each).function] for each in self.block.outputs]
        types = [arrow_type(function.return_type, "UTC") for function in outputs]
        for batch in batches:
            columns = batch if isinstance(batch, tuple) else (batch,)
            rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
            keep = [evaluate(self.block.predicate, row, functions) is True for row in rows]
            values = [
                pa.array(
                    [
                        evaluate(call, row, functions) if kept else None
                        for row, kept in zip(rows, keep, strict=True)
                    ],
                    kind,
                )
                for call, kind in zip(self.block.outputs, types, strict=True)
            ]
            names = ["keep", *(f"v{i}" for i in range(len(values)))]
            yield pa.StructArray.from_arrays([pa.array(keep, pa.bool_()), *values], names)


def loaded(function: UserFunction) -> Callable[..., object]:
    """Return a user function as one over plain values."""
    steps = [_PICKLER.loads(command)[0] for command in function.commands]
    types = [arrow_type(text, "UTC") for text in function.argument_types]
    plain_types = [spark_type(text) for text in function.argument_types]

    def columns(values: tuple[object, ...]) -> list[Any]:
        arrays = [pa.array([value], kind) for value, kind in zip(values, types, strict=True)]
        arrow = function.kind in {FunctionKind.ARROW, FunctionKind.ARROW_ITERATOR}
        return arrays if arrow else [array.to_pandas() for array in arrays]

    def rows(values: tuple[object, ...]) -> list[object]:
        return [
            Row(**value) if isinstance(kind, StructType) and isinstance(value, dict) else value
            for value, kind in zip(values, plain_types, strict=True)
        ]

    def call(*values: object) -> object:
        plain = function.kind in {FunctionKind.PICKLED, FunctionKind.ARROW_BATCHED}
        given: Any = rows(values) if plain else columns(values)
        if function.kind in {FunctionKind.ARROW_ITERATOR, FunctionKind.PANDAS_ITERATOR}:
            result: Any = iter([given[0] if len(given) == 1 else tuple(given)])
            for step in steps:
                result = step(result)
            result = next(result)
        else:
            pairs = list(zip(function.keywords, given, strict=True))
            positional = [value for keyword, value in pairs if keyword is None]
            named = {keyword: value for keyword, value in pairs if keyword is not None}
            result = steps[0](*positional, **named)
            for step in steps[1:]:
                result = step(result)
        if plain:
            return result
        if isinstance(result, pd.Series):
            result = pa.array(result, arrow_type(function.return_type, "UTC"), from_pandas=True)
        return result[0].as_py()

    return call


def evaluate(  # noqa: C901, PLR0911, PLR0912  # a case an operator
    expression: Expression, row: tuple[Any, ...], functions: list[Callable[..., object]]
) -> Any:  # noqa: ANN401  # a value of any type
    """Return the value of an expression for one row; None is NULL."""

    def value(part: Expression) -> Any:  # noqa: ANN401
        return evaluate(part, row, functions)

    match expression:
        case Argument(index):
            return row[index]
        case Literal(constant, kind):
            return pa.scalar(constant, kind).as_py()
        case Call(function, arguments):
            return functions[function](*map(value, arguments))
        case And(terms):
            return conjunction([value(term) for term in terms])
        case Or(terms):
            negated = conjunction([negation(value(term)) for term in terms])
            return negation(negated)
        case Not(operand):
            return negation(value(operand))
        case IsNull(operand):
            return value(operand) is None
        case IsNaN(operand):
            held = value(operand)
            return held is not None and math.isnan(held)
        case Comparison(operator, left, right):
            return compared(operator, value(left), value(right))
        case Arithmetic(operator, operands):
            return computed(operator, [value(operand) for operand in operands])
        case In(operand, options):
            same = [
                compared(ComparisonOperator.EQUAL, value(operand), value(option))
                for option in options
            ]
            return negation(conjunction([negation(answer) for answer in same]))
        case StringMatch(test, operand, needle):
            return matched(test, value(operand), needle)
        case Case(branches, otherwise):
            for condition, answer in branches:
                if value(condition) is True:
                    return value(answer)
            return value(otherwise)
        case Coalesce(operands):
            return next((held for each in operands if (held := value(each)) is not None), None)
        case Cast(operand, kind):
            held = value(operand)
            return None if held is None else pa.scalar(held).cast(kind).as_py()
    raise TypeError(f"The reference knows no {expression!r}.")


def conjunction(values: list[bool | None]) -> bool | None:
    """Return Kleene's AND."""
    if False in values:
        return False
    return None if None in values else True


def negation(value: bool | None) -> bool | None:  # noqa: FBT001  # a value, not a switch
    """Return Kleene's NOT."""
    return None if value is None else not value


def matched(test: StringTest, text: str | None, needle: str) -> bool | None:
    """Return whether a string passes a test."""
    if text is None:
        return None
    if test is StringTest.CONTAINS:
        return needle in text
    return text.startswith(needle) if test is StringTest.STARTS_WITH else text.endswith(needle)


def compared(operator: ComparisonOperator, left: Any, right: Any) -> bool | None:  # noqa: ANN401
    """Return the answer of a comparison of values that are not NaN."""
    if operator is ComparisonOperator.NULL_SAFE_EQUAL:
        return bool(left == right)
    if left is None or right is None:
        return None
    answers = {
        ComparisonOperator.EQUAL: left == right,
        ComparisonOperator.LESS: left < right,
        ComparisonOperator.LESS_OR_EQUAL: left <= right,
        ComparisonOperator.GREATER: left > right,
        ComparisonOperator.GREATER_OR_EQUAL: left >= right,
    }
    return bool(answers[operator])


def computed(operator: ArithmeticOperator, operands: list[Any]) -> Any:  # noqa: ANN401
    """Return the result of arithmetic that does not overflow."""
    if None in operands:
        return None
    first, last = operands[0], operands[-1]
    if operator is ArithmeticOperator.NEGATE:
        return -first
    if operator is ArithmeticOperator.ABSOLUTE:
        return abs(first)
    if operator is ArithmeticOperator.DIVIDE:
        return first / last
    if operator is ArithmeticOperator.REMAINDER:
        return math.fmod(first, last) if isinstance(first, float) else int(math.fmod(first, last))
    answers = {
        ArithmeticOperator.ADD: first + last,
        ArithmeticOperator.SUBTRACT: first - last,
        ArithmeticOperator.MULTIPLY: first * last,
    }
    return answers[operator]
