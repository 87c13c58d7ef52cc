"""How many values a call takes: as many as are accepted, and no more than make it quicker."""

from __future__ import annotations

from typing import Final

MOST: Final = 256
"""Values of a call at the most, where nobody has said how many."""

GAIN: Final = 0.9
"""Part of the seconds a value that a call twice as large must take at the most to be worth it."""

TRIED_AGAIN: Final = 50
"""Calls after which a size is tried again that did not pay, or was too large."""

WEIGHT: Final = 0.3
"""Weight of the last call in what a value usually takes."""


class BatchSize:
    """Values in a call: ``size`` for now, up to ``most``.

    Where it ``adapts`` it begins with one, and doubles as long as a value takes less time in larger
    calls. In any case it is halved where a call is too large, and doubled again later on.

    >>> size = BatchSize(16, adapts=True)
    >>> for seconds in (1.0, 1.0, 1.0, 2.1):  # the service is as quick for 1, 2 and 4 as for one
    ...     print(size.size, end=" ")
    ...     size.took(size.size, seconds)
    1 2 4 8
    >>> size.size  # 8 took a little more than half as long as two calls for 4
    4
    >>> fixed = BatchSize(16, adapts=False)
    >>> fixed.too_large(16)
    >>> fixed.size
    8
    """

    def __init__(self, most: int, *, adapts: bool) -> None:
        self.most: Final = most
        self.size = 1 if adapts else most
        self._adapts = adapts
        self._seconds: dict[int, float] = {}  # a value, by size of call
        self._calls = 0

    def took(self, values: int, seconds: float) -> None:
        """Take note of a call; only such as have as many values as they may tell anything."""
        if values != self.size:
            return
        self._calls += 1
        each = seconds / values
        usual = self._seconds.get(values)
        self._seconds[values] = each if usual is None else usual + WEIGHT * (each - usual)
        if self._adapts:
            self._climb()
        elif self._calls >= TRIED_AGAIN and self.size < self.most:
            self._move(min(2 * self.size, self.most))

    def too_large(self, values: int) -> None:
        """Take note that a call had too many values."""
        if 1 < values <= self.size:
            self._seconds[values] = float("inf")
            self._move(max(1, values // 2))

    def _climb(self) -> None:
        here = self._seconds[self.size]
        below = self._seconds.get(self.size // 2)
        if below is not None and here > GAIN * below:
            self._move(self.size // 2)
            return
        larger = min(2 * self.size, self.most)
        known = self._seconds.get(larger)
        untried = known is None or self._calls >= TRIED_AGAIN
        if larger > self.size and untried:
            self._seconds.pop(larger, None)
            self._move(larger)

    def _move(self, size: int) -> None:
        self.size = size
        self._calls = 0
