"""Expressions evaluated on vectors with Spark's exact meaning, errors kept by row."""

from eddyline.evaluation.arithmetic import arithmetic_type
from eddyline.evaluation.casts import cast_never_fails
from eddyline.evaluation.failures import (
    ArithmeticFailure,
    Condition,
    UnsupportedExpressionError,
)
from eddyline.evaluation.families import is_floating, is_integer, is_text
from eddyline.evaluation.preparation import evaluate, forget_programs, prepare
from eddyline.evaluation.program import Program
from eddyline.evaluation.rehearsal import reason_not_to_evaluate
from eddyline.evaluation.support import fault_of, type_of

__all__ = [
    "ArithmeticFailure",
    "Condition",
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
