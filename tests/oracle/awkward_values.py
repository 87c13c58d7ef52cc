"""Values of every type that operators trip over, and expressions written as Spark SQL."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from dataclasses import dataclass

import pyarrow as pa

from eddyline.expressions import (
    And,
    Argument,
    Arithmetic,
    ArithmeticOperator,
    Case,
    Cast,
    Coalesce,
    Comparison,
    Expression,
    In,
    IsNaN,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    StringMatch,
    StringTest,
)
from eddyline.expressions.strings import Length
from eddyline.expressions.vector import Vector

NARROW = pa.decimal128(10, 2)
WIDE = pa.decimal128(24, 6)
INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
FLOATS = (pa.float32(), pa.float64())


def _integers(bits: int) -> list[object]:
    top = 2 ** (bits - 1)
    return [0, 1, -1, 2, 3, -3, 7, 10, 100, -100, top - 1, -top, top - 2, top // 2, -top // 2]


_FLOATING: list[float] = [
    0.0, -0.0, 1.0, -1.0, 1.5, -1.5, 0.1, math.nan, math.inf, -math.inf, 2.0, 127.9, 128.0,
    -128.9, -129.0, 32767.5, 32768.0, -32769.0, 2147483647.0, 2147483647.5, 2147483648.0,
    -2147483648.9, -2147483649.0, 1e-300, 9223372036854775807.0, -9223372036854775808.0,
    9.3e18, -9.3e18, 1.7e308, 16777217.0, 4294967297.0,
]  # fmt: skip
_DATES = [dt.date(1970, 1, 1), dt.date(1582, 10, 15), dt.date(2024, 2, 29), dt.date(1, 1, 1),
          dt.date(9999, 12, 31)]  # fmt: skip
_TIMES = [
    dt.datetime.fromisoformat(text)
    for text in ("1970-01-01", "1969-12-31T23:59:59.999999", "2024-10-27T01:30", "1900-01-01")
]

VALUES: dict[pa.DataType, list[object]] = {
    pa.bool_(): [True, False],
    pa.int8(): _integers(8),
    pa.int16(): _integers(16),
    pa.int32(): _integers(32),
    pa.int64(): [*_integers(64), 2**53 + 1, 2**62 + 2**38 + 1, 3037000500],
    pa.float32(): [value for value in _FLOATING if not 1e38 < abs(value) < math.inf],
    pa.float64(): list(_FLOATING),
    pa.string(): [
        "", "a", "b", "ab", "A", "a%", "a_b", "ab\nc", "é", "e\u0301", "😀", "a😀b", "\uffff",
        " a ", "abc", "aab", "%", "\\", "a\\b", "z", "\x00", "a\x00", "ß", "中文",
    ],
    pa.binary(): [b"", b"\x00", b"\x7f", b"\x80", b"\xff", b"a", b"ab", b"a\x00"],
    NARROW: [decimal.Decimal(text) for text in (
        "0.00", "1.00", "-1.00", "0.10", "99999999.99", "-99999999.99", "12345.67")],
    WIDE: [decimal.Decimal(text) for text in (
        "0.000000", "0.100000", "-1.000000", "1.000000", "999999999999999999.999999",
        "123456.700001", "0.300001", "9007199254740993.000001")],
    pa.date32(): list(_DATES),
    pa.timestamp("us", "UTC"): [time.replace(tzinfo=dt.UTC) for time in _TIMES],
    pa.timestamp("us"): list(_TIMES),
}  # fmt: skip

DDL = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    NARROW: "decimal(10,2)",
    WIDE: "decimal(24,6)",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
}

FUNCTIONS = {
    ArithmeticOperator.NEGATE: "negative",
    ArithmeticOperator.ABSOLUTE: "abs",
    StringTest.STARTS_WITH: "startswith",
    StringTest.ENDS_WITH: "endswith",
    StringTest.CONTAINS: "contains",
}


@dataclass(frozen=True)
class Columns:
    """The scope of all rows of some columns; there is nothing to call."""

    arrays: list[pa.Array]

    def argument(self, index: int) -> pa.Array:
        return self.arrays[index]

    def call(self, call: object) -> Vector:
        raise AssertionError(call)

    def narrow(self, positions: object) -> Columns:
        return Columns([array.take(pa.array(positions)) for array in self.arrays])

    def __len__(self) -> int:
        return len(self.arrays[0])


def same(ours: object, theirs: object) -> bool:
    """Equal, with NaN equal to NaN and 0.0 not equal to -0.0."""
    return type(ours) is type(theirs) and repr(ours) == repr(theirs)


def constant(value: object, kind: pa.DataType) -> str:
    if value is None:
        return f"CAST(NULL AS {DDL[kind]})"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, str):
        return f"CAST(X'{value.encode().hex()}' AS STRING)"
    if isinstance(value, dt.date):  # a time stamp is one too
        return f"{DDL[kind]}'{value.isoformat()}'"
    return f"CAST('{value}' AS {DDL[kind]})"


def sql(expression: Expression) -> str:  # noqa: C901, PLR0911, PLR0912  # one a node
    """The expression for Spark; column ``i`` is called ``ci`` there."""
    parts = [sql(child) for child in expression.children]
    match expression:
        case Argument():
            return f"c{expression.index}"
        case Literal():
            return constant(expression.value, expression.type)
        case And():
            return f"({' AND '.join(parts)})"
        case Or():
            return f"({' OR '.join(parts)})"
        case Not():
            return f"(NOT {parts[0]})"
        case Comparison():
            return f"({parts[0]} {expression.operator} {parts[1]})"
        case Arithmetic() if len(parts) == 1:
            return f"{FUNCTIONS[expression.operator]}({parts[0]})"
        case Arithmetic():
            return f"({parts[0]} {expression.operator} {parts[1]})"
        case IsNull():
            return f"({parts[0]} IS NULL)"
        case IsNaN():
            return f"isnan({parts[0]})"
        case In():
            return f"({parts[0]} IN ({', '.join(parts[1:])}))"
        case Like():
            pattern = constant(expression.pattern, pa.string())
            escape = expression.escape.replace("\\", "\\\\")
            return f"({parts[0]} LIKE {pattern} ESCAPE '{escape}')"
        case Length():
            return f"length({parts[0]})"
        case StringMatch():
            needle = constant(expression.needle, pa.string())
            return f"{FUNCTIONS[expression.test]}({parts[0]}, {needle})"
        case Case():
            pairs = zip(parts[:-1:2], parts[1:-1:2], strict=True)
            branches = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
            return f"CASE {branches} ELSE {parts[-1]} END"
        case Coalesce():
            return f"coalesce({', '.join(parts)})"
        case Cast():
            return f"CAST({parts[0]} AS {DDL[expression.type]})"
        case _:
            raise AssertionError(f"sql() has no case for {expression}")
