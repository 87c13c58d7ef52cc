"""Expressions as frozen data, and Spark's exact meaning of them, errors kept by row."""

from eddyline.errors import UnsupportedExpressionError
from eddyline.expressions.arithmetic import arithmetic_type
from eddyline.expressions.casts import cast_never_fails
from eddyline.expressions.families import is_floating, is_integer, is_text
from eddyline.expressions.preparation import evaluate, forget_programs, prepare
from eddyline.expressions.program import Program
from eddyline.expressions.rehearsal import reason_not_to_evaluate
from eddyline.expressions.row_errors import ArithmeticFailure, ErrorCondition
from eddyline.expressions.support import fault_of, type_of

__all__ = [
    "ArithmeticFailure",
    "ErrorCondition",
    "Program",
    "UnsupportedExpressionError",
    "arithmetic_type",
    "cast_never_fails",
    "evaluate",
    "fault_of",
    "forget_programs",
    "is_floating",
    "is_integer",
    "is_text",
    "prepare",
    "reason_not_to_evaluate",
    "type_of",
]
