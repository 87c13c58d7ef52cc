"""Functions over whole vectors: what one row causes, all rows of the chunk share."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from eddyline.engine.errors import CollectiveFailure
from eddyline.spark.calling import make_function
from eddyline.spark.filter_block import FunctionKind, SessionSettings
from tests.spark.calling.probes import user_function

pytestmark = pytest.mark.usefixtures("spark")  # types in SQL are read with its help

SETTINGS = SessionSettings("UTC")

KINDS = [FunctionKind.ARROW, FunctionKind.PANDAS]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_is_every_rows_and_the_next_chunk_is_tried_again(kind: FunctionKind) -> None:
    def positive(values: Any) -> Any:  # noqa: ANN401 - of either library
        if min(values.to_list()) < 0:
            raise ArithmeticError("negative")
        return values

    made = make_function(user_function(positive, kind, ["bigint"], "bigint"), SETTINGS)
    assert made.vectorized
    failed = made([pa.array([1, -2])], 2)
    assert sorted(failed.errors) == [0, 1]
    assert failed.values.to_pylist() == [None, None]
    first, second = failed.errors.values()
    assert first is second
    assert isinstance(first, CollectiveFailure)
    assert isinstance(first.error, ArithmeticError)
    assert first.error.__traceback__ is not None
    assert made([pa.array([1])], 1).values.to_pylist() == [1]
    made.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_chunk_without_rows_is_not_shown_to_the_function(kind: FunctionKind) -> None:
    def refuse(_: Any) -> Any:  # noqa: ANN401 - of either library
        raise AssertionError

    made = make_function(user_function(refuse, kind, ["bigint"], "date"), SETTINGS)
    vector = made([pa.array([], pa.int64())], 0)
    assert vector.values.type == pa.date32()
    assert not vector.errors


def test_a_stop_iteration_is_not_lost() -> None:
    def stop(_: pd.Series) -> pd.Series:
        raise StopIteration

    made = make_function(user_function(stop, FunctionKind.PANDAS, ["bigint"], "int"), SETTINGS)
    failure = made([pa.array([1])], 1).errors[0]
    assert isinstance(failure, CollectiveFailure)
    assert "STOP_ITERATION_OCCURRED" in str(failure.error)


@pytest.mark.parametrize("kind", KINDS)
def test_arguments_go_by_keyword_where_they_are_named(kind: FunctionKind) -> None:
    def minus(left: Any, *, right: Any) -> Any:  # noqa: ANN401 - of either library
        difference = [a - b for a, b in zip(left.to_list(), right.to_list(), strict=True)]
        return type(left)(difference) if kind is FunctionKind.PANDAS else pa.array(difference)

    function = user_function(minus, kind, ["bigint"] * 2, "bigint", (None, "right"))
    vector = make_function(function, SETTINGS)([pa.array([5, 6]), pa.array([1, 2])], 2)
    assert vector.values.to_pylist() == [4, 4]


def test_series_have_a_fresh_index_and_nulls_as_pandas_has_them() -> None:
    def show(numbers: pd.Series, structs: pd.DataFrame) -> pd.Series:
        kinds = f"{numbers.dtype} {numbers.index!r} {structs.index!r} {list(structs.columns)}"
        return pd.Series([kinds] * len(numbers), index=[7] * len(numbers))

    function = user_function(show, FunctionKind.PANDAS, ["bigint", "struct<x:int,y:string>"])
    struct = pa.array([{"x": 1, "y": "a"}] * 4, pa.struct([("x", pa.int32()), ("y", pa.string())]))
    numbers = pa.array([1, 2, None, 4])
    made = make_function(function, SETTINGS)
    ranges = "RangeIndex(start=0, stop=2, step=1) RangeIndex(start=0, stop=2, step=1) ['x', 'y']"
    assert made([numbers[:2], struct[:2]], 2).values.to_pylist() == [f"int64 {ranges}"] * 2
    assert made([numbers[2:], struct[2:]], 2).values.to_pylist() == [f"float64 {ranges}"] * 2


def test_timestamps_come_back_in_the_sessions_zone() -> None:
    def same(values: pa.Array) -> pa.Array:
        return values.cast(pa.timestamp("us"))  # of which Spark takes the zone to be UTC

    settings = SessionSettings("Asia/Tokyo")
    column = pa.array([0], pa.timestamp("us", "Asia/Tokyo"))
    function = user_function(same, FunctionKind.ARROW, ["timestamp"], "timestamp")
    assert make_function(function, settings)([column], 1).values.equals(column)
