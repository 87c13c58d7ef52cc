"""What a source does not answer: who is asked again, how often, and for which keys nobody is."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.asking.http_lookup import HttpLookup
from eddyline.asking.limits import Limits, OnError
from eddyline.asking.lookup_source import LookedUpTable, NoAnswerError, TryAgainError
from eddyline.asking.patience import Gate
from eddyline.asking.python_lookup import PythonLookup
from tests.asked import Rows, answered, why
from tests.http_service import HttpService, Reply, Request

TABLE = LookedUpTable("t", ("a", "b"), (pa.int64(), pa.string()), (0,))


class Choosy:
    """A function that gives rows for keys unless a bad one is among them; it counts its calls."""

    def __init__(self, bad: set[int], *, malformed: bool = False) -> None:
        self.bad = bad
        self.malformed = malformed
        self.calls: list[list[int]] = []

    async def __call__(self, keys: list[int]) -> list[Any]:
        self.calls.append(keys)
        if self.bad & set(keys) and not self.malformed:
            raise ValueError("a bad key")
        return [(key, key if key in self.bad else f"r{key}") for key in keys]


def choosy(function: Choosy, keys_per_call: int) -> PythonLookup:
    async def ask(keys: list[int]) -> list[Any]:
        return await function(keys)

    return PythonLookup(ask, keys_per_call)


@given(
    count=st.integers(1, 60),
    bad=st.sets(st.integers(0, 59)),
    keys_per_call=st.integers(1, 70),
    malformed=st.booleans(),
    on_error=st.sampled_from(OnError),
)
def test_only_keys_that_are_to_blame_have_no_answer(
    count: int, bad: set[int], keys_per_call: int, *, malformed: bool, on_error: OnError
) -> None:
    function = Choosy(bad, malformed=malformed)
    limits = Limits(max_in_flight=1, on_error=on_error)
    source = choosy(function, keys_per_call)
    found, asked = answered(source, TABLE, [(key,) for key in range(count)], limits)
    for key, each in enumerate(found):
        if key not in bad:
            assert each == [(key, f"r{key}")]
        elif on_error is OnError.FAIL:
            assert isinstance(each, str)
            assert f"asked for t a={key}: " in each
        else:
            assert each == ([(key, None)] if on_error is OnError.NULL else [])
    assert asked.failures == len(bad & set(range(count)))
    # The bound that is promised: a tree over the keys of each call, with each part asked for once.
    calls = [min(keys_per_call, count - n) for n in range(0, count, keys_per_call)]
    assert len(function.calls) <= sum(2 * size - 1 for size in calls)
    assert len(function.calls) == asked.tries
    assert max(Counter(map(tuple, function.calls)).values()) == 1


@pytest.mark.parametrize("status", [500, 400, 413])
def test_a_service_that_falls_over_one_key_answers_the_others(status: int) -> None:
    def answer(request: Request) -> Reply:
        keys = request.query["a"].split(",")
        if "5" in keys:
            return Reply(None, status)
        return Reply([{"a": int(key), "b": key} for key in keys])

    with HttpService(answer) as service:
        source = HttpLookup(service.url, params={"a": "{a}"}, keys_per_call=8)
        found, _ = answered(source, TABLE, [(key,) for key in range(8)], Limits(retries=1))
        for key, each in enumerate(found):
            if key == 5:
                assert f"asked for t a=5: HTTP {status}" in each
            else:
                assert each == [(key, str(key))]
        # The whole call and the single key twice where that may help, all parts between once.
        tries = Counter(request.query["a"] for request in service.log)
        patient = 2 if status == 500 else 1
        assert (tries["0,1,2,3,4,5,6,7"], tries["5"]) == (patient, patient)
        del tries["0,1,2,3,4,5,6,7"], tries["5"]
        assert set(tries.values()) == {1}


@pytest.mark.parametrize("status", [503, 401, 405])
def test_what_no_key_is_to_blame_for_is_not_asked_for_in_parts(status: int) -> None:
    with HttpService(lambda _: Reply(None, status)) as service:
        source = HttpLookup(service.url, params={"a": "{a}"}, keys_per_call=8)
        found, asked = answered(source, TABLE, [(key,) for key in range(8)])
        assert len(service.log) == 1
        assert asked.failures == 1
        assert all(f"t a=0, a=1, a=2 and 5 more: HTTP {status}" in each for each in found)


def test_a_source_that_is_down_is_not_asked_for_every_key_of_a_call() -> None:
    calls = 0

    async def function(_: list[int]) -> Rows:
        nonlocal calls
        calls += 1
        raise ConnectionError("down")

    keys = [(key,) for key in range(500)]
    found, _ = answered(PythonLookup(function, 500), TABLE, keys, Limits(retries=0))
    assert calls == 1
    assert all("ConnectionError: down" in each for each in found)


def test_failures_that_any_key_has_open_the_circuit_in_parts_too() -> None:
    with HttpService(lambda _: Reply(None, 500)) as service:
        source = HttpLookup(service.url, params={"a": "{a}"}, keys_per_call=64)
        found, _ = answered(source, TABLE, [(key,) for key in range(64)])
        single = [request for request in service.log if "," not in request.query["a"]]
        assert len(single) == 5
        # From the first key to the root, and what lies beside the way to the fifth.
        assert len(service.log) < 20
        assert sum("is not asked for a while" in each for each in found) == 64 - 5


@pytest.mark.parametrize(
    ("after", "tries"), [("121", 1), ("100000", 1), ("Fri, 31 Dec 2100 23:59:59 GMT", 1)]
)
def test_who_wants_too_long_a_pause_was_tried_as_often_as_it_was(after: str, tries: int) -> None:
    with HttpService(lambda _: Reply(None, 500, {"Retry-After": after})) as service:
        said = why(HttpLookup(service.url + "/{a}"), TABLE, (1,), Limits(retries=3))
        assert len(service.log) == tries
        assert re.search(r"HTTP 500.*, tried once$", said)


@pytest.mark.parametrize("after", ["121", "100000", "Fri, 31 Dec 2100 23:59:59 GMT"])
def test_a_quota_that_comes_back_too_late_is_not_waited_for(after: str) -> None:
    with HttpService(lambda _: Reply(None, 429, {"Retry-After": after})) as service:
        said = why(HttpLookup(service.url + "/{a}"), TABLE, (1,), Limits(patience=60.0))
        assert len(service.log) == 1
        assert re.search(r"refused all calls for quota, and comes back in [\d,]+ s, as it", said)


def test_patience_with_a_quota_ends() -> None:
    with HttpService(lambda _: Reply(None, 429)) as service:
        said = why(HttpLookup(service.url + "/{a}"), TABLE, (1,), Limits(patience=0.5, retries=0))
        assert 2 <= len(service.log) <= 25
        assert re.search(r"was not renewed in [\d.]+ s: patience= ends after 0.5 s$", said)


def test_tries_are_counted_up_to_the_pause_that_is_too_long() -> None:
    def answer(_: Request) -> Reply:
        return Reply(None, 500, {"Retry-After": "0" if len(service.log) < 3 else "1000"})

    with HttpService(answer) as service:
        said = why(HttpLookup(service.url + "/{a}"), TABLE, (1,), Limits(retries=7))
        assert len(service.log) == 3
        assert said.endswith("tried 3 times")


def test_a_gate_tells_its_own_time_out_from_others() -> None:
    async def within(gate: Gate, seconds: float) -> None:
        async with gate.request():
            if not seconds:
                raise TimeoutError("of somebody else")
            await asyncio.sleep(seconds)

    with pytest.raises(TimeoutError, match="of somebody else"):
        asyncio.run(within(Gate(Limits(timeout=5.0)), 0.0))
    with pytest.raises(TryAgainError, match=r"no answer in 0\.01 s"):
        asyncio.run(within(Gate(Limits(timeout=0.01)), 5.0))


def test_a_connection_that_gives_up_is_not_tried_again() -> None:
    calls = 0

    async def function(_: list[int]) -> Rows:
        nonlocal calls
        calls += 1
        raise NoAnswerError("never", of_keys=False)

    found, _ = answered(PythonLookup(function, 5), TABLE, [(1,), (2,)], Limits(retries=3))
    assert calls == 1
    assert all(str(each).endswith("asked for t a=1, a=2: never") for each in found)
