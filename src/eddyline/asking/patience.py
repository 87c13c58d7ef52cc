"""Patience with a source or a function: requests at a time, pauses, and an end to trying."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Final

from aiolimiter import AsyncLimiter

from eddyline.asking.limits import Limits
from eddyline.asking.lookup_source import TryAgainError


class Gate:
    """The limits of a source, for all that ask it.

    ``width`` is the number of requests that may be on their way at a time, ``most`` how many
    were so far, and ``requests`` how many have begun; ``timeout`` the seconds that each has.
    """

    def __init__(self, limits: Limits) -> None:
        """Let through what the limits say; requests begin evenly, even after a pause."""
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

        The time counts from the beginning of the request: one that waits here has not begun.
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
                if not limit.expired():  # another one's timeout, which means something else
                    raise
                raise TryAgainError(f"no answer in {self.timeout:g} s") from None
            finally:
                self._inside -= 1


FAILURES_IN_A_ROW: Final = 5
"""Calls that fail one after the other, each in all its tries, before nobody is let through."""

OPEN_SECONDS: Final = 30.0
"""Seconds after which one call is let through again, to see."""


class CircuitBreaker:
    """Opens after calls that failed one after the other, and lets one through after a pause.

    >>> now = 0.0
    >>> breaker = CircuitBreaker(lambda: now, failures=2, pause=10.0)
    >>> for _ in range(2):
    ...     breaker.failed()
    >>> breaker.lets_through()
    False
    >>> now = 10.0
    >>> breaker.lets_through(), breaker.lets_through()
    (True, False)
    >>> breaker.answered()
    >>> breaker.lets_through()
    True
    """

    def __init__(
        self,
        now: Callable[[], float],
        *,
        failures: int = FAILURES_IN_A_ROW,
        pause: float = OPEN_SECONDS,
    ) -> None:
        """Start closed; ``now`` tells the time in seconds."""
        self._now = now
        self._failures = failures
        self._pause = pause
        self._in_a_row = 0
        self._opens_at = 0.0

    def lets_through(self) -> bool:
        """Tell whether the source may be asked now; as a trial, only once in each pause."""
        if self._in_a_row < self._failures:
            return True
        if self._now() < self._opens_at:
            return False
        self._opens_at = self._now() + self._pause
        return True

    def answered(self) -> None:
        """Note that the source has answered."""
        self._in_a_row = 0

    def failed(self) -> None:
        """Note that a call has failed."""
        self._in_a_row += 1
        self._opens_at = self._now() + self._pause


FIRST_PAUSE: Final = 0.2
"""Seconds before the second try at the most; each next one waits for twice as long at the most."""

LONGEST_PAUSE: Final = 20.0
"""Seconds before any try at the most."""


def pause(tries: int, random: Random) -> float:
    """Return the seconds to wait after so many tries: up to twice as long each time.

    With full jitter, so that calls which failed together do not come together again.

    >>> random = Random(0)
    >>> [round(pause(tries, random), 2) for tries in (1, 2, 30)]
    [0.17, 0.3, 8.41]
    """
    return random.uniform(0.0, min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (tries - 1)))


def tried(tries: int) -> str:
    """Return how often something was tried, as people read it.

    >>> tried(1), tried(3)
    ('tried once', 'tried 3 times')
    """
    return "tried once" if tries == 1 else f"tried {tries} times"
