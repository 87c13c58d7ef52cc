"""Several sources that give the same rows compete for the keys, and help each other out."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.asking.access_method import AccessMethod, SharedTable
from eddyline.asking.limits import Limits, OnError
from eddyline.asking.lookup_source import LookedUpTable
from eddyline.asking.python_lookup import PythonLookup
from tests.asked import Latch, rows_of
from tests.properties import examples

TABLE = LookedUpTable("t", ("a", "b"), (pa.int64(), pa.string()), (0,))
QUICK = Limits(max_in_flight=2, retries=0)


class Source:
    """A source whose answers a test holds back, or lets fail."""

    def __init__(self, name: str, seconds: float = 0.0, *, fails: Callable[[int], bool]) -> None:
        self.name = name
        self.seconds = seconds
        self.fails = fails
        self.asked: Counter[int] = Counter()
        self.stall = Latch()
        self.stall.set()

    async def __call__(self, keys: list[int]) -> list[tuple[int, str]]:
        self.asked.update(keys)
        await asyncio.sleep(self.seconds)
        await self.stall.passed()
        if any(map(self.fails, keys)):
            raise ValueError(f"{self.name} has no answer")
        return [(key, f"r{key}") for key in keys]


def source(
    name: str, seconds: float = 0.0, fails: Callable[[int], bool] = lambda _: False
) -> Source:
    return Source(name, seconds, fails=fails)


def shared(*sources: Source, limits: Limits = QUICK) -> SharedTable:
    methods = [AccessMethod(TABLE, PythonLookup(each), limits) for each in sources]
    return replace(methods[0], mirrors=tuple(methods[1:])).shared("1", Random(0), time.monotonic)


async def answers(lookup: SharedTable, keys: int) -> list[Any]:
    """Return what each key's answer is: its rows, or the error."""
    found = await rows_of(lookup, [(key,) for key in range(keys)])
    await lookup.close()
    return found


def right(keys: int) -> list[Any]:
    return [[(key, f"r{key}")] for key in range(keys)]


def test_each_key_is_asked_for_at_one_of_them_and_the_quicker_gets_more() -> None:
    async def check() -> None:
        quick, slow = source("quick", 0.001), source("slow", 0.02)
        assert await answers(shared(quick, slow), 200) == right(200)
        assert set((quick.asked + slow.asked).values()) == {1}
        assert quick.asked.total() > 2 * slow.asked.total() > 0

    asyncio.run(check())


def test_one_that_stalls_loses_its_keys() -> None:
    async def check() -> None:
        stalled, other = source("stalled"), source("other")
        stalled.stall.clear()
        lookup = shared(stalled, other)
        assert await asyncio.wait_for(answers(lookup, 50), 10) == right(50)
        assert stalled.asked.total() == QUICK.max_in_flight
        assert other.asked == Counter(range(50))
        assert [keys for _, keys in lookup.statistics().by_source] == [2, 50]

    asyncio.run(check())


def test_what_one_cannot_answer_the_other_can() -> None:
    async def check() -> None:
        odd = source("odd", fails=lambda key: key % 2 == 0)
        even = source("even", fails=lambda key: key % 2 == 1)
        assert await answers(shared(odd, even), 40) == right(40)
        for each in (odd, even):
            assert set(each.asked.values()) == {1}

    asyncio.run(check())


@pytest.mark.parametrize(
    ("on_error", "found"), [(OnError.NULL, [(3, None)]), (OnError.SKIP, []), (OnError.FAIL, "no")]
)
def test_on_error_counts_where_none_has_an_answer(on_error: OnError, found: object) -> None:
    async def check() -> None:
        limits = replace(QUICK, on_error=on_error)
        sources = [source(name, fails=lambda key: key == 3) for name in "ab"]
        found_now = await answers(shared(*sources, limits=limits), 5)
        last = found_now.pop(3)
        assert found_now == [each for each in right(5) if each != right(5)[3]]
        if on_error is OnError.FAIL:
            assert "asked for t a=3: ValueError: " in last
        else:
            assert last == found
        assert [each.asked[3] for each in sources] == [1, 1]

    asyncio.run(check())


@examples(15)
@given(
    st.lists(st.sets(st.integers(0, 19)), min_size=1, max_size=3),
    st.lists(st.booleans(), min_size=3, max_size=3),
    st.integers(1, 3),
)
def test_a_key_has_rows_if_any_source_that_does_not_stall_has_them(
    failing: list[set[int]], stalled: list[bool], width: int
) -> None:
    async def check() -> None:
        stalled[0] = False
        sources = [
            source(f"s{n}", 0.001, fails=keys.__contains__) for n, keys in enumerate(failing)
        ]
        for each, stalls in zip(sources, stalled, strict=False):
            if stalls:
                each.stall.clear()
        limits = Limits(max_in_flight=width, retries=0, timeout=0.3)
        found = await asyncio.wait_for(answers(shared(*sources, limits=limits), 20), 20)
        going = [keys for keys, stalls in zip(failing, stalled, strict=False) if not stalls]
        for key, each in enumerate(found):
            if all(key in keys for keys in going):
                assert "asked for t" in each
            else:
                assert each == [(key, f"r{key}")]
        for each in sources:
            assert set(each.asked.values()) <= {1}

    asyncio.run(check())
