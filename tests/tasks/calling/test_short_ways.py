"""The short ways to Python's values and back give what PySpark's converters give, for any value."""

# ruff: noqa: DTZ001, DTZ901 - functions see and return naive datetimes

from __future__ import annotations

import datetime as dt
import os
import time
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types
from pyspark.sql.conversion import ArrowTableToRowsConversion

from eddyline.blocks.column_types import arrow_type_of
from eddyline.blocks.filter_block import SessionSettings
from eddyline.quirks.without_settings import ALWAYS_OFF
from eddyline.tasks.calling.arrow_values import ArrowWriter, arrow_reader
from eddyline.tasks.calling.local_time import instants_of, local_times

ROW: Any = types.Row  # of any values; PySpark's own types say texts
SETTINGS = SessionSettings("Asia/Tokyo", safe_arrow_conversion=True)


@pytest.fixture(
    scope="module", params=["UTC", "Europe/Paris", "America/St_Johns", "Africa/Monrovia"]
)
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


# Hours in which clocks change somewhere, before which they were at odd seconds, and others.
_HOURS = st.sampled_from(
    [
        dt.datetime(2020, 10, 25, 0),
        dt.datetime(2020, 10, 25, 1),
        dt.datetime(2020, 3, 29, 1),
        dt.datetime(2006, 4, 2, 3),
        dt.datetime(1911, 3, 10, 23),
        dt.datetime(1972, 1, 7, 0),
        dt.datetime(1969, 12, 31, 23),
        dt.datetime(2, 1, 1),
        dt.datetime(9998, 12, 30, 23),
        dt.datetime(2024, 5, 5, 5),
    ]
)
NEAR: st.SearchStrategy[list[dt.datetime | None]] = st.builds(
    lambda hour, places: [
        None if place is None else hour + dt.timedelta(microseconds=place) for place in places
    ],
    _HOURS,
    st.lists(st.none() | st.integers(-(10**9), 8 * 10**9), min_size=1, max_size=12),
)
"""Times that share some hours."""


@given(values=NEAR)
def test_instants_become_local_times_as_by_pyspark(
    local_zone: str, values: list[dt.datetime | None]
) -> None:
    del local_zone
    convert = ArrowTableToRowsConversion._create_converter(types.TimestampType())
    for column in (pa.array(values, pa.timestamp("us", "UTC")), some(values)):
        found = local_times(column)  # None beyond the calendar
        if found is not None:
            assert repr(found) == repr([convert(value) for value in column.to_pylist()])


def some(values: list[dt.datetime | None]) -> pa.Array:
    """Return a slice, with the same hour many times."""
    column = pa.array([None, *values, *(values[:1] * 40)], pa.timestamp("us", "UTC"))
    return column.slice(1)


@given(values=NEAR, fold=st.integers(0, 1))
def test_local_times_become_instants_as_by_pyspark(
    local_zone: str, values: list[dt.datetime | None], fold: int
) -> None:
    del local_zone
    results = [value and value.replace(fold=fold) for value in values + values[:1] * 40]
    stored = arrow_type_of(types.TimestampType(), "Asia/Tokyo")
    found = instants_of(results, stored)
    if found is not None:
        expected = [value and value.astimezone(dt.UTC) for value in results]
        assert found.equals(pa.array(expected, stored))


@pytest.mark.parametrize("hours", [1, 3])
def test_times_that_share_hours_take_the_short_way(local_zone: str, hours: int) -> None:
    del local_zone
    noon = dt.datetime(2024, 5, 5, 12)
    results = [noon + dt.timedelta(minutes=number % (60 * hours)) for number in range(40)]
    assert instants_of(results, pa.timestamp("us", "UTC")) is not None


def test_aware_times_and_others_are_left_to_pyspark() -> None:
    noon = dt.datetime(2024, 5, 5, 12)
    for other in (noon.replace(tzinfo=dt.UTC), noon.date(), 3, dt.datetime.min, dt.datetime.max):
        assert instants_of([noon, other], pa.timestamp("us", "UTC")) is None


_PAIR = types.StructType(
    [
        types.StructField("a", types.LongType(), nullable=False),
        types.StructField("b", types.StringType()),
    ]
)
_DEEP = types.StructType(
    [
        types.StructField("p", _PAIR),
        types.StructField("t", types.TimestampType()),
        types.StructField("d", types.ArrayType(types.DecimalType(5, 2))),
        types.StructField("n", types.BinaryType()),
    ]
)
KINDS: dict[str, types.DataType] = {
    "decimal": types.DecimalType(5, 2),
    "strings": types.ArrayType(types.StringType()),
    "binaries": types.ArrayType(types.BinaryType()),
    "certain strings": types.ArrayType(types.StringType(), containsNull=False),
    "pair": _PAIR,
    "pairs": types.ArrayType(_PAIR),
    "deep": _DEEP,
    "timestamps": types.ArrayType(types.TimestampType()),
    "map": types.MapType(types.StringType(), _PAIR),
}

_TEXT = st.sampled_from(["", "a", "zoé"])
_NUMBER = st.integers(-(2**63), 2**63 - 1)
_DECIMAL = st.decimals(-999, 999, places=2, allow_nan=False)
_TIME = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1))
_PAIR_VALUE = st.builds(lambda a, b: {"a": a, "b": b}, _NUMBER, st.none() | _TEXT)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "decimal": _DECIMAL,
    "strings": st.lists(st.none() | _TEXT, max_size=3),
    "binaries": st.lists(st.none() | st.binary(max_size=2), max_size=3),
    "certain strings": st.lists(_TEXT, max_size=3),
    "pair": _PAIR_VALUE,
    "pairs": st.lists(st.none() | _PAIR_VALUE, max_size=3),
    "deep": st.fixed_dictionaries(
        {
            "p": st.none() | _PAIR_VALUE,
            "t": st.none() | _TIME,
            "d": st.none() | st.lists(st.none() | _DECIMAL, max_size=2),
            "n": st.none() | st.binary(max_size=2),
        }
    ),
    "timestamps": st.lists(st.none() | _TIME, max_size=3),
    "map": st.dictionaries(_TEXT, st.none() | _PAIR_VALUE, max_size=2),
}


@pytest.mark.parametrize("name", KINDS)
@given(data=st.data())
def test_values_are_read_as_by_pyspark(name: str, data: st.DataObject) -> None:
    kind, stored = KINDS[name], arrow_type_of(KINDS[name], "Asia/Tokyo")
    values = data.draw(st.lists(st.none() | VALUES[name], max_size=6))
    column = pa.array([None, *values], stored).slice(data.draw(st.integers(0, 1)))
    convert = ArrowTableToRowsConversion._create_converter(kind)
    expected = [convert(value) for value in column.to_pylist()]
    found = arrow_reader(kind, binary_as_bytes="binary_as_bytes" not in ALWAYS_OFF)(column)
    assert repr(list(found)) == repr(expected)
    assert [type(value) for value in found] == [type(value) for value in expected]
    assert fields(found) == fields(expected)


def fields(values: Sequence[Any]) -> list[Any]:
    """Return the names of fields of what is a row."""
    return [getattr(value, "__fields__", None) for value in values]


_ODD = st.sampled_from(
    [
        None,
        1,
        "1",
        1.5,
        True,
        b"1",
        Decimal("1.555"),
        Decimal(12345),
        Decimal("1E+2"),
        Decimal("NaN"),
        dt.datetime(2020, 3, 29, 2, 30),
        dt.datetime(2020, 3, 29, 2, 30, tzinfo=dt.UTC),
        dt.date(2020, 3, 29),
        (),
        (1,),
        (1, "b"),
        (None, None),
        ROW(1, "b"),
        ROW(a=2, b=None),
        {"a": 3, "b": "c"},
        {"b": "c"},
        [],
        ["a", None],
        ["a", 1],
        [b"", bytearray(b"1")],
        [ROW(1, "b"), (2, "c")],
        [Decimal("1.50"), None],
        [dt.datetime(2020, 3, 29, 2, 30)],
        ((1, "b"), dt.datetime(2020, 3, 29), [Decimal(1)], b""),
        (None, None, None, None),
    ]
)
_SAME = {
    "decimal": _DECIMAL,
    "strings": VALUES["strings"],
    "binaries": VALUES["binaries"],
    "certain strings": VALUES["certain strings"],
    "pair": st.tuples(_NUMBER, st.none() | _TEXT) | st.builds(ROW, _NUMBER, _TEXT),
    "pairs": st.lists(st.tuples(_NUMBER, _TEXT), max_size=2),
    "deep": st.tuples(
        st.none() | st.tuples(_NUMBER, _TEXT),
        st.none() | _TIME,
        st.none() | st.lists(_DECIMAL, max_size=2),
        st.none() | st.binary(max_size=2),
    ),
    "timestamps": VALUES["timestamps"],
    "map": st.dictionaries(_TEXT, st.tuples(_NUMBER, _TEXT), max_size=2),
}


@pytest.mark.parametrize("name", KINDS)
@given(data=st.data())
def test_results_are_written_as_by_pyspark(name: str, data: st.DataObject) -> None:
    usual = st.lists(st.none() | _SAME[name], max_size=6)
    mixed = st.lists(_ODD | _SAME[name], max_size=4)
    results = data.draw(usual | mixed)
    written(KINDS[name], results)


@given(results=st.lists(_ODD, max_size=3), name=st.sampled_from(list(KINDS)))
def test_odd_results_are_written_as_by_pyspark(results: list[Any], name: str) -> None:
    written(KINDS[name], results)


def written(kind: types.DataType, results: Sequence[Any]) -> None:
    """Compare with a writer that has no short way."""
    writer, slow = ArrowWriter(kind, SETTINGS), ArrowWriter(kind, SETTINGS)
    slow._quick = None
    assert outcome(writer, results) == outcome(slow, results)


def outcome(write: Callable[..., pa.Array], results: Sequence[Any]) -> object:
    """Return values and errors of a column."""
    errors: dict[int, Exception] = {}
    column = write(list(results), errors)
    column.validate(full=True)
    return column.type, column.to_pylist(), {row: repr(error) for row, error in errors.items()}
