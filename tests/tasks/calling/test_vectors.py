"""Functions over whole vectors: what one row causes, all rows of the chunk share."""

from __future__ import annotations

import traceback
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.errors import PySparkRuntimeError

from eddyline.blocks.filter_block import FunctionKind, SessionSettings
from eddyline.expressions.vector import CollectiveFailure, Vector
from eddyline.quirks.pyspark_errors import condition_of
from eddyline.tasks.calling import make_function
from tests.tasks.calling.probes import Pinned, user_function

pytestmark = pytest.mark.usefixtures("spark")  # types in SQL are read with its help

SETTINGS = SessionSettings("UTC")

KINDS = [FunctionKind.ARROW, FunctionKind.PANDAS]


def failure(vector: Vector) -> Exception:
    """Return the error that all rows of a vector share, of which any may be the cause."""
    shared = failure_of_all(vector)
    assert isinstance(shared, CollectiveFailure)
    assert str(shared) == str(shared.error)
    return shared.error


def failure_of_all(vector: Vector) -> Exception:
    """Return the error that all rows of a vector share."""
    assert sorted(vector.errors) == list(range(len(vector)))
    assert vector.values.null_count == len(vector)
    (shared,) = set(vector.errors.values())
    return shared


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_is_every_rows_and_the_next_chunk_is_tried_again(kind: FunctionKind) -> None:
    calls: list[list[int]] = []

    def positive(values: Any) -> Any:  # noqa: ANN401 - of either library
        calls.append(list(values.to_numpy()))
        if calls[-1][-1] < 0:
            raise ArithmeticError("negative")
        return values

    made = make_function(user_function(Pinned(positive), kind, ["bigint"], "bigint"), SETTINGS)
    assert made.vectorized
    failed = made([pa.array([1, -2])], 2)
    error = failure(failed)
    assert failed.values.type == pa.int64()
    assert isinstance(error, ArithmeticError)
    assert traceback.extract_tb(error.__traceback__)[-1].name == "positive"
    fine = made([pa.array([1, 2])], 2)
    assert fine.values.to_pylist() == [1, 2]
    assert not fine.errors
    assert calls == [[1, -2], [1, 2]]
    made.close()


@pytest.mark.parametrize("order", [SystemExit, KeyboardInterrupt])
def test_an_order_to_stop_is_no_rows_error(order: type[BaseException]) -> None:
    def leave(_: Any) -> Any:  # noqa: ANN401 - of either library
        raise order

    for kind in KINDS:
        made = make_function(user_function(leave, kind, ["bigint"], "bigint"), SETTINGS)
        with pytest.raises(order):
            made([pa.array([1])], 1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_of_another_length_is_refused(kind: FunctionKind) -> None:
    made = make_function(
        user_function(lambda values: values[:2], kind, ["bigint"], "bigint"), SETTINGS
    )
    # It is no row's own fault, and no row is tried alone.
    error = failure_of_all(made([pa.array([1, 2, 3])], 3))
    assert isinstance(error, PySparkRuntimeError)
    assert condition_of(error) == "RESULT_ROWS_MISMATCH"
    assert not isinstance(error, CollectiveFailure)
    assert made([pa.array([1, 2])], 2).values.to_pylist() == [1, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_of_another_type_is_converted_or_refused(kind: FunctionKind) -> None:
    def texts(values: Any) -> Any:  # noqa: ANN401 - of either library
        made = [str(value) for value in values.to_numpy()]
        return pd.Series(made) if isinstance(values, pd.Series) else pa.array(made)

    def doubles(values: Any) -> Any:  # noqa: ANN401 - of either library
        return values.astype("float") if isinstance(values, pd.Series) else values.cast("double")

    column = pa.array([1, 2])
    refused = make_function(user_function(texts, kind, ["bigint"], "date"), SETTINGS)([column], 2)
    assert refused.values.type == pa.date32()
    assert isinstance(failure(refused), Exception)
    for code in (lambda values: values, doubles):
        function = user_function(code, kind, ["bigint"], "int")
        taken = make_function(function, SETTINGS)([column], 2)
        assert taken.values.equals(pa.array([1, 2], pa.int32()))
    for code in (lambda _: 5, lambda _: None):
        function = user_function(code, kind, ["bigint"], "int")
        assert isinstance(failure(make_function(function, SETTINGS)([column], 2)), TypeError)


@pytest.mark.parametrize("kind", KINDS)
def test_a_chunk_without_rows_is_not_shown_to_the_function(kind: FunctionKind) -> None:
    def refuse(_: Any) -> Any:  # noqa: ANN401 - of either library
        raise AssertionError

    made = make_function(user_function(refuse, kind, ["bigint"], "date"), SETTINGS)
    vector = made([pa.array([], pa.int64())], 0)
    assert vector.values.type == pa.date32()
    assert not vector.errors


@pytest.mark.parametrize("kind", KINDS)
def test_a_stop_iteration_is_not_lost(kind: FunctionKind) -> None:
    def stop(_: Any) -> Any:  # noqa: ANN401 - of either library
        raise StopIteration("by chance")

    made = make_function(user_function(stop, kind, ["bigint"], "int"), SETTINGS)
    error = failure(made([pa.array([1])], 1))
    assert "STOP_ITERATION_OCCURRED" in str(error)
    assert "by chance" in str(error)


@pytest.mark.parametrize("kind", KINDS)
def test_arguments_go_by_keyword_where_they_are_named(kind: FunctionKind) -> None:
    def minus(left: Any, *, right: Any) -> Any:  # noqa: ANN401 - of either library
        difference = left.to_numpy() - right.to_numpy()
        return pd.Series(difference) if isinstance(left, pd.Series) else pa.array(difference)

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
    values = make_function(function, settings)([column], 1).values
    assert values.type == column.type
    assert values.equals(column)
