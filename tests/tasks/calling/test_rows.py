"""Functions called row by row: each row once, and what it raises stays with it."""

from __future__ import annotations

import datetime as dt
import os
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.conversion import ArrowTableToRowsConversion
from pyspark.sql.types import (
    DataType,
    DateType,
    DayTimeIntervalType,
    TimestampNTZType,
    TimestampType,
)

from eddyline.blocks.filter_block import FunctionKind, SessionSettings, UserFunction
from eddyline.expressions.vector import Vector
from eddyline.tasks.calling import make_function
from eddyline.tasks.calling.arrow_values import arrow_reader
from tests.tasks.calling.probes import Pinned, user_function
from tests.tasks.calling.spark_worker import spark_result

pytestmark = pytest.mark.usefixtures("spark")  # types in SQL are read with its help

SETTINGS = SessionSettings("UTC")
LEGACY = SessionSettings("UTC", legacy_pandas_conversion=True)

KINDS = [FunctionKind.PICKLED, FunctionKind.ARROW_BATCHED]

# The three ways in which values reach a function and come back.
WAYS = pytest.mark.parametrize(
    ("kind", "settings"),
    [*((kind, SETTINGS) for kind in KINDS), (FunctionKind.ARROW_BATCHED, LEGACY)],
    ids=["pickled", "arrow", "legacy"],
)


def call(
    function: UserFunction, *columns: pa.Array, settings: SessionSettings = SETTINGS
) -> Vector:
    return make_function(function, settings)(columns, len(columns[0]))


@WAYS
def test_a_row_that_raises_does_not_stop_the_others(
    kind: FunctionKind, settings: SessionSettings
) -> None:
    calls: list[int] = []

    def inverse(number: int) -> float:
        calls.append(number)
        return 1 / number

    function = user_function(Pinned(inverse), kind, ["bigint"], "double")
    vector = call(function, pa.array([0, 4, 0, 2, 0]), settings=settings)
    assert vector.values.to_pylist() == [None, 0.25, None, 0.5, None]
    assert sorted(vector.errors) == [0, 2, 4]
    assert all(isinstance(error, ZeroDivisionError) for error in vector.errors.values())
    assert len({id(error) for error in vector.errors.values()}) == 3
    assert calls == [0, 4, 0, 2, 0]


@WAYS
def test_where_every_row_raises_the_column_still_has_the_declared_type(
    kind: FunctionKind, settings: SessionSettings
) -> None:
    def refuse(_: int) -> int:
        raise LookupError

    vector = call(
        user_function(refuse, kind, ["bigint"], "int"), pa.array([1, 2]), settings=settings
    )
    assert vector.values.type == pa.int32()
    assert vector.values.to_pylist() == [None, None]
    assert list(map(type, vector.errors.values())) == [LookupError] * 2


@WAYS
def test_a_result_that_cannot_be_converted_is_its_rows_error(
    kind: FunctionKind, settings: SessionSettings
) -> None:
    calls: list[int] = []

    def odd(number: int) -> object:
        calls.append(number)
        if number == 3:
            raise LookupError
        return [7, np.str_("x"), None][number]

    function = user_function(Pinned(odd), kind, ["bigint"], "int")
    vector = call(function, pa.array([0, 1, 2, 3, 0]), settings=settings)
    assert vector.values.equals(pa.array([7, None, None, None, 7], pa.int32()))
    assert sorted(vector.errors) == [1, 3]
    assert isinstance(vector.errors[1], (TypeError, ValueError))
    assert isinstance(vector.errors[3], LookupError)
    assert calls == [0, 1, 2, 3, 0]


def test_a_failed_row_makes_no_floats_of_the_integers_in_a_series() -> None:
    def checked(number: int) -> int:
        if number < 0:
            raise ValueError(number)
        return number

    exact = 2**53 + 1  # no float
    function = user_function(checked, FunctionKind.ARROW_BATCHED, ["bigint"], "bigint")
    vector = call(function, pa.array([exact, -1, exact]), settings=LEGACY)
    assert vector.values.to_pylist() == [exact, None, exact]
    assert list(vector.errors) == [1]


def frames(error: Exception) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def test_an_error_shows_the_users_frames_and_no_others() -> None:
    def inner(number: int) -> float:
        return 1 / number

    def outer(number: int) -> float:
        return inner(number)

    for kind in KINDS:
        for keywords in (None, ("number",)):
            function = user_function(outer, kind, ["bigint"], "double", keywords)
            assert frames(call(function, pa.array([0])).errors[0]) == ["outer", "inner"]
        chain = chained(user_function(abs, kind, ["bigint"], "bigint"), function)
        assert frames(call(chain, pa.array([0])).errors[0]) == ["outer", "inner"]


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


@pytest.mark.parametrize("order", [SystemExit, KeyboardInterrupt])
def test_an_order_to_stop_is_no_rows_error(order: type[BaseException]) -> None:
    def leave(_: int) -> None:
        raise order

    for kind in KINDS:
        with pytest.raises(order):
            call(user_function(leave, kind, ["bigint"]), pa.array([1]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_function_without_arguments_is_called_for_each_row(kind: FunctionKind) -> None:
    numbers = iter(range(10))
    made = make_function(user_function(lambda: next(numbers), kind, [], "bigint"), SETTINGS)
    assert not made.vectorized
    assert made([], 3).values.to_pylist() == [0, 1, 2]
    assert made([], 0).values.to_pylist() == []
    assert made([], 2).values.to_pylist() == [3, 4]
    made.close()
    vector = made([], 7)
    assert vector.values.to_pylist() == [5, 6, 7, 8, 9, None, None]
    assert sorted(vector.errors) == [5, 6]
    assert "STOP_ITERATION_OCCURRED" in str(vector.errors[5])


@pytest.mark.parametrize("kind", KINDS)
def test_a_function_without_arguments_goes_on_after_an_error(kind: FunctionKind) -> None:
    numbers = iter(range(5))

    def odd() -> int:
        number = next(numbers)
        if number % 2 == 0:
            raise ValueError(number)
        return number

    vector = make_function(user_function(odd, kind, [], "bigint"), SETTINGS)([], 5)
    assert vector.values.to_pylist() == [None, 1, None, 3, None]
    assert {row: error.args for row, error in vector.errors.items()} == {0: (0,), 2: (2,), 4: (4,)}


@WAYS
def test_no_rows_make_an_empty_column_of_the_declared_type(
    kind: FunctionKind, settings: SessionSettings
) -> None:
    function = user_function(lambda date: date, kind, ["date"], "date")
    vector = call(function, pa.array([], pa.date32()), settings=settings)
    assert vector.values.equals(pa.array([], pa.date32()))
    assert not vector.errors


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


def chained(first: UserFunction, last: UserFunction) -> UserFunction:
    """Return a function of ``last`` on what ``first`` returned, as a block carries it."""
    return UserFunction(
        "chain",
        first.kind,
        (*first.commands, *last.commands),
        first.argument_types,
        first.keywords,
        last.return_type,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_functions_of_a_chain_hand_their_values_on_unconverted(kind: FunctionKind) -> None:
    first = user_function(lambda number: {number, number + 1}, kind, ["bigint"], "int")
    last = user_function(repr, kind, [], "string")
    assert call(chained(first, last), pa.array([1])).values.to_pylist() == ["{1, 2}"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_argument_that_python_cannot_hold_is_its_rows_error(kind: FunctionKind) -> None:
    calls: list[tuple[dt.date, int]] = []

    def year(date: dt.date, number: int) -> int:
        calls.append((date, number))
        return date.year + number

    days = pa.array([0, 10_000_000, None, 365], pa.int32()).cast(pa.date32())
    function = user_function(Pinned(year), kind, ["date", "bigint"], "int")
    vector = call(function, days, pa.array([0, 1, 2, 3]))
    assert vector.values.to_pylist() == [1970, None, None, 1974]
    assert sorted(vector.errors) == [1, 2]  # the second by the function: None has no year
    assert isinstance(vector.errors[1], OverflowError)
    assert isinstance(vector.errors[2], AttributeError)
    assert calls == [(dt.date(1970, 1, 1), 0), (None, 2), (dt.date(1971, 1, 1), 3)]


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
        assert outcome(read, column) == outcome(pysparks_reader(kind), column)


def pysparks_reader(kind: DataType) -> Callable[[pa.Array], list[Any]]:
    convert = ArrowTableToRowsConversion._create_converter(kind)
    return lambda column: [convert(value) for value in column.to_pylist()]


def outcome(read: Callable[[pa.Array], Sequence[Any]], column: pa.Array) -> object:
    """Return values in full, or the class of what was raised."""
    try:
        return repr(list(read(column)))
    except Exception as error:  # noqa: BLE001 - whichever it is
        return type(error)
