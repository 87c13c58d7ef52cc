"""Patience with a source or a function: requests at a time, pauses, and an end to trying."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Final, NamedTuple

from aiolimiter import AsyncLimiter

from eddyline.asking.governor import GovernedCall, Governor
from eddyline.asking.limits import Limits
from eddyline.asking.lookup_source import NoAnswerError, TryAgainError
from eddyline.asking.refusals import QuotaRefusedError

LENT: Final = 0.5
"""Seconds for which a key waits for a quota to be renewed, where another source may have it."""

WAITS: Final = 500
"""Waits for quota that are remembered, the latest ones."""

APART: Final = 0.05
"""Seconds between two waits from which on they are told apart."""


class Wait(NamedTuple):
    """A time in which requests waited for quota, in seconds since the epoch."""

    began: float
    ended: float


class Gate:
    """The limits of a source, for all that ask it.

    ``width`` is the number of requests that may be on their way at a time, ``most`` how many
    were so far, and ``requests`` how many have begun; ``timeout`` the seconds that each has.
    ``waited`` are the seconds in which nobody was let through since a quota was spent, ``waits``
    when that was. Where other sources may have a key, the gate ``lends`` it to them rather than
    have it wait for long.
    """

    def __init__(self, limits: Limits) -> None:
        """Let through what the limits say; requests begin evenly, even after a pause."""
        self.width = limits.max_in_flight
        self.most = 0
        self.requests = 0
        self.timeout = limits.timeout
        self.waited = 0.0
        self.waits: Final[deque[Wait]] = deque(maxlen=WAITS)
        self.lends = False
        self.governor: Final = Governor()
        self._patience = limits.patience
        self._free = asyncio.Semaphore(limits.max_in_flight)
        # A bucket of one: a larger one would let as many go at once after a pause.
        self._paces = None if limits.rate is None else AsyncLimiter(1, 1 / limits.rate)
        self._turn = asyncio.Lock()
        self._changed = asyncio.Event()
        self._inside = 0
        self._epoch: float | None = None  # at 0 of the event loop's clock, once anything waited

    @asynccontextmanager
    async def request(self) -> AsyncIterator[None]:
        """Wait for a place and for the time to begin; TryAgainError where it takes too long.

        The time counts from the beginning of the request: one that waits here has not begun. A
        :class:`QuotaRefusedError` that is raised inside is learned from. NoAnswerError where a
        quota is not renewed for longer than there is patience.
        """
        async with self._free:
            call = await self._let_through()
            self.requests += 1
            self._inside += 1
            self.most = max(self.most, self._inside)
            refused: QuotaRefusedError | None = None
            known = False
            try:
                async with asyncio.timeout(self.timeout) as limit:
                    yield
                known = True
            except QuotaRefusedError as error:
                refused, known = error, True
                raise
            except TimeoutError:
                if not limit.expired():  # another one's timeout, which means something else
                    known = True
                    raise
                raise TryAgainError(f"no answer in {self.timeout:g} s") from None
            except Exception:
                known = True
                raise
            finally:
                self._inside -= 1
                self._learn(call, refused, known=known)

    def told(self, left: int, seconds: float) -> None:
        """Take note that a source says how many calls it takes for so many seconds."""
        self.governor.told(left, asyncio.get_running_loop().time(), seconds)

    async def open(self) -> None:
        """Wait as long as the quota is spent, as far as is known."""
        loop = asyncio.get_running_loop()
        while (until := self.governor.opens) is not None and until > loop.time():
            if until - loop.time() > self._patience:
                return  # who asks is told
            await asyncio.sleep(until - loop.time())

    def _learn(self, call: GovernedCall, refused: QuotaRefusedError | None, *, known: bool) -> None:
        now = asyncio.get_running_loop().time()
        if refused is not None:
            self.requests -= 1  # the source has not worked for it
            self.governor.refused(call, now, refused.after)
        elif known:
            self.governor.accepted(call, now)
        else:
            self.governor.abandoned(call)
        self._changed.set()

    async def _let_through(self) -> GovernedCall:
        """Wait for one's turn, and until the quota has something left."""
        loop = asyncio.get_running_loop()
        async with self._turn:
            if self._paces is not None:
                await self._paces.acquire()
            began = loop.time()
            waits = self.governor.wait(began) > 0
            try:
                while seconds := self.governor.wait(loop.time()):
                    self._require_patience(loop.time())
                    self._changed.clear()
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._changed.wait(), min(seconds, 3_600.0))
            finally:
                if waits:
                    self._note_wait(began, loop.time())
            return self.governor.begin(loop.time())

    def _require_patience(self, now: float) -> None:
        """Raise where the quota is not renewed in time."""
        since, until = self.governor.refusing_since, self.governor.opens
        if until is None:
            return
        asked = until - now
        if asked > self._patience or (since is not None and now - since > self._patience):
            how = (
                f"comes back in {asked:,.0f} s, as it says"
                if asked > self._patience
                else f"was not renewed in {now - (since or now):,.3g} s"
            )
            raise NoAnswerError(
                f"has refused all calls for quota, and {how}: patience= ends after "
                f"{self._patience:,.6g} s",
                of_keys=False,
            )
        if self.lends and until - now > LENT:
            raise QuotaRefusedError("its quota is spent", until - now)

    def _note_wait(self, began: float, ended: float) -> None:
        if ended <= began:
            return
        self.waited += ended - began
        if self._epoch is None:
            self._epoch = time.time() - ended
        wait = Wait(began + self._epoch, ended + self._epoch)
        if self.waits and wait.began - self.waits[-1].ended < APART:
            wait = Wait(self.waits.pop().began, wait.ended)
        self.waits.append(wait)


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
