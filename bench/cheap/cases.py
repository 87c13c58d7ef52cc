"""The functions, by the type of what they take and give, and the rows that they are called for."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import types

from eddyline.blocks.column_types import arrow_type_of

BATCH: Final = 10_000
"""Rows that Spark sends at a time by default."""

NULLS: Final = 10
"""One row of so many is NULL, where any is."""

Make = Callable[[int], Any]


class Kind(StrEnum):
    """What a function does with its arguments."""

    IDENTITY = "x"
    NULLS = "x, some NULL"
    METHOD = "a method"
    NOTHING = "NULL or x"
    REGEX = "a regex"
    TWO = "two arguments"
    NESTED = "three deep"
    SAME = "a method, 100 distinct"


@dataclass(frozen=True, slots=True)
class Case:
    """A function of columns of one type, the innermost first where several are nested."""

    type_name: str
    kind: Kind
    functions: Sequence[Callable[..., Any]]
    arguments: Sequence[types.DataType]
    result: types.DataType
    make: Make

    @property
    def name(self) -> str:
        """Type and kind."""
        return f"{self.type_name}: {self.kind}"

    def batches(self, rows: int) -> list[pa.RecordBatch]:
        """Return rows as Spark sends them; arguments are all distinct, but for what few are."""
        distinct = 100 if self.kind is Kind.SAME else rows
        values: list[Any] = [self.make(number % distinct) for number in range(rows)]
        if self.kind is Kind.NULLS:
            values[::NULLS] = [None] * len(values[::NULLS])
        columns = [pa.array(values, arrow_type_of(kind, "UTC")) for kind in self.arguments]
        names = [f"_{number}" for number in range(len(columns))]
        table = pa.Table.from_arrays(columns, names)
        batches: list[pa.RecordBatch] = table.to_batches(max_chunksize=BATCH)
        return batches


@dataclass(frozen=True, slots=True)
class _Type:
    spark: types.DataType
    make: Make
    method: Callable[[Any], Any]
    method_result: types.DataType


_DAY, _INSTANT = dt.date(1990, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
_PAIR = types.StructType(
    [types.StructField("a", types.LongType()), types.StructField("b", types.StringType())]
)

TYPES: Final[Mapping[str, _Type]] = {
    "bigint": _Type(types.LongType(), lambda n: n * 7, lambda x: x * 3 + 1, types.LongType()),
    "double": _Type(types.DoubleType(), lambda n: n / 7, lambda x: x * 1.5, types.DoubleType()),
    "boolean": _Type(
        types.BooleanType(), lambda n: n % 3 == 0, lambda x: not x, types.BooleanType()
    ),
    "string": _Type(types.StringType(), lambda n: f"user {n}@home", str.upper, types.StringType()),
    "binary": _Type(
        types.BinaryType(), lambda n: b"%d bytes" % n, lambda x: x[:4], types.BinaryType()
    ),
    "date": _Type(
        types.DateType(),
        lambda n: _DAY + dt.timedelta(n % 20_000),
        lambda x: x.replace(day=1),
        types.DateType(),
    ),
    "timestamp": _Type(
        types.TimestampType(),
        lambda n: _INSTANT + dt.timedelta(seconds=n, microseconds=n),
        lambda x: x.replace(microsecond=0),
        types.TimestampType(),
    ),
    "timestamp_ntz": _Type(
        types.TimestampNTZType(),
        lambda n: (_INSTANT + dt.timedelta(seconds=n, microseconds=n)).replace(tzinfo=None),
        lambda x: x.replace(microsecond=0),
        types.TimestampNTZType(),
    ),
    "decimal": _Type(
        types.DecimalType(12, 2),
        lambda n: Decimal(n) / 4,
        lambda x: x + 1,
        types.DecimalType(12, 2),
    ),
    "array<string>": _Type(
        types.ArrayType(types.StringType()),
        lambda n: [f"a{n}", f"b{n % 7}", "c"],
        lambda x: x[1:],
        types.ArrayType(types.StringType()),
    ),
    "array<bigint>": _Type(
        types.ArrayType(types.LongType()), lambda n: [n, n + 1, 3], len, types.LongType()
    ),
    "struct": _Type(_PAIR, lambda n: {"a": n, "b": f"b{n}"}, lambda x: x.a, types.LongType()),
}
"""By name: the type, what makes its value of a number, and a function of a value."""


_AT_HOME: Final = re.compile(r"(\d+)@h")


def _is_at_home(text: str) -> bool:
    return _AT_HOME.search(text) is not None


def _same(value: Any) -> Any:  # noqa: ANN401 - of any type
    return value


def cases() -> list[Case]:
    """Return all cases, those of a type together."""
    found = []
    for name, each in TYPES.items():
        one, made = [each.spark], each.make
        found += [
            Case(name, Kind.IDENTITY, [lambda x: x], one, each.spark, made),
            Case(name, Kind.NULLS, [lambda x: x], one, each.spark, made),
            Case(name, Kind.METHOD, [each.method], one, each.method_result, made),
        ]
        if name in {"bigint", "string"}:
            two, nothing = _two_and_nothing(name)
            nested = [each.method, _same, each.method]
            found += [
                Case(name, Kind.NOTHING, [nothing], one, each.spark, made),
                Case(name, Kind.TWO, [two], [each.spark, each.spark], each.spark, made),
                Case(name, Kind.NESTED, nested, one, each.spark, made),
                Case(name, Kind.SAME, [each.method], one, each.method_result, made),
            ]
        if name == "string":
            found.append(Case(name, Kind.REGEX, [_is_at_home], one, types.BooleanType(), made))
    return found


def _two_and_nothing(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    if name == "bigint":
        return lambda x, y: x + y, lambda x: x if x % 2 else None
    return lambda x, y: x + y, lambda x: x if x[-6] == "1" else None
