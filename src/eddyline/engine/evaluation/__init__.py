"""Expressions evaluated on vectors with Spark's exact meaning, errors kept by row."""

from eddyline.engine.evaluation.arithmetic import arithmetic_type
from eddyline.engine.evaluation.casts import cast_never_fails
from eddyline.engine.evaluation.failures import (
    ArithmeticFailure,
    Condition,
    UnsupportedExpressionError,
)
from eddyline.engine.evaluation.families import is_floating, is_integer, is_text
from eddyline.engine.evaluation.preparation import evaluate, forget_programs, prepare
from eddyline.engine.evaluation.program import Program
from eddyline.engine.evaluation.rehearsal import reason_not_to_evaluate
from eddyline.engine.evaluation.support import supported, type_of

__all__ = [
    "ArithmeticFailure",
    "Condition",
    "Program",
    "UnsupportedExpressionError",
    "arithmetic_type",
    "cast_never_fails",
    "evaluate",
    "forget_programs",
    "is_floating",
    "is_integer",
    "is_text",
    "prepare",
    "reason_not_to_evaluate",
    "supported",
    "type_of",
]
