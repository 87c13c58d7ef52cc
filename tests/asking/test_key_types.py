"""Keys of every type that Spark sends, from a task over the wire to a source, and rows back."""

from __future__ import annotations

import datetime as dt
import json
import math
import time
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from eddyline.asking.access_method import AccessMethod
from eddyline.asking.driver_channel import DriverChannel
from eddyline.asking.event_loop import EventLoop
from eddyline.asking.http_lookup import HttpLookup
from eddyline.asking.limits import Limits
from eddyline.asking.lookup_server import LookupServer
from eddyline.asking.lookup_source import LookedUpTable
from eddyline.asking.python_lookup import PythonLookup
from eddyline.asking.remote_method import RemoteLookup
from eddyline.asking.shared_agenda import SharedAgenda
from eddyline.engine.callers import PlannedCall
from eddyline.engine.signature import ENTERING
from tests.asked import answered, canonical
from tests.http_service import HttpService, Reply, Request

NOON = dt.datetime(2024, 6, 1, 12, microsecond=7)  # noqa: DTZ001 - local
ZONED = pa.timestamp("us", tz="Europe/Paris")

KEYS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.string(), ["", "a", "a\0b", "'\"\\", "\u00e9", "e\u0301", "\U0001f512", "x" * 100_000]),
    (pa.large_string(), ["", "a"]),
    (pa.bool_(), [True, False]),
    (pa.int8(), [-128, 0, 127]),
    (pa.int16(), [-(2**15), 2**15 - 1]),
    (pa.int32(), [-(2**31), 2**31 - 1]),
    (pa.int64(), [-(2**63), 0, 2**63 - 1]),
    (pa.float32(), [0.5, -0.5, math.inf, math.nan]),
    (pa.float64(), [0.1, -1e308, 5e-324, math.inf, -math.inf, math.nan, 0.0]),
    (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("-99999999.99"), Decimal("0.00")]),
    (pa.decimal128(38, 0), [Decimal(10**38 - 1), Decimal(-1)]),
    (pa.date32(), [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(9999, 12, 31)]),
    (pa.timestamp("us"), [NOON, dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59)]),  # noqa: DTZ001 - local
    (ZONED, [NOON.replace(tzinfo=dt.UTC), dt.datetime(1900, 1, 1, tzinfo=dt.UTC)]),
    (pa.binary(), [b"", b"\0", bytes(range(256))]),
    (pa.large_binary(), [b"", b"\0"]),
]


def looked_up(
    table: LookedUpTable, source: PythonLookup, keys: Sequence[Sequence[Any]]
) -> list[list[dict[str, Any]]]:
    """Return the rows of each key, asked for in a task's way."""
    loop = EventLoop()
    channel = DriverChannel()
    methods = {"t": AccessMethod(table, source, Limits())}
    server = LookupServer(loop, methods, time.monotonic, channel)
    agenda = SharedAgenda()
    wanted = list(enumerate(table.types))
    remote = RemoteLookup(server.address, "1", "t", agenda, wanted, width=4)
    try:
        remote.attend(0)
        kinds = [table.types[column] for column in table.bind]
        remote.submit(
            [
                PlannedCall(
                    (ENTERING, number),
                    (tuple(pa.array([v], kind) for v, kind in zip(key, kinds, strict=True)),),
                )
                for number, key in enumerate(keys)
            ]
        )
        found: dict[int, list[dict[str, Any]]] = {}
        while len(found) < len(keys):
            agenda.wait()
            for done in remote.collect():
                assert done.error is None, done.error
                assert isinstance(done.value, list)
                rows = pa.Table.from_arrays(done.value, names=list(table.columns))
                assert rows.schema == table.schema
                found[done.key[1]] = rows.to_pylist()
        return [found[number] for number in range(len(keys))]
    finally:
        remote.close()
        server.close()
        channel.close()
        loop.close()


@pytest.mark.parametrize(("kind", "keys"), KEYS, ids=[str(kind) for kind, _ in KEYS])
@pytest.mark.parametrize("keys_per_call", [1, 100])
def test_a_key_of_any_type_goes_there_and_back(
    kind: pa.DataType, keys: list[Any], keys_per_call: int
) -> None:
    table = LookedUpTable("t", ("n", "k"), (pa.int64(), kind), (1,))
    order = {canonical(key): n for n, key in enumerate(keys)}
    asked: list[Any] = []

    def function(given: list[Any]) -> list[tuple[int, Any]]:
        asked.extend(given)
        return [(order[canonical(key)] + plus, key) for key in given for plus in (0, 100)]

    found = looked_up(table, PythonLookup(function, keys_per_call), [(key,) for key in keys])
    assert sorted(map(str, map(canonical, asked))) == sorted(map(str, order))
    for n, (key, rows) in enumerate(zip(keys, found, strict=True)):
        assert [(row["n"], canonical(row["k"])) for row in rows] == [
            (n, canonical(key)),
            (n + 100, canonical(key)),
        ]


def test_minus_zero_is_zero_and_any_nan_is_nan() -> None:
    table = LookedUpTable("t", ("k",), (pa.float64(),), (0,))
    asked: list[float] = []

    def function(given: list[float]) -> list[tuple[float]]:
        asked.extend(given)
        return [(key,) for key in given]

    found = looked_up(
        table, PythonLookup(function, 10), [(0.0,), (-0.0,), (math.nan,), (-math.nan,)]
    )
    assert len(asked) == 2
    assert [[canonical(row["k"]) for row in rows] for rows in found] == [
        [0.0],
        [0.0],
        ["NaN"],
        ["NaN"],
    ]


def test_keys_have_several_columns_in_the_order_of_bind() -> None:
    kinds = (pa.int64(), pa.string(), pa.date32(), pa.float64())
    table = LookedUpTable("t", ("v", "a", "b", "c"), kinds, (2, 3, 1))
    day = dt.date(2024, 6, 1)
    keys = [(day, 1.5, "a"), (day, math.nan, "a"), (day, 1.5, "b"), (day, 0.0, "")]
    asked: list[Any] = []

    def function(given: list[Any]) -> list[tuple[int, str, dt.date, float]]:
        asked.extend(given)
        return [(len(asked), a, b, c) for b, c, a in reversed(given)]

    found = looked_up(table, PythonLookup(function, 100), keys)
    assert [tuple(map(canonical, key)) for key in asked] == [
        tuple(map(canonical, key)) for key in keys
    ]
    assert [[(row["b"], canonical(row["c"]), row["a"]) for row in rows] for rows in found] == [
        [tuple(map(canonical, key))] for key in keys
    ]


def test_nothing_is_asked_for_no_keys() -> None:
    table = LookedUpTable("t", ("k",), (pa.int64(),), (0,))
    asked: list[list[int]] = []

    def function(given: list[int]) -> list[tuple[int]]:
        asked.append(given)
        return []

    assert looked_up(table, PythonLookup(function), []) == []
    assert answered(PythonLookup(function), table, [])[0] == []
    assert asked == []


@pytest.mark.parametrize(
    ("kind", "key", "text", "plain"),
    [
        (pa.bool_(), True, "true", True),
        (pa.int64(), -5, "-5", -5),
        (pa.float64(), 0.1, "0.1", 0.1),
        (pa.decimal128(10, 2), Decimal("1.50"), "1.50", "1.50"),
        (pa.date32(), dt.date(2024, 6, 1), "2024-06-01", "2024-06-01"),
        (pa.timestamp("us"), NOON, "2024-06-01T12:00:00.000007", "2024-06-01T12:00:00.000007"),
        (
            ZONED,
            NOON.replace(tzinfo=dt.UTC),
            "2024-06-01T12:00:00.000007+00:00",
            "2024-06-01T12:00:00.000007+00:00",
        ),
        (pa.binary(), b"\0\xff/", "AP8v", "AP8v"),
        (pa.string(), "\u00e9 &=/#?%+", "\u00e9 &=/#?%+", "\u00e9 &=/#?%+"),
    ],
)
def test_a_service_is_sent_what_it_can_send_back(
    kind: pa.DataType, key: object, text: str, plain: object
) -> None:
    table = LookedUpTable("t", ("k", "n"), (kind, pa.int64()), (0,))

    def answer(request: Request) -> Reply:
        body = json.loads(request.body)
        assert (request.path, request.query, body) == (f"/{text}", {"k": text}, {"k": plain})
        return Reply([{"k": body["k"], "n": 1}])

    with HttpService(answer) as service:
        source = HttpLookup(
            service.url + "/{k}", params={"k": "{k}"}, method="POST", body={"k": "{k}"}
        )
        (found,), _ = answered(source, table, [(key,)])
        assert found == [(key, 1)]
