"""What tasks say of sampled rows: which may need a paid call, without any."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from eddyline.blocks.filter_block import (
    CalledByDriver,
    FunctionKind,
    SessionSettings,
    UserFunction,
)
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.errors import FunctionFailedError
from eddyline.expressions import And, Argument, Call, Expression
from eddyline.keeping.key_bytes import key_of
from eddyline.tasks.survey import KnownAnswers, SurveyBlock, SurveyFunction, known_answers

BOOL, INT = pa.bool_(), pa.int64()
X = Argument(0, INT)
SETTINGS = SessionSettings("UTC")


def function(name: str, driver: CalledByDriver | None = None) -> UserFunction:
    from pyspark.sql.types import BooleanType  # noqa: PLC0415 - pickled beside the code

    def even(number: int) -> bool:
        return 6 // number % 2 == 0

    command = cloudpickle.dumps((even, BooleanType()))  # type: ignore[no-untyped-call]  # PySpark's own
    kind = FunctionKind.PICKLED
    return UserFunction(name, kind, (command,), ('"long"',), (None,), '"boolean"', driver)


FREE = function("even")
PAID = function("paid", CalledByDriver(1, "function/1", 16))


def answers(known: dict[int, bool | None]) -> KnownAnswers:
    """Return answers for numbers; None stands for an error."""
    found = {
        key_of((number,)): (pa.array([value], BOOL), "it failed" if value is None else None)
        for number, value in known.items()
    }
    return known_answers(PAID, SETTINGS, found)


def needed(
    condition: Expression, known: KnownAnswers | None, values: list[int]
) -> list[bool | None]:
    functions, given = ((FREE,), (None,)) if known is None else ((FREE, PAID), (None, known))
    block = SurveyBlock(condition, functions, given, SETTINGS, RoutingOptions())
    survey = pickle.loads(pickle.dumps(SurveyFunction(block)))  # noqa: S301 - as Spark does
    (flags,) = survey(iter([pa.array(values, INT)]))
    found: list[bool | None] = flags.to_pylist()
    return found


def test_rows_that_a_free_predicate_keeps_may_need_the_call() -> None:
    assert needed(Call(0, (X,), BOOL), None, [1, 2, 3, 6]) == [True, False, True, False]


def test_a_row_for_which_it_fails_may_need_it_too() -> None:
    assert needed(Call(0, (X,), BOOL), None, [0, 2]) == [True, False]


def test_known_answers_decide_without_a_call() -> None:
    both = And((Call(0, (X,), BOOL), Call(1, (X,), BOOL)))
    assert needed(both, answers({1: True, 3: False}), [1, 2, 3]) == [True, False, False]
    assert needed(both, answers({1: None}), [1, 2, 3]) == [True, False, None]


def test_answers_are_found_by_value_and_others_are_missing() -> None:
    known = answers({1: True, 3: False, 5: None})
    vector = known([pa.array([3, 1, 7, 5], INT)], 4)
    assert vector.values.to_pylist() == [False, True, None, None]
    assert {row: str(error) for row, error in vector.errors.items()} == {
        2: "it was not asked for",
        3: "it failed",
    }
    assert all(isinstance(error, FunctionFailedError) for error in vector.errors.values())


def test_no_answers_are_no_values() -> None:
    assert answers({})([pa.array([1], INT)], 1).values.to_pylist() == [None]
    with pytest.raises(KeyError):
        _ = answers({}).places[key_of((1,))]
