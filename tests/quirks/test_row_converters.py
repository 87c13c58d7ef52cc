"""Our own converters, for a PySpark that has none, give what PySpark's give where it has them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Row
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from eddyline.quirks import row_converters
from eddyline.quirks.row_converters import to_arrow, to_python

RECORD = StructType([StructField("n", LongType()), StructField("raw", BinaryType())])
NOON = dt.datetime(2024, 3, 31, 12, tzinfo=dt.UTC)
LOCAL = NOON.astimezone().replace(tzinfo=None)

VALUES: list[tuple[DataType, Any, Any]] = [  # a type, a value of Arrow's, and what Python sees
    (LongType(), 5, 5),
    (BooleanType(), True, True),
    (StringType(), "a", "a"),
    (BinaryType(), b"ab", bytearray(b"ab")),
    (DecimalType(10, 2), Decimal("1.25"), Decimal("1.25")),
    (TimestampType(), NOON, LOCAL),
    (ArrayType(LongType()), [1, None], [1, None]),
    (ArrayType(BinaryType()), [b"a", None], [bytearray(b"a"), None]),
    (MapType(StringType(), TimestampType()), [("a", NOON)], {"a": LOCAL}),
    (RECORD, {"n": 1, "raw": b"a"}, Row(n=1, raw=bytearray(b"a"))),
    (ArrayType(RECORD), [{"n": None, "raw": None}], [Row(n=None, raw=None)]),
]


@pytest.mark.parametrize(("kind", "stored", "seen"), VALUES, ids=str)
def test_there_and_back(kind: DataType, stored: object, seen: object) -> None:
    for convert in (row_converters._to_python(kind), to_python(kind, binary_as_bytes=False)):
        assert (stored if convert is None else convert(stored)) == seen
        assert convert is None or convert(None) is None
    for convert in (row_converters._to_arrow(kind), to_arrow(kind, integers_as_decimals=False)):
        assert (seen if convert is None else convert(seen)) == stored
        assert convert is None or convert(None) is None


class Record:
    """What a function may return in place of a row."""

    def __init__(self) -> None:
        self.raw = bytearray(b"a")
        self.n = 1


OTHERS: list[tuple[DataType, Any, Any]] = [  # a type, what a function returns, and what Arrow gets
    (StringType(), True, "true"),
    (StringType(), 1.5, "1.5"),
    (DecimalType(10, 2), Decimal("NaN"), None),
    (RECORD, {"raw": b"a"}, {"n": None, "raw": b"a"}),
    (RECORD, (1, b"a"), {"n": 1, "raw": b"a"}),
    (RECORD, Record(), {"n": 1, "raw": b"a"}),
]


@pytest.mark.parametrize(
    ("kind", "returned", "stored"), OTHERS, ids=lambda part: type(part).__name__
)
def test_other_results(kind: DataType, returned: object, stored: object) -> None:
    for convert in (row_converters._to_arrow(kind), to_arrow(kind, integers_as_decimals=False)):
        assert convert is not None
        assert convert(returned) == stored


def test_rows_of_another_length_are_refused() -> None:
    for convert in (row_converters._to_arrow(RECORD), to_arrow(RECORD, integers_as_decimals=False)):
        assert convert is not None
        with pytest.raises(Exception, match=r"[12]|shorter"):
            convert((1,))
