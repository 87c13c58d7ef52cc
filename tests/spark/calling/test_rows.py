"""Functions called row by row: each row once, and what it raises stays with it."""

from __future__ import annotations

import datetime as dt
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import DateType, DayTimeIntervalType, TimestampNTZType, TimestampType

from eddyline.spark.calling import make_function
from eddyline.spark.calling.arrow_values import arrow_reader
from eddyline.spark.filter_block import FunctionKind, SessionSettings, UserFunction
from tests.spark.calling.probes import user_function
from tests.spark.calling.spark_worker import spark_result

pytestmark = pytest.mark.usefixtures("spark")  # types in SQL are read with its help

SETTINGS = SessionSettings("UTC")

KINDS = [FunctionKind.PICKLED, FunctionKind.ARROW_BATCHED]


def call(function: UserFunction, *columns: pa.Array, rows: int | None = None) -> Any:  # noqa: ANN401 - a Vector
    return make_function(function, SETTINGS)(columns, len(columns[0]) if rows is None else rows)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_that_raises_does_not_stop_the_others(kind: FunctionKind) -> None:
    calls = []
    sys.modules[__name__].CALLS = calls  # type: ignore[attr-defined]

    def inverse(number: int) -> float:
        sys.modules[test_module].CALLS.append(number)  # type: ignore[attr-defined]
        return 1 / number

    test_module = __name__
    function = user_function(inverse, kind, ["bigint"], "double")
    vector = call(function, pa.array([0, 4, 0, 2, 0]))
    assert vector.values.to_pylist() == [None, 0.25, None, 0.5, None]
    assert sorted(vector.errors) == [0, 2, 4]
    assert all(isinstance(error, ZeroDivisionError) for error in vector.errors.values())
    assert len({id(error) for error in vector.errors.values()}) == 3
    assert calls == [0, 4, 0, 2, 0]


def test_an_error_shows_the_users_frames_and_no_others() -> None:
    def inner(number: int) -> float:
        return 1 / number

    def outer(number: int) -> float:
        return inner(number)

    vector = call(user_function(outer, FunctionKind.ARROW_BATCHED, ["bigint"], "double"), pa.array([0]))
    frames = traceback.extract_tb(vector.errors[0].__traceback__)
    assert [frame.name for frame in frames] == ["outer", "inner"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_stop_iteration_is_the_rows_own_error_as_in_spark(kind: FunctionKind) -> None:
    def first(numbers: list[int]) -> int:
        return next(iter(numbers))

    function = user_function(first, kind, ["array<bigint>"], "bigint")
    vector = call(function, pa.array([[], [1], [], [2], []]))
    assert vector.values.to_pylist() == [None, 1, None, 2, None]
    assert sorted(vector.errors) == [0, 2, 4]
    with pytest.raises(type(vector.errors[0]), match="STOP_ITERATION_OCCURRED") as raised:
        spark_result(
            user_function(first, FunctionKind.ARROW_BATCHED, ["array<bigint>"], "bigint"),
            SETTINGS,
            [[pa.array([[]], pa.list_(pa.int64()))]],
        )
    assert str(vector.errors[0]) == str(raised.value)


def test_an_order_to_stop_is_no_rows_error() -> None:
    def leave(_: int) -> None:
        raise SystemExit

    with pytest.raises(SystemExit):
        call(user_function(leave, FunctionKind.ARROW_BATCHED, ["bigint"]), pa.array([1]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_function_without_arguments_is_called_for_each_row(kind: FunctionKind) -> None:
    def numbers() -> Callable[[], int]:
        counter = iter(range(10))
        return lambda: next(counter)

    made = make_function(user_function(Counting(), kind, [], "bigint"), SETTINGS)
    assert made([], 3).values.to_pylist() == [0, 1, 2]
    assert made([], 0).values.to_pylist() == []
    assert made([], 2).values.to_pylist() == [3, 4]


@pytest.mark.parametrize("kind", KINDS)
def test_arguments_go_by_keyword_where_they_are_named(kind: FunctionKind) -> None:
    def show(*values: object, **named: object) -> str:
        return repr((values, named))

    columns = [pa.array([1]), pa.array([2]), pa.array([3])]
    types = ["bigint"] * 3
    for keywords, expected in (
        ((None, "b", "a"), "((1,), {'b': 2, 'a': 3})"),
        (("c", "b", "a"), "((), {'c': 1, 'b': 2, 'a': 3})"),
        ((None, None, None), "((1, 2, 3), {})"),
    ):
        vector = call(user_function(show, kind, types, keywords=keywords), *columns)
        assert vector.values.to_pylist() == [expected]


def test_functions_of_a_chain_hand_their_values_on_unconverted() -> None:
    def inner(number: int) -> object:
        return {number, number + 1}

    def outer(value: object) -> str:
        return repr(value)

    for kind in KINDS:
        first = user_function(inner, kind, ["bigint"], "int")
        last = user_function(outer, kind, [], "string")
        chain = UserFunction(
            "chain",
            kind,
            (*first.commands, *last.commands),
            first.argument_types,
            first.keywords,
            last.return_type,
        )
        assert call(chain, pa.array([1])).values.to_pylist() == ["{1, 2}"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_argument_that_python_cannot_hold_is_its_rows_error(kind: FunctionKind) -> None:
    def year(date: dt.date) -> int:
        return date.year

    days = pa.array([0, 10_000_000, None, 365], pa.int32()).cast(pa.date32())
    vector = call(user_function(year, kind, ["date"], "int"), days)
    assert vector.values.to_pylist() == [1970, None, None, 1971]
    assert sorted(vector.errors) == [1, 2]  # the second by the function: None has no year
    assert isinstance(vector.errors[1], OverflowError)
    assert isinstance(vector.errors[2], AttributeError)


def test_binary_values_come_as_the_session_asks() -> None:
    def name(value: object) -> str:
        return type(value).__name__

    for kind in KINDS:
        function = user_function(name, kind, ["binary"])
        for as_bytes, expected in ((True, "bytes"), (False, "bytearray")):
            settings = SessionSettings("UTC", binary_as_bytes=as_bytes)
            vector = make_function(function, settings)([pa.array([b"x"])], 1)
            assert vector.values.to_pylist() == [expected]


RESULTS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=3),
    st.decimals(allow_infinity=False),
    st.dates(),
    st.lists(st.integers(0, 3), max_size=2),
)


@given(
    results=st.lists(RESULTS, min_size=1, max_size=6),
    kind=st.sampled_from(KINDS),
    declared=st.sampled_from(["boolean", "int", "bigint", "double", "string", "decimal(10,2)"]),
)
def test_a_result_does_not_depend_on_the_rows_it_shares_a_batch_with(
    results: list[Any], kind: FunctionKind, declared: str
) -> None:
    function = user_function(lambda row: results[row], kind, ["bigint"], declared)
    made = make_function(function, SETTINGS)
    together = made([pa.array(range(len(results)))], len(results))
    for row in range(len(results)):
        alone = made([pa.array([row])], 1)
        assert repr(together.values[row]) == repr(alone.values[0])
        assert repr(together.errors.get(row)) == repr(alone.errors.get(0))


@pytest.fixture(scope="module", params=["UTC", "Europe/Paris", "America/St_Johns"])
def local_zone(request: pytest.FixtureRequest) -> Iterator[str]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = request.param
    time.tzset()
    yield request.param
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


MICROSECONDS = st.lists(
    st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(-(10**17), 10**17)),
    max_size=5,
)


@given(instants=MICROSECONDS)
def test_the_short_ways_to_times_give_the_same_as_pysparks(
    local_zone: str, instants: list[int | None]
) -> None:
    del local_zone
    days = [None if i is None else i // 86_400_000_000 for i in instants]
    for kind, column in (
        (DateType(), pa.array(days, pa.int32()).cast(pa.date32())),
        (TimestampNTZType(), pa.array(instants, pa.timestamp("us"))),
        (TimestampType(), pa.array(instants, pa.timestamp("us", "Asia/Tokyo"))),
        (DayTimeIntervalType(), pa.array(instants, pa.duration("us"))),
    ):
        read = arrow_reader(kind, binary_as_bytes=True)
        assert outcome(lambda: list(read(column))) == outcome(lambda: pysparks(kind, column))


def pysparks(kind: Any, column: pa.Array) -> list[Any]:  # noqa: ANN401 - a DataType
    from pyspark.sql.conversion import ArrowTableToRowsConversion as Conversion

    convert = Conversion._create_converter(kind)
    return [convert(value) for value in column.to_pylist()]


def outcome(compute: Callable[[], list[Any]]) -> object:
    """Return values in full, or the class of what was raised."""
    try:
        return repr(compute())
    except Exception as error:  # noqa: BLE001 - whichever it is
        return type(error)
