"""How long a call that could take more keys waits for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

GATHERED: Final = 0.05
"""Seconds that the first keys of a call wait for others, where more may come.

A task hands its first keys over a few at a time, until it knows what a visit costs: without the
pause 5,000 keys, 500 a call, began with calls for 8, 8, 8, 16, 112 and 264 of them.
"""

UNKNOWN: Final = 1.0
"""Seconds that a call may take, as long as none has ended."""

BEGINNING: Final = 1.0
"""Seconds that keys wait for tasks that begin. A worker process takes that long to start."""


class Filling:
    """When a call leaves with fewer keys than it could take.

    A full one leaves at once. Another leaves when nobody has more: when each task that asks waits
    for nothing but answers. As long as one may bring more keys it waits while another call is
    under way, as a small packet waits for the acknowledgement of the one before (Nagle, RFC 896):
    slow tasks have one small call at a time instead of many. But never longer than a call usually
    takes, so that one that stalls holds up no other.

    Tasks that begin have not brought their first keys yet (:class:`~eddyline.asking.beginning
    .Beginning`). They are waited for as well, for a while; and where that was in vain, never again.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        """``now`` tells seconds."""
        self._now = now
        self._since = 0.0
        self._first = 0.0
        self._in_vain = False
        self.tasks = 0
        """Tasks that may ask for more soon."""
        self.beginning = 0
        """Tasks that may bring their first keys soon."""

    def begin(self) -> None:
        """Note that keys wait from now on, of which none did before, or others."""
        self._since = self._first = self._now()

    def expect(self, tasks: int, beginning: int) -> None:
        """Know that so many tasks may ask for more, and so many for the first time."""
        if beginning < self.beginning:
            self._since = self._now()  # who has just come hands the next keys over soon
        self.tasks, self.beginning = tasks, beginning

    def leave(self) -> None:
        """Note that a call leaves with fewer keys than it could take."""
        self._in_vain = self._in_vain or self.beginning > 0

    def patience(self, *, under_way: bool, usual_seconds: float) -> float:
        """Return the seconds that keys have still to wait for more; 0 where they go now.

        ``under_way``: whether other calls are. ``usual_seconds`` is what a call takes, 0 as long as
        nobody knows.

        >>> filling = Filling(lambda: 100.0)
        >>> filling.begin()
        >>> filling.patience(under_way=True, usual_seconds=2.0)
        0.0
        >>> filling.expect(1, 0)
        >>> filling.patience(under_way=True, usual_seconds=2.0)
        2.0
        """
        now = until = self._now()
        if self.tasks:
            limit = max(usual_seconds or UNKNOWN, GATHERED) if under_way else GATHERED
            until = max(until, self._since + limit)
        if self.beginning and not self._in_vain:
            until = max(until, self._first + BEGINNING)
        left = until - now
        return left if left > math.ulp(until) else 0.0
