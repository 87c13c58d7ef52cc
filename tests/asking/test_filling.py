"""Calls for several keys leave full, or when nobody has more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from eddyline.asking import filling
from eddyline.asking.access_method import AccessMethod, SharedTable
from eddyline.asking.filling import BEGINNING, GATHERED, UNKNOWN, Filling
from eddyline.asking.limits import Limits
from eddyline.asking.lookup_source import LookedUpTable
from eddyline.asking.python_lookup import PythonLookup
from eddyline.simulation.virtual_clock import VirtualClock
from tests.asked import Latch

TABLE = LookedUpTable("t", ("a", "b"), (pa.int64(), pa.int64()), (0,))


def test_how_long_keys_wait_for_others() -> None:
    clock = VirtualClock()
    filling = Filling(clock.now)
    clock.advance(5.0)
    filling.begin()
    assert filling.patience(under_way=True, usual_seconds=2.0) == 0.0  # nobody has more
    filling.expect(2, 0)
    assert filling.patience(under_way=False, usual_seconds=2.0) == pytest.approx(GATHERED)
    assert filling.patience(under_way=True, usual_seconds=2.0) == 2.0
    assert filling.patience(under_way=True, usual_seconds=0.0) == UNKNOWN
    assert filling.patience(under_way=True, usual_seconds=0.001) == pytest.approx(GATHERED)
    clock.advance(1.5)
    assert filling.patience(under_way=False, usual_seconds=2.0) == 0.0
    assert filling.patience(under_way=True, usual_seconds=2.0) == 0.5
    clock.advance(0.5)
    assert filling.patience(under_way=True, usual_seconds=2.0) == 0.0


def test_keys_wait_for_tasks_that_begin_but_not_twice_in_vain() -> None:
    clock = VirtualClock()
    filling = Filling(clock.now)
    clock.advance(5.0)
    filling.begin()
    filling.expect(0, 1)
    assert filling.patience(under_way=False, usual_seconds=0.001) == BEGINNING
    clock.advance(BEGINNING / 2)
    filling.expect(1, 0)  # it has come, and hands its keys over a few at a time
    assert filling.patience(under_way=False, usual_seconds=0.001) == pytest.approx(GATHERED)
    filling.expect(0, 0)
    assert filling.patience(under_way=False, usual_seconds=0.001) == 0.0
    filling.leave()
    filling.expect(0, 2)
    assert filling.patience(under_way=False, usual_seconds=0.001) == BEGINNING / 2
    clock.advance(BEGINNING / 2)
    assert filling.patience(under_way=False, usual_seconds=0.001) == 0.0
    filling.leave()
    filling.begin()
    assert filling.patience(under_way=False, usual_seconds=0.001) == 0.0


class Slow:
    """A source that answers when a test lets it, and remembers how many keys each call had."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.answers = Latch()

    async def __call__(self, keys: list[int]) -> list[tuple[int, int]]:
        self.sizes.append(len(keys))
        await self.answers.passed()
        return [(key, key) for key in keys]


def asked(
    work: Callable[[SharedTable, Slow], Awaitable[None]], keys_per_call: int = 10, width: int = 4
) -> list[int]:
    """Return how many keys each call had."""
    slow = Slow()

    async def ask() -> None:
        source = PythonLookup(slow, keys_per_call)
        method = AccessMethod(TABLE, source, Limits(max_in_flight=width))
        lookup = method.shared("1", Random(0), time.monotonic)
        await work(lookup, slow)
        await lookup.close()

    asyncio.run(ask())
    return slow.sizes


def keys(start: int, stop: int) -> list[Any]:
    return [(key,) for key in range(start, stop)]


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - the source cannot tell of its calls
        await asyncio.sleep(0.001)


def test_keys_that_come_a_few_at_a_time_go_in_full_calls() -> None:
    async def work(lookup: SharedTable, slow: Slow) -> None:
        lookup.expect_of(1)
        answers = []
        for start in range(0, 45, 3):
            answers += lookup.rows(keys(start, start + 3))
            await asyncio.sleep(0)
        await asyncio.sleep(5 * GATHERED)
        assert slow.sizes == [10, 10, 10, 10]  # the rest may not be all there is
        slow.answers.set()
        await asyncio.gather(*answers)

    assert asked(work) == [10, 10, 10, 10, 5]


def test_the_rest_goes_when_nobody_has_more() -> None:
    async def work(lookup: SharedTable, slow: Slow) -> None:
        lookup.expect_of(2)
        answers = lookup.rows(keys(0, 14))
        lookup.expect_of(1)  # one of two tasks waits for answers alone
        await asyncio.sleep(2 * GATHERED)
        assert slow.sizes == [10]
        answers += lookup.rows(keys(14, 17))
        lookup.expect_of(0)
        await until(lambda: slow.sizes == [10, 7])
        slow.answers.set()
        await asyncio.gather(*answers)

    assert asked(work) == [10, 7]


def test_the_first_keys_go_soon_and_no_others_beside_them() -> None:
    async def work(lookup: SharedTable, slow: Slow) -> None:
        lookup.expect_of(1)
        answers = lookup.rows(keys(0, 2))
        await until(lambda: slow.sizes == [2])
        for key in range(2, 8):
            answers += lookup.rows(keys(key, key + 1))
            await asyncio.sleep(GATHERED)
        assert slow.sizes == [2]
        slow.answers.set()
        await asyncio.gather(*answers)

    assert asked(work) == [2, 6]


def test_a_call_that_stalls_does_not_hold_others_up_for_long() -> None:
    async def work(lookup: SharedTable, slow: Slow) -> None:
        lookup.expect_of(1)
        slow.answers.set()
        await asyncio.gather(*lookup.rows(keys(0, 10)))  # now it is known what a call takes
        slow.answers.clear()
        answers = lookup.rows(keys(10, 20))
        await until(lambda: len(slow.sizes) == 2)
        answers += lookup.rows(keys(20, 23))
        await until(lambda: len(slow.sizes) == 3)
        slow.answers.set()
        await asyncio.gather(*answers)

    assert asked(work) == [10, 10, 3]


def test_one_key_a_call_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling, "GATHERED", 60.0)

    async def work(lookup: SharedTable, slow: Slow) -> None:
        lookup.expect_of(1)
        answers = lookup.rows(keys(0, 3))
        async with asyncio.timeout(10):
            await until(lambda: slow.sizes == [1, 1, 1])
        slow.answers.set()
        await asyncio.gather(*answers)

    assert asked(work, keys_per_call=1) == [1, 1, 1]


def test_keys_wait_for_tasks_that_bring_their_first_ones() -> None:
    async def work(lookup: SharedTable, slow: Slow) -> None:
        slow.answers.set()
        lookup.expect_of(0, 1)
        answers = lookup.rows(keys(0, 4))
        await asyncio.sleep(3 * GATHERED)
        assert slow.sizes == []
        answers += lookup.rows(keys(4, 9))
        lookup.expect_of(0, 0)
        await asyncio.gather(*answers)
        lookup.expect_of(0, 1)  # and it never comes
        await asyncio.gather(*lookup.rows(keys(9, 10)))
        assert slow.sizes == [9, 1]
        answers = lookup.rows(keys(10, 11))
        await asyncio.wait(answers, timeout=BEGINNING / 2)
        assert answers[0].done()

    assert asked(work) == [9, 1, 1]


def test_what_nobody_wants_any_more_is_not_asked_for() -> None:
    async def work(lookup: SharedTable, slow: Slow) -> None:
        wanted = lookup.rows(keys(0, 5))
        await until(lambda: len(slow.sizes) == 2)
        lookup.give_up(keys(0, 4))  # two of them are on their way
        assert [each.cancelled() for each in wanted] == [False, False, True, True, False]
        again = lookup.rows(keys(3, 4))
        slow.answers.set()
        await asyncio.gather(*wanted[:2], wanted[4], *again)
        assert lookup.statistics().keys == 4

    assert asked(work, keys_per_call=1, width=2) == [1, 1, 1, 1]
