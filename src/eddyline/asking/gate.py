"""Lets requests through to a source: so many at a time, so many a second."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiolimiter import AsyncLimiter

from eddyline.asking.limits import Limits
from eddyline.asking.no_answer import TryAgainError


class Gate:
    """The limits of a source, for all that ask it.

    ``width`` is the number of requests that may be on their way at a time, ``most`` how many
    were so far, and ``requests`` how many have begun; ``timeout`` the seconds that each has.
    """

    def __init__(self, limits: Limits) -> None:
        """Let through what the limits say; requests begin evenly, however long none did."""
        self.width = limits.max_in_flight
        self.most = 0
        self.requests = 0
        self._free = asyncio.Semaphore(limits.max_in_flight)
        self.timeout = limits.timeout
        # A bucket of one: a larger one would let as many go at once after a pause.
        self._paces = None if limits.rate is None else AsyncLimiter(1, 1 / limits.rate)
        self._inside = 0

    @asynccontextmanager
    async def request(self) -> AsyncIterator[None]:
        """Wait for a place and for the time to begin; TryAgainError where it takes too long.

        The time counts from the beginning of the request: whoever waits here has not begun.
        """
        async with self._free:
            if self._paces is not None:
                await self._paces.acquire()
            self.requests += 1
            self._inside += 1
            self.most = max(self.most, self._inside)
            try:
                async with asyncio.timeout(self.timeout) as limit:
                    yield
            except TimeoutError:
                if not limit.expired():  # somebody else's, which says something else
                    raise
                raise TryAgainError(f"no answer in {self.timeout:g} s") from None
            finally:
                self._inside -= 1
