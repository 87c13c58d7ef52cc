"""Expressions as frozen data, and Spark's exact meaning of them, errors kept by row."""

from eddyline.errors import UnsupportedExpressionError
from eddyline.expressions.arithmetic import Arithmetic, ArithmeticOperator, arithmetic_type
from eddyline.expressions.casts import Cast, cast_never_fails
from eddyline.expressions.catalyst_classes import EvaluationMode
from eddyline.expressions.choice import Case, Coalesce, call_of, called_where
from eddyline.expressions.comparison import Comparison, ComparisonOperator
from eddyline.expressions.evaluation import (
    evaluate,
    forget_programs,
    prepare,
    reason_not_to_evaluate,
)
from eddyline.expressions.expression import (
    Expression,
    cannot_fail,
    fault_of,
    render,
    type_of,
    with_children,
)
from eddyline.expressions.families import catalyst_class
from eddyline.expressions.leaves import (
    Argument,
    Call,
    Failure,
    Literal,
    calls_in,
    with_arguments,
)
from eddyline.expressions.logic import And, IsNaN, IsNull, Not, Or, require_boolean
from eddyline.expressions.membership import In
from eddyline.expressions.program import Program
from eddyline.expressions.strings import Like, RLike, StringMatch, StringTest, VariableMatch
from eddyline.expressions.value_types import is_floating, is_integer, is_text
from eddyline.expressions.vector import ArithmeticFailure, ErrorCondition

__all__ = [
    "And",
    "Argument",
    "Arithmetic",
    "ArithmeticFailure",
    "ArithmeticOperator",
    "Call",
    "Case",
    "Cast",
    "Coalesce",
    "Comparison",
    "ComparisonOperator",
    "ErrorCondition",
    "EvaluationMode",
    "Expression",
    "Failure",
    "In",
    "IsNaN",
    "IsNull",
    "Like",
    "Literal",
    "Not",
    "Or",
    "Program",
    "RLike",
    "StringMatch",
    "StringTest",
    "UnsupportedExpressionError",
    "VariableMatch",
    "arithmetic_type",
    "call_of",
    "called_where",
    "calls_in",
    "cannot_fail",
    "cast_never_fails",
    "catalyst_class",
    "evaluate",
    "fault_of",
    "forget_programs",
    "is_floating",
    "is_integer",
    "is_text",
    "prepare",
    "reason_not_to_evaluate",
    "render",
    "require_boolean",
    "type_of",
    "with_arguments",
    "with_children",
]
