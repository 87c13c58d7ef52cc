"""Quotas as services have them, on a clock that is handed in, and the best that anybody could do.

A quota is asked with the time in seconds, and answers None where it admits the call, else the
seconds until it admits another.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol


class Quota(Protocol):
    """What a service admits."""

    def ask(self, now: float) -> float | None:
        """Admit a call, or say for how long none is admitted."""
        ...


@dataclass
class Amount:
    """So many ``calls``; other ``changes``, since a time, may follow."""

    calls: int
    changes: Sequence[tuple[float, int]] = ()

    def at(self, now: float) -> int:
        """Return how many there are."""
        return next((calls for since, calls in reversed(self.changes) if now >= since), self.calls)


@dataclass
class FixedWindows:
    """So many calls in each window; one begins with a call, or ``aligned`` to the clock."""

    amount: Amount
    seconds: float
    aligned: float | None = None
    _began: float = field(default=-math.inf, init=False)
    _used: int = field(default=0, init=False)

    def ask(self, now: float) -> float | None:
        """Admit a call, or say for how long none is admitted."""
        began = self._began if now < self._began + self.seconds else now
        if self.aligned is not None:
            windows = math.floor((now + self.aligned) / self.seconds)
            began = windows * self.seconds - self.aligned
        if began != self._began:
            self._began, self._used = began, 0
        if self._used >= self.amount.at(now):
            return began + self.seconds - now
        self._used += 1
        return None


@dataclass
class SlidingWindow:
    """So many calls in any span of so many seconds."""

    amount: Amount
    seconds: float
    _admitted: deque[float] = field(default_factory=deque, init=False)

    def ask(self, now: float) -> float | None:
        """Admit a call, or say for how long none is admitted."""
        while self._admitted and self._admitted[0] <= now - self.seconds:
            self._admitted.popleft()
        if len(self._admitted) >= self.amount.at(now):
            return self._admitted[0] + self.seconds - now
        self._admitted.append(now)
        return None


@dataclass
class TokenBucket:
    """So many calls in so many seconds, one at a time; up to ``most`` of them are saved up."""

    amount: Amount
    seconds: float
    most: int
    _tokens: float = field(default=0.0, init=False)
    _then: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        """Start with a full bucket."""
        self._tokens = self.most

    def ask(self, now: float) -> float | None:
        """Admit a call, or say for how long none is admitted."""
        rate = self.amount.at(now) / self.seconds
        self._tokens = min(self.most, self._tokens + (now - self._then) * rate)
        self._then = now
        if self._tokens < 1:
            return (1 - self._tokens) / rate
        self._tokens -= 1
        return None


Latency = Callable[[Random], float]
"""Draws the seconds of a call."""


def least_seconds(quota: Quota, calls: int, width: int, latency: Latency, chance: Random) -> float:
    """Return the seconds of calls for whoever knows the quota, ``width`` of them at a time."""
    free = [0.0] * width
    now = last = 0.0
    for _ in range(calls):
        now = max(now, heapq.heappop(free))
        seconds = latency(chance)
        # It arrives halfway.
        while (wait := quota.ask(now + seconds / 2)) is not None:
            now += max(wait, 1e-4)
        heapq.heappush(free, now + seconds)
        last = max(last, now + seconds)
    return last
