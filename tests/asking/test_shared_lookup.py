"""Each key is asked for once, with patience, within the limits."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any, TypeVar

import pyarrow as pa
import pytest

from eddyline.asking.access_method import AccessMethod, SharedTable
from eddyline.asking.http_lookup import HttpLookup
from eddyline.asking.limits import Limits, OnError
from eddyline.asking.lookup_source import LookedUpTable
from eddyline.asking.python_lookup import PythonLookup
from eddyline.errors import LookupFailedError
from tests.asked import rows_of
from tests.http_service import HttpService, Reply, Request

Result = TypeVar("Result")

TABLE = LookedUpTable("t", ("a", "b"), (pa.int64(), pa.string()), (0,))


def shared(
    function: Callable[[list[Any]], object], limits: Limits | None = None, keys_per_call: int = 1
) -> SharedTable:
    method = AccessMethod(TABLE, PythonLookup(function, keys_per_call), limits or Limits())
    return method.shared("1", Random(0), time.monotonic)


async def rows(lookup: SharedTable, keys: Sequence[Any]) -> list[Any]:
    """Return the rows of each key, or the error."""
    return await rows_of(lookup, [(key,) for key in keys])


def run(work: Awaitable[Result]) -> Result:
    async def waited() -> Result:
        return await work

    return asyncio.run(waited())


def test_a_key_is_asked_for_once_whoever_asks() -> None:
    asked: list[int] = []

    async def function(keys: list[int]) -> list[tuple[int, str]]:
        asked.extend(keys)
        await asyncio.sleep(0.01)
        return [(key, f"r{key}") for key in keys if key != 3]

    async def work() -> None:
        lookup = shared(function)
        first, second = await asyncio.gather(rows(lookup, [1, 2, 1]), rows(lookup, [2, 3]))
        assert first == [[(1, "r1")], [(2, "r2")], [(1, "r1")]]
        assert second == [[(2, "r2")], []]
        assert await rows(lookup, [3, 1]) == [[], [(1, "r1")]]
        assert sorted(asked) == [1, 2, 3]
        assert lookup.statistics().keys == 3
        await lookup.close()

    run(work())


def test_answers_to_several_keys_are_told_apart() -> None:
    calls: list[list[int]] = []

    def function(keys: list[int]) -> list[Any]:
        calls.append(keys)
        strange: list[Any] = [(99, "strange")]
        return [*((key, f"{n}") for n in range(2) for key in reversed(keys) if key % 3), *strange]

    async def work() -> None:
        lookup = shared(function, Limits(max_in_flight=1), keys_per_call=4)
        found = await rows(lookup, list(range(7)))
        expected = [[(k, "0"), (k, "1")] if k % 3 else [] for k in range(7)]
        assert found == expected
        assert calls == [[0, 1, 2, 3], [4, 5, 6]]
        await lookup.close()

    run(work())


def test_no_more_than_the_limit_are_on_their_way_and_no_fewer_while_keys_wait() -> None:
    def answer(_: Request) -> Reply:
        return Reply([{"b": "x"}], delay=0.01)

    with HttpService(answer) as service:

        async def work() -> None:
            source = HttpLookup(service.url + "/{a}")
            method = AccessMethod(TABLE, source, Limits(max_in_flight=5))
            lookup = method.shared("1", Random(0), time.monotonic)
            await rows(lookup, range(50))
            assert lookup.statistics().most_in_flight == 5
            await lookup.close()

        run(work())
        assert service.most == 5
        assert len(service.log) == 50


def test_what_may_pass_is_tried_again_and_what_will_not_is_not() -> None:
    tries: dict[int, int] = {}

    def function(keys: list[int]) -> list[tuple[int, str]]:
        (key,) = keys
        tries[key] = tries.get(key, 0) + 1
        if key == 1 and tries[key] < 3:
            raise ConnectionError("not yet")
        if key == 2:
            raise ConnectionError("never")
        if key == 3:
            raise ZeroDivisionError("no way")
        return [(key, "x")]

    async def work() -> None:
        lookup = shared(function, Limits(retries=2))
        found = await rows(lookup, [0, 1, 2, 3])
        assert found[:2] == [[(0, "x")], [(1, "x")]]
        assert "function" in found[2]
        assert found[2].endswith("asked for t a=2: ConnectionError: never, tried 3 times")
        assert found[3].endswith("asked for t a=3: ZeroDivisionError: no way")
        assert tries == {0: 1, 1: 3, 2: 3, 3: 1}
        await lookup.close()

    run(work())


def test_a_server_that_asks_for_time_gets_it() -> None:
    def answer(_: Request) -> Reply:
        if len(service.log) == 1:
            return Reply(None, 429, {"Retry-After": "0.3"})
        return Reply([{"b": "x"}])

    with HttpService(answer) as service:

        async def work() -> None:
            method = AccessMethod(TABLE, HttpLookup(service.url + "/{a}"), Limits())
            lookup = method.shared("1", Random(0), time.monotonic)
            assert await rows(lookup, [1]) == [[(1, "x")]]
            await lookup.close()

        run(work())
        first, second = service.log
        assert second.began - first.ended >= 0.3


@pytest.mark.parametrize(("on_error", "found"), [(OnError.NULL, [(7, None)]), (OnError.SKIP, [])])
def test_a_key_without_an_answer_may_do(on_error: OnError, found: list[Any]) -> None:
    def function(keys: list[int]) -> list[tuple[int, str]]:
        raise ValueError(f"no {keys}")

    async def work() -> None:
        lookup = shared(function, Limits(on_error=on_error))
        assert await rows(lookup, [7]) == [found]
        assert lookup.statistics().failures == 1
        await lookup.close()

    run(work())


def test_a_source_that_does_not_answer_is_left_alone() -> None:
    tries = 0

    def function(keys: list[int]) -> list[tuple[int, str]]:
        nonlocal tries
        tries += 1
        raise ConnectionError(f"down {keys}")

    async def work() -> None:
        limits = Limits(max_in_flight=1, retries=0, on_error=OnError.SKIP)
        lookup = shared(function, limits)
        assert await rows(lookup, range(30)) == [[]] * 30
        await lookup.close()

    run(work())
    assert tries == 5


def test_a_lookup_that_was_closed_can_be_asked_again() -> None:
    async def function(keys: list[int]) -> list[tuple[int, str]]:
        await asyncio.sleep(10.0 if keys == [2] else 0.0)
        return [(key, "x") for key in keys]

    async def work() -> None:
        lookup = shared(function)
        assert await rows(lookup, [1]) == [[(1, "x")]]
        (unanswered,) = lookup.rows([(2,)])
        await asyncio.sleep(0.05)
        await lookup.close()
        assert unanswered.cancelled()
        assert await rows(lookup, [1, 3]) == [[(1, "x")], [(3, "x")]]
        await lookup.close()

    run(work())


@pytest.mark.parametrize(
    "limits",
    [
        {"max_in_flight": 0},
        {"rate": 0.0},
        {"rate": math.inf},
        {"timeout": 0.0},
        {"retries": -1},
    ],
)
def test_limits_that_make_no_sense_are_refused(limits: dict[str, Any]) -> None:
    (name,) = limits
    with pytest.raises(ValueError, match=name):
        Limits(**limits)


def test_a_failure_is_an_error_of_the_library() -> None:
    assert issubclass(LookupFailedError, RuntimeError)
