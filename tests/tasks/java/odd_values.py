"""What functions return that is not of a type of Spark's, by name."""

from __future__ import annotations

import argparse
import array
import collections
import datetime as dt
import decimal
import email.message
import fractions
import http
import json
import pathlib
import re
import string
import types
import uuid
import zoneinfo
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytz
from hypothesis import strategies as st
from pyspark.sql.types import Row

PLACE = re.compile(r"@[0-9a-f]{1,8}\b")
"""A hash code that Java takes of an object's place in memory, in its text."""

_NOON = dt.datetime(2020, 7, 2, 12, 34, 56, 789_012)  # noqa: DTZ001 - naive is the case
_TWICE = _NOON.replace(fold=1)


def _in_itself() -> list[Any]:
    outer: list[Any] = [1]
    outer.append(outer)
    return outer


def _map_in_itself() -> dict[str, Any]:
    outer: dict[str, Any] = {"x": 1}
    outer["me"] = outer
    return outer


def _surrogates_and_nans() -> list[tuple[Any, int]]:
    return [("a\ud800", 1), ("a\ufffd", 2), (float("nan"), 3), (float("nan"), 4)]


def _shared() -> list[Any]:
    one = [1]
    return [one, one, {"k": one}]


KNOWN: dict[str, Any] = {
    "numbers": [
        1,
        -1,
        300,
        2**31 - 1,
        -(2**31),
        2**31,
        2**63 - 1,
        -(2**63),
        2**63,
        3**200,
        -(3**90),
    ],
    "endless numbers": [3**20_000, -(1 << 20_000), {Decimal("7" * 5_000), 1 << 20_001}],
    "floats": [1.5, 1e7, 1e-3, 9.999e-4, -0.0, float("nan"), float("-inf"), 1e23, 5e-324],
    "texts": ["", "zoé \U0001f40d", "a\ud800b", "\udc00\ud800"],
    "bytes": [b"ab", bytearray(b"ab"), b"", bytearray()],
    "decimals": [
        Decimal(t) for t in ("-0.00", "0E+5", "1E+20", "-1.50", "1E-30", "NaN", "12" * 20)
    ],
    "dict": {"a": 1, "b": "x"},
    "JSON": {
        "name": "Ann",
        "tags": ["x", "y"],
        "n": 1.5,
        "ok": True,
        "no": None,
        "in": {"deep": []},
    },
    "dict of odd keys": {None: 1, 2: 2, "a": 3, 2.5: 4, 2**40: 5, 2**70: 6, Decimal("1.50"): 7},
    "dict of keys that are one to Java": dict(_surrogates_and_nans()),
    "dict of tuples": {(1, 2): b"x"},
    "12 keys": {f"k{i}": i for i in range(12)},
    "24 keys": {f"k{i}": i for i in range(24)},
    "1500 keys": {f"key{i}": i for i in range(1500)},
    "OrderedDict": collections.OrderedDict(a=1, b=2),
    "set": {1},
    "mixed set": {"a", "b", "c", 1, 2.0, None},
    "frozensets": {frozenset({1}), frozenset({1, 2}), frozenset()},
    "trees": [{float(i) for i in range(700)}, {i << 40: i for i in range(300)}],
    "crowded": [{i << 20: i for i in range(11)}, {i << 20 for i in range(200)}],
    "set of numbers": {float("nan"), 0.0, 1.0, 2.5, 3, *range(100, 120)},
    "set of decimals": {Decimal(987_654_321_987 * i).scaleb(-2) for i in range(20)},
    "texts that are one to Java": {"a\ud800": 1, "a" + chr(0xFFFD): 2, "b": 3},
    "frozen tree": frozenset(i << 16 for i in range(99)),
    "date": [dt.date(2020, 1, 2), {dt.date(1400 + 40 * i, 2, 28) for i in range(16)}],
    "datetime": [
        _NOON,
        _TWICE,
        {_NOON + dt.timedelta(hours=9 * i) for i in range(60)},
        dt.datetime(1, 1, 1),  # noqa: DTZ001 - as above
    ],
    "times": [dt.time(1, 2, 3, 4), dt.time(1, 2, fold=1), {dt.time(i) for i in range(20)}],
    "timedelta": [dt.timedelta(days=-1, microseconds=7), dt.timedelta(), dt.timedelta.max],
    "timedeltas": {dt.timedelta(seconds=7 * i) for i in range(20)},
    "complex": [1j, complex(1.5, -2), complex(float("nan"), float("nan")), complex(0, -0.0)],
    "complex set": {complex(i, 1) for i in range(20)},
    "tuple": [(1, 2), (), (1, "x", None, [2])],
    "arrays": [array.array(code, [1, 2]) for code in "bBhHiIlfd"],
    "characters": array.array("u", "ab"),
    "UTC of pytz": [pytz.utc, pytz.utc.localize(_NOON)],
    "in itself": _in_itself(),
    "map in itself": _map_in_itself(),
    "shared": _shared(),
    "object": object(),
    "UUID": uuid.UUID(int=5),
    "attributes": [argparse.Namespace(a=1, b="x"), string.Template("a$b"), email.message.Message()],
    "UserDict": [
        collections.UserDict(a=1),
        collections.UserList([1]),
        collections.ChainMap({"a": 1}),
    ],
    "pd.NA": pd.NA,
    "names": [..., NotImplemented, len, json.loads],
    "classes": [int, set, dt.date, complex, ValueError, Decimal, array.array, pd.DataFrame],
    "errors": [
        ValueError("bad"),
        KeyError("k"),
        Exception(),
        ValueError(5),
        OSError(2, "no"),
        SystemExit(1),
    ],
}
"""What the JVM makes something of."""

REFUSED: dict[str, Any] = {
    "Decimal without end": Decimal("Infinity"),
    "Decimal sNaN": Decimal("sNaN"),
    "Decimal -NaN": Decimal("-NaN"),
    "large exponent": Decimal("1E+99999999999"),
    "memoryview": memoryview(b"ab"),
    "aware datetime": _NOON.replace(tzinfo=dt.UTC),
    "zone": zoneinfo.ZoneInfo("Europe/Paris"),
    "aware time": dt.time(1, tzinfo=dt.UTC),
    "offset of pytz": pytz.FixedOffset(60),
    "Row": Row(a=1, b="x"),
    "Row without names": Row("x", "y"),
    "defaultdict": collections.defaultdict(list, a=[1]),
    "Counter": collections.Counter("aab"),
    "deque": collections.deque([1, 2]),
    "long array": array.array("L", [1]),
    "array of q": array.array("q", [1]),
    "character beyond": array.array("u", "\U0001f40d"),
    "NumPy int": np.int64(3),
    "NumPy str in a list": [np.str_("x")],
    "NumPy array": np.array([1, 2]),
    "NumPy datetime": np.datetime64("2020-01-01"),
    "Timestamp": pd.Timestamp("2020-01-02"),
    "NaT": pd.NaT,
    "Series": pd.Series([1]),
    "Fraction": fractions.Fraction(1, 3),
    "path": pathlib.PurePosixPath("/a/b"),
    "range": range(3),
    "pattern": re.compile("a"),
    "lambda": lambda: None,
    "method": "a".upper,
    "keys": {"a": 1}.keys(),
    "iterator": iter([1]),
    "group": ExceptionGroup("g", [ValueError(1)]),
    "namespace": types.SimpleNamespace(a=1),
    "status": http.HTTPStatus.OK,
    "context": decimal.Context(),
    "error of another module": json.JSONDecodeError("a", "b", 0),
}
"""What the JVM cannot unpickle."""

UNPICKLABLE: dict[str, Any] = {
    "generator": (item for item in [1]),
    "match": re.match("a", "a"),
}
"""What cannot even be pickled."""

hashable = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-300, 300)
    | st.integers(-(2**80), 2**80)
    | st.integers(-99, 99).map(float)
    | st.sampled_from([0.5, -0.0, 1e300, float("inf"), float("nan")])
    | st.text(max_size=6)
    | st.text("ab", max_size=9)
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.sampled_from([Decimal("-0.00"), Decimal("NaN"), Decimal("1E+9")])
    | st.dates()
    | st.datetimes()
    | st.times()
    | st.timedeltas(),
    lambda inner: st.frozensets(inner, max_size=5),
    max_leaves=4,
)

returned = st.recursive(
    hashable,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(hashable, inner, max_size=30)
        | st.dictionaries(st.text(max_size=8), inner, max_size=14)
        | st.sets(hashable, max_size=40)
        | st.tuples(inner)
    ),
    max_leaves=60,
)
"""Values of the common types, in each other, as a function may return them."""


def random_value(random: Random, depth: int = 0) -> Any:  # noqa: ANN401 - of any type
    """Return one of these at random, many times as fast as a strategy draws it."""
    if depth < _DEEPEST and (shape := random.randrange(9)) < len(_CONTAINERS):
        inner = [random_value(random, depth + 1) for _ in range(random.randrange(20))]
        keys = [_random_key(random) for _ in inner]
        return _CONTAINERS[shape](keys, inner)
    return _random_key(random)


_DEEPEST = 3

_CONTAINERS: list[Callable[[list[Any], list[Any]], Any]] = [
    lambda keys, inner: dict(zip(keys, inner, strict=True)),
    lambda keys, inner: {str(key)[:5]: item for key, item in zip(keys, inner, strict=True)},
    lambda keys, _: set(keys),
    lambda _, inner: inner,
    lambda keys, _: frozenset(keys),
    lambda _, inner: tuple(inner[:3]),
]


def _random_key(random: Random) -> Any:  # noqa: ANN401 - of any hashable type
    number = random.randrange(-99, 99)
    return random.choice(
        [
            number,
            number << random.randrange(70),
            float(number),
            number / 7 * 10.0 ** random.randrange(-12, 30),
            f"key{number}",
            chr(0x20AC + number) * 2,
            Decimal(number).scaleb(random.randrange(-4, 30)),
            dt.date(2020, 1, 1) + dt.timedelta(days=1000 * number),
            _NOON + dt.timedelta(hours=12_345 * number),
            dt.time(number % 24, 7, 5),
            dt.timedelta(hours=number, microseconds=number),
            complex(number, 1),
            random.choice([None, True, False]),
        ]
    )
