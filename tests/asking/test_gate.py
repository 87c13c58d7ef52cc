"""So many requests at a time, so many a second; the time is the event loop's own, and jumps."""

from __future__ import annotations

import asyncio
import selectors
from collections import deque
from itertools import pairwise

import pytest

from eddyline.asking.limits import Limits
from eddyline.asking.lookup_source import TryAgainError
from eddyline.asking.patience import Gate
from eddyline.asking.refusals import QuotaRefusedError

TICK = 1e-6
"""Seconds of a round of the event loop: in none, what is late by a rounding error stays late."""


class JumpingSelector(selectors.DefaultSelector):
    """Waits for nobody: the time for which it should have waited has passed."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += max(timeout or 0.0, TICK)
        return super().select(0)


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is that of its selector."""

    def __init__(self) -> None:
        self._jumping = JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


async def begun(gate: Gate, count: int, seconds: float) -> list[float]:
    """Make requests that take so long; return when each has begun."""
    loop = asyncio.get_running_loop()
    times: list[float] = []

    async def request() -> None:
        async with gate.request():
            times.append(loop.time())
            await asyncio.sleep(seconds)

    await asyncio.gather(*(request() for _ in range(count)))
    return times


@pytest.mark.parametrize("rate", [0.5, 3.0, 100.0])
@pytest.mark.parametrize("seconds", [0.0, 0.7])
def test_requests_begin_evenly_however_long_none_did(rate: float, seconds: float) -> None:
    async def work() -> None:
        gate = Gate(Limits(max_in_flight=100, rate=rate))
        times = await begun(gate, 20, seconds)
        await asyncio.sleep(1_000.0)
        times += await begun(gate, 20, seconds)
        gaps = [after - before for before, after in pairwise(times)]
        assert min(gaps) >= 0.99 / rate
        # And no more slowly than they may, but for the pause in the middle.
        assert sum(gaps) <= 1_000.0 + seconds + 38 * 1.01 / rate + 1.0 / rate
        assert gate.requests == 40

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(work())


def test_as_many_are_on_their_way_as_may_be() -> None:
    async def work() -> None:
        gate = Gate(Limits(max_in_flight=3))
        assert await begun(gate, 8, 1.0) == pytest.approx([0, 0, 0, 1, 1, 1, 2, 2], abs=1e-3)
        assert gate.most == 3

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(work())


def test_who_waits_has_not_begun() -> None:
    """The time-out is of the request itself."""

    async def work() -> None:
        gate = Gate(Limits(max_in_flight=1, timeout=1.5))
        assert await begun(gate, 4, 1.0) == pytest.approx([0, 1, 2, 3], abs=1e-3)
        with pytest.raises(TryAgainError, match=r"no answer in 1\.5 s"):
            await begun(gate, 1, 2.0)

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(work())


def test_waits_for_quota_have_a_beginning_and_an_end() -> None:
    """Those with short gaps between them are one."""

    async def work() -> None:
        gate = Gate(Limits(max_in_flight=1, patience=100.0))

        async def refused(after: float) -> None:
            with pytest.raises(QuotaRefusedError):
                async with gate.request():
                    raise QuotaRefusedError("spent", after)

        async def accepted() -> None:
            async with gate.request():
                pass

        await accepted()
        assert gate.waits == deque()
        for after in (7.25, 3.25, 2.25):
            await refused(after)
        await accepted()
        (wait,) = gate.waits
        assert wait.ended - wait.began == pytest.approx(gate.waited, abs=0.01)
        assert wait.ended - wait.began == pytest.approx(12.75, abs=0.01)
        await asyncio.sleep(60.0)
        await refused(5.25)
        await accepted()
        assert len(gate.waits) == 2

    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(work())
