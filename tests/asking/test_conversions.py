"""What texts and numbers of a source mean in a column: what Spark's own JSON reader says."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.asking.lookup_source import LookedUpTable, NoAnswerError
from eddyline.asking.source_rows import RowReader


def value(kind: pa.DataType, given_value: object) -> object:
    """Return what a value is in a column of a type."""
    table = LookedUpTable("t", ("a", "b"), (pa.int64(), kind), (0,))
    (found,) = RowReader(table).batch([{"b": given_value}], [(1,)]).column("b").to_pylist()
    return found


PARIS = pa.timestamp("us", tz="Europe/Paris")
LOCAL = pa.timestamp("us")


def utc(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)  # type: ignore[misc,arg-type]  # year to second


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-06-01T10:00:00", utc(2024, 6, 1, 8)),
        ("2024-06-01 10:00:00", utc(2024, 6, 1, 8)),
        ("2024-12-01T10:00", utc(2024, 12, 1, 9)),
        ("2024-06-01", utc(2024, 5, 31, 22)),
        ("2024-06-01T10:00:00Z", utc(2024, 6, 1, 10)),
        ("2024-06-01T10:00:00+05:00", utc(2024, 6, 1, 5)),
        ("2024-03-31T02:30:00", utc(2024, 3, 31, 1, 30)),  # there is no such time
        ("2024-10-27T02:30:00", utc(2024, 10, 27, 0, 30)),  # there are two: the first
        (1717236000, utc(2024, 6, 1, 10)),
        (dt.datetime(2024, 6, 1, 10), utc(2024, 6, 1, 8)),  # noqa: DTZ001 - of a driver
        (dt.date(2024, 6, 1), utc(2024, 5, 31, 22)),
    ],
)
def test_a_time_without_a_zone_is_of_the_sessions(text: object, moment: dt.datetime) -> None:
    found = value(PARIS, text)
    assert isinstance(found, dt.datetime)
    assert found.astimezone(dt.UTC) == moment


@pytest.mark.parametrize("name", ["UTC", "+02:00", "-09:30", "Asia/Kolkata", "America/New_York"])
def test_any_zone_may_be_the_sessions(name: str) -> None:
    found = value(pa.timestamp("us", tz=name), "2024-06-01T10:00:00")
    assert isinstance(found, dt.datetime)
    assert found.replace(tzinfo=None) == dt.datetime(2024, 6, 1, 10)  # noqa: DTZ001 - local


@given(st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)))  # noqa: DTZ001 - local
def test_a_local_time_comes_back_as_it_was(local: dt.datetime) -> None:
    assert value(LOCAL, local.isoformat()) == local
    found = value(PARIS, local.isoformat())
    assert isinstance(found, dt.datetime)
    expected = local.replace(tzinfo=ZoneInfo("Europe/Paris"))
    assert found.astimezone(dt.UTC) == expected.astimezone(dt.UTC)


D = decimal.Decimal


@pytest.mark.parametrize(
    ("kind", "given_value", "found"),
    [
        (LOCAL, "2024-06-01 10:00", dt.datetime(2024, 6, 1, 10)),  # noqa: DTZ001 - local
        (LOCAL, dt.date(2024, 6, 1), dt.datetime(2024, 6, 1)),  # noqa: DTZ001 - local
        (pa.date32(), "2024-06-01", dt.date(2024, 6, 1)),
        (pa.date32(), "2024-06-01T23:00:00Z", dt.date(2024, 6, 1)),
        (pa.date32(), dt.datetime(2024, 6, 1, 23), dt.date(2024, 6, 1)),  # noqa: DTZ001 - local
        (pa.decimal128(5, 2), "1.5", D("1.50")),
        (pa.decimal128(5, 2), 0.1, D("0.10")),
        (pa.decimal128(5, 2), 2.675, D("2.68")),
        (pa.decimal128(5, 2), 7, D("7.00")),
        (pa.decimal128(38, 18), D("12345678901234567890.123456789012345678"), ...),
        (pa.binary(), "aGVsbG8=", b"hello"),
        (pa.binary(), b"\x00\xff", b"\x00\xff"),
        (pa.float64(), 2**60 + 1, float(2**60)),
        (pa.float64(), D("0.1"), 0.1),
        (pa.float64(), "-Infinity", float("-inf")),
        (pa.float32(), 3, 3.0),
        (pa.int16(), 7.0, 7),
        (pa.string(), uuid.UUID(int=5), str(uuid.UUID(int=5))),
        (pa.list_(PARIS), ["2024-06-01T10:00", None], [utc(2024, 6, 1, 8), None]),
        (
            pa.struct([("a", pa.date32()), ("b", pa.int8())]),
            {"a": "2024-06-01"},
            {"a": dt.date(2024, 6, 1), "b": None},
        ),
        (pa.map_(pa.string(), pa.decimal128(3, 1)), {"x": 1.25}, [("x", D("1.3"))]),
    ],
)
def test_values_are_what_spark_reads(kind: pa.DataType, given_value: object, found: Any) -> None:  # noqa: ANN401 - of any type
    assert value(kind, given_value) == (given_value if found is ... else found)
    assert value(kind, None) is None


@pytest.mark.parametrize(
    ("kind", "given_value"),
    [
        (PARIS, "yesterday"),
        (PARIS, True),
        (PARIS, 1.5),
        (LOCAL, "2024-06-01T10:00:00Z"),
        (LOCAL, 1717236000),
        (LOCAL, utc(2024, 6, 1)),
        (pa.date32(), 5),
        (pa.date32(), "1"),
        (pa.decimal128(5, 2), "x"),
        (pa.decimal128(5, 2), 1000),
        (pa.decimal128(5, 2), float("nan")),
        (pa.decimal128(5, 2), True),
        (pa.binary(), "no base64!"),
        (pa.float64(), "1.5"),
        (pa.int64(), "1"),
        (pa.int64(), 1.5),
        (pa.int64(), True),
        (pa.int8(), 128),
        (pa.bool_(), 1),
        (pa.string(), 5),
        (pa.string(), b"\xff"),
        (pa.string(), "\ud800"),
        (pa.list_(pa.int64()), 5),
        (pa.list_(pa.int64()), ["x"]),
        (pa.struct([("a", pa.int64())]), [1]),
    ],
)
def test_what_does_not_fit_is_said(kind: pa.DataType, given_value: object) -> None:
    with pytest.raises(NoAnswerError, match=r"column b is .*, which an answer does not fit: "):
        value(kind, given_value)


@pytest.mark.parametrize("row", [{"b": "x"}, ["x"], 7, "text", None, [1, 2, 3]])
def test_what_is_no_row_is_said(row: object) -> None:
    table = LookedUpTable("t", ("a", "b"), (pa.int64(), pa.string()), (0,))
    with pytest.raises(NoAnswerError, match="a row "):
        RowReader(table).batch([row], [(1,), (2,)])
