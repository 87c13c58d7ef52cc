"""Keys are asked for once, by so many workers at a place, and again after a close if need be."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from random import Random

import pyarrow as pa
import pytest

from eddyline.asking.access_method import AccessMethod
from eddyline.asking.asked_once import AskedOnce
from eddyline.asking.limits import Limits
from eddyline.asking.lookup_source import LookedUpTable
from eddyline.asking.python_lookup import PythonLookup
from eddyline.asking.way_to_answers import Found

ROWS = pa.record_batch({"a": [1]})


def test_workers_at_a_place_are_as_many_as_keys_and_width_allow() -> None:
    async def work() -> None:
        asked = AskedOnce[int]()
        end = asyncio.Event()

        async def waits() -> None:
            await end.wait()

        answers = asked.answers(range(5))
        assert asked.workers_missing(3) == 3
        assert asked.workers_missing(9) == 5
        asked.start(waits())
        assert (asked.workers_missing(3), asked.workers_missing(3, "elsewhere")) == (2, 3)
        asked.start(waits())
        asked.start(waits())
        asked.start(waits(), "elsewhere")
        assert (asked.workers_missing(3), asked.workers_missing(3, "elsewhere")) == (0, 2)
        assert asked.workers_missing(2) == 0
        end.set()
        await asyncio.sleep(0.01)
        assert asked.workers_missing(3) == 3
        await asked.close()
        assert all(answer.cancelled() for answer in answers)
        assert asked.workers_missing(3) == 0

    asyncio.run(work())


def test_the_first_answer_counts() -> None:
    async def work() -> None:
        asked = AskedOnce[str]()
        one, other, again = asked.answers(["a", "b", "a"])
        assert one is again
        assert (asked.waiting.popleft(), asked.count) == ("a", 1)
        asked.answer("a", Found(ROWS, 1.0))
        asked.answer("a", Found(ROWS, 2.0))
        assert one.result().seconds == 1.0
        asked.fail("b", ValueError("no b"))
        assert (asked.answered("a"), asked.answered("b")) == (True, True)
        with pytest.raises(ValueError, match="no b"):
            await other

    asyncio.run(work())


def test_who_is_closed_before_it_has_begun_has_all_its_workers_afterwards() -> None:
    calls: Counter[int] = Counter()

    async def function(keys: list[int]) -> list[tuple[int]]:
        calls.update(keys)
        return [(key,) for key in keys]

    async def work() -> None:
        table = LookedUpTable("t", ("a",), (pa.int64(),), (0,))
        method = AccessMethod(table, PythonLookup(function), Limits(max_in_flight=1))
        lookup = method.shared("1", Random(0), time.monotonic)
        for key in range(3):
            (answer,) = lookup.rows([(key,)])
            await lookup.close()
            assert answer.cancelled()
        (answer,) = lookup.rows([(9,)])
        await asyncio.wait_for(answer, 10)
        await lookup.close()

    asyncio.run(work())
    assert calls == {9: 1}
