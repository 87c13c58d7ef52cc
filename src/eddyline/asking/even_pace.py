"""How many calls a second a service accepts that are made evenly, found by bisection."""

from __future__ import annotations

import math
from typing import Final

BELOW: Final = 0.985
"""Part of the calls a second that are known to be accepted, which are made for sure."""

NARROW: Final = 0.04
"""Part of the calls a second up to which it does not matter that more might be accepted."""

SECONDS: Final = 0.5
"""Seconds without a refusal after which a pace counts as accepted, at the least."""

HELD: Final = 1.2
"""How many times as long as a quota takes to be renewed a pace is kept, to count as accepted."""

STEP: Final = 0.02
"""Part by which more is tried than was refused before; after a success twice as much."""

WIDE: Final = 0.08
"""The first such part at the most, where it is not known well what is accepted."""

DECREASE: Final = 0.7
"""What is left of a pace that was accepted before and is refused now."""


class EvenPace:
    """Calls a second: ``rate`` for now.

    It climbs by steps that double, up to where calls were refused; beyond that seldom, and the more
    so the more often it fails.

    >>> pace = EvenPace(low=100.0, high=110.0, span=0.1, now=0.0)
    >>> pace.rate
    98.5
    >>> pace.accepted(now=1.5, affordable=True)
    >>> round(pace.rate, 1)
    106.4
    >>> pace.refused(now=2.0, renewed=99.0)
    >>> pace.rate
    98.5
    """

    def __init__(self, low: float, high: float, span: float, now: float) -> None:
        """Start with what is known to be accepted; ``high`` may not be.

        A quota is renewed in about a ``span`` of so many seconds.
        """
        self._held = max(SECONDS, HELD * span)
        self.rate = BELOW * low
        self._low = self.rate
        self._high = max(high, low)
        self._step = min(max(self._high / low - 1, STEP), WIDE)
        self._since = now
        self._above = False
        self._rest = SECONDS
        self._above_from = now
        self._refused_at = -math.inf

    def accepted(self, now: float, *, affordable: bool) -> None:
        """Take note of a call that was accepted; try more where a refusal is ``affordable``."""
        if now - self._since < self._held:
            return
        self._low = max(self._low, self.rate)
        if self._high - self._low > NARROW * self._high:
            top = self._high * (1 - NARROW / 2)
            self.rate = min(self._low * (1 + self._step), top)
        elif affordable and now >= self._above_from:
            self.rate = self._low * (1 + self._step)
            self._high = max(self._high, self.rate)
            self._above = True
        else:
            return
        self._step *= 2
        self._since = now

    def refused(self, now: float, renewed: float | None) -> None:
        """Take note of a refusal that a pace has caused; ``renewed`` is what is surely accepted."""
        held = self.rate <= self._low * (1 + STEP / 2)
        if held and now - self._refused_at < 4 * self._held:  # what was thought is wrong
            self._low = DECREASE * self.rate
        elif held:
            self._low = (1 - NARROW) * self.rate
        if renewed is not None and renewed < self.rate:
            chosen = min if held else max
            self._low = chosen(self._low, BELOW * renewed)
        self._high = self.rate
        self.rate = self._low
        if self._above:
            self._rest *= 2
        self._above = False
        self._step = STEP
        self._above_from = now + self._rest
        self._since = self._refused_at = now
