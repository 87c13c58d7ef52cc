"""Values of every type that is joined on, drawn so that equal ones and awkward ones are common."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from eddyline.engine.storage.kernels import GOLDEN, HALF
from eddyline.engine.storage.text_kernels import MIXER
from tests.oracle.plain_values import plain

DAY = dt.date(2024, 2, 29)
NOON = dt.datetime(2024, 2, 29, 12)  # noqa: DTZ001 - Spark's timestamps without zone
DIGITS = "9" * 38

INNER = pa.struct([("t", pa.string()), ("f", pa.float64())])
OUTER = pa.struct([("i", pa.int32()), ("s", INNER)])

TEXTS = [
    *("", "a", "b", "ab", "ümlaut", "eight ch", "nine char", "nine chas"),
    *("fifteen letters", "sixteen letters!", "sixteen letterss", "seventeen letters"),
]
"""Around the sizes at which a text needs another word, and no longer fits into two."""

VALUES: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [False, True],
    pa.int8(): [-128, -1, 0, 1, 127],
    pa.int16(): [-(2**15), 0, 1, 300],
    pa.int32(): [-(2**31), -1, 0, 1, 2**31 - 1],
    pa.int64(): [-(2**63), -1, 0, 1, 2**32, 2**63 - 1],
    pa.float32(): [-math.inf, -1.5, -0.0, 0.0, 1.0, math.inf, math.nan],
    pa.float64(): [-math.inf, -1e-300, -0.0, 0.0, 1e-300, math.inf, math.nan],
    pa.date32(): [DAY - dt.timedelta(days=1), DAY, dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    pa.timestamp("us"): [NOON, NOON + dt.timedelta(microseconds=1), dt.datetime(1, 1, 1)],  # noqa: DTZ001 - as above
    pa.duration("us"): [dt.timedelta(0), dt.timedelta(microseconds=-1), dt.timedelta(days=9)],
    pa.decimal128(10, 2): [decimal.Decimal(c) for c in ("-1.50", "0.00", "1.50", "1.75")],
    pa.decimal128(38, 0): [
        *map(decimal.Decimal, (DIGITS, f"-{DIGITS}", str(10**38 - 1 - 2**64))),
        *map(decimal.Decimal, (0, -1, 2**64)),
    ],
    pa.string(): TEXTS,
    pa.large_string(): TEXTS,
    pa.binary(): [text.encode() for text in TEXTS] + [b"\0", b"\0\0"],
    pa.large_binary(): [b"", b"\0", b"12345678", b"12345678\0"],
    INNER: [
        {"t": t, "f": f} for t in ("", "x", None) for f in (0.0, -0.0, math.nan, None)
    ],
    OUTER: [
        {"i": i, "s": s}
        for i in (1, None)
        for s in (None, {"t": "x", "f": None}, {"t": None, "f": math.nan}, {"t": "", "f": 0.0})
    ],
}  # fmt: skip

ORDERED = (
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.date32(),
    pa.timestamp("us"),
    pa.duration("us"),
    pa.decimal128(10, 2),
)

TYPES = st.sampled_from(list(VALUES))


def values_of(a_type: pa.DataType) -> st.SearchStrategy[Any]:
    """Return values of a type, NULL among them."""
    return st.one_of(st.none(), *[st.sampled_from(VALUES[a_type])] * 4)


def columns_of(a_type: pa.DataType, most: int = 30) -> st.SearchStrategy[list[Any]]:
    """Return the values of a column."""
    return st.lists(values_of(a_type), max_size=most)


def same(left: Any, right: Any) -> bool:  # noqa: ANN401 - any value of a column
    """Tell whether two keys are equal as Spark has it: NULL is equal to nothing."""
    return left is not None and right is not None and bool(plain(left) == plain(right))


def order_of(value: Any) -> tuple[bool, Any]:  # noqa: ANN401 - any value of a column
    """Return what a value is sorted by as Spark has it: NaN last."""
    if isinstance(value, float) and math.isnan(value):
        return True, 0.0
    return False, value


def sliced(values: list[Any], a_type: pa.DataType, cut: int) -> pa.Array:
    """Return values as an array that starts in the middle of its buffers."""
    front = VALUES[a_type][:cut] if a_type in VALUES else [None] * cut
    return pa.array([*front, *values, None], a_type).slice(len(front), len(values))


def with_rubbish(values: list[Any], a_type: pa.DataType) -> pa.Array:
    """Return values as an array in which what stands under a NULL differs from row to row."""
    if not pa.types.is_struct(a_type):
        return pa.array(values, a_type)
    missing = np.array([value is None for value in values], np.bool_)
    children = []
    for field in a_type:
        rubbish = [value for value in VALUES[field.type] if value is not None]
        parts = [
            rubbish[at % len(rubbish)] if value is None else value[field.name]
            for at, value in enumerate(values)
        ]
        children.append(with_rubbish(parts, field.type))
    return pa.StructArray.from_arrays(children, fields=list(a_type), mask=pa.array(missing))


def colliding(count: int) -> list[bytes]:
    """Return different texts of 24 bytes with the same two words."""
    with np.errstate(over="ignore"):
        size = np.uint64(24) * MIXER
        seconds = [np.uint64(n) for n in range(1, count + 1)]
        halves = []
        for second in seconds:
            mixed = (size ^ second) * GOLDEN
            halves.append(mixed ^ (mixed >> HALF))
    thirds = [half ^ halves[0] for half in halves]
    return [
        np.array([7, second, third], np.uint64).tobytes()
        for second, third in zip(seconds, thirds, strict=True)
    ]
