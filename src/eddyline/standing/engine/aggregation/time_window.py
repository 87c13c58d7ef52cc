"""Windows of time, and the panes that they are made of."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.int64]
"""Microseconds since 1970."""


class Occurrences(NamedTuple):
    """Places of panes, and for each the start of a window that the pane is in."""

    places: npt.NDArray[np.int64]
    starts: Times


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """Windows of ``size`` that begin every ``slide`` from ``start`` on, in microseconds.

    A window has the times from its start on and before its end. Where windows overlap, a row is
    in several of them; it is aggregated once, with the others of its pane, the longest stretch
    that no window begins or ends in (Li, Maier, Tufte, Papadimos and Tucker, 2005). ValueError for
    windows that leave gaps, or have no length.
    """

    size: int
    slide: int
    start: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.slide <= self.size:
            raise ValueError(f"windows of {self.size} every {self.slide} are no windows")

    @property
    def pane(self) -> int:
        """The length of a pane.

        >>> TimeWindow(size=60, slide=40).pane
        20
        """
        return math.gcd(self.size, self.slide)

    def panes(self, times: Times) -> Times:
        """Return the starts of the panes that times are in."""
        return times - (times - self.start) % self.pane

    def last_ends(self, panes: Times) -> Times:
        """Return when the last window that each pane is in ends."""
        return self._last_starts(panes) + self.size

    def closing(self, panes: Times, after: int, until: int) -> Occurrences:
        """Return the windows of panes that end after one time, and not after another."""
        occurrences = [
            Occurrences(np.flatnonzero(chosen), starts[chosen])
            for starts in self._windows(panes)
            for chosen in [
                (starts + self.size > np.maximum(panes, after)) & (starts + self.size <= until)
            ]
        ]
        places, starts = (np.concatenate(parts) for parts in zip(*occurrences, strict=True))
        return Occurrences(places, starts)

    def next_end(self, panes: Times, after: int) -> int | None:
        """Return when the next window that one of the panes is in ends; None without panes."""
        if not len(panes):
            return None
        ends = []
        for starts in self._windows(panes):
            closes = starts + self.size
            open_ = closes[closes > np.maximum(panes, after)]
            ends += [int(open_.min())] if len(open_) else []
        return min(ends, default=None)

    def _windows(self, panes: Times) -> Iterator[Times]:
        """Yield the starts of the windows that each pane may be in, the last ones first."""
        last = self._last_starts(panes)
        for earlier in range(-(-self.size // self.slide)):
            yield last - earlier * self.slide

    def _last_starts(self, panes: Times) -> Times:
        return panes - (panes - self.start) % self.slide


@dataclass(frozen=True, slots=True)
class SessionWindow:
    """Sessions: stretches of time in which no row is later than the one before by more than a gap.

    A session ends ``gap`` microseconds after its last row. A row at the very end of a session
    belongs to it, as in Spark. ValueError for a gap that is no time.
    """

    gap: int

    def __post_init__(self) -> None:
        if self.gap <= 0:
            raise ValueError(f"sessions with a gap of {self.gap} have no end")


class Sessions(NamedTuple):
    """For each of some stretches of time the session that it is in: its number, start and end."""

    numbers: npt.NDArray[np.int64]
    starts: Times
    ends: Times


def sessions_of(groups: npt.NDArray[np.integer], starts: Times, ends: Times) -> Sessions:
    """Return the sessions of stretches by group: those that overlap, or meet, are one.

    Takes time as sorting does.

    >>> starts, ends = np.array([5, 0, 9, 11]), np.array([9, 5, 20, 12])
    >>> found = sessions_of(np.array([0, 0, 1, 0]), starts, ends)
    >>> found.starts, found.ends
    (array([ 0,  0,  9, 11]), array([ 9,  9, 20, 12]))
    """
    number = len(starts)
    _, groups = np.unique(groups, return_inverse=True)
    order = np.lexsort((starts, groups))
    groups, begun = groups[order], starts[order]
    by_end = np.argsort(ends, kind="stable")
    ranks = np.empty(number, np.int64)
    ranks[by_end] = np.arange(number)
    # The latest end so far of each group: groups come one after the other, so a later one is more.
    latest = ends[by_end[np.maximum.accumulate(groups * number + ranks[order]) % max(number, 1)]]
    begins = np.ones(number, np.bool_)
    begins[1:] = (groups[1:] != groups[:-1]) | (begun[1:] > latest[:-1])
    firsts = np.flatnonzero(begins)
    lasts = np.append(firsts[1:], number)[: len(firsts)] - 1
    numbers = np.empty(number, np.int64)
    numbers[order] = np.cumsum(begins) - 1
    return Sessions(numbers, begun[firsts][numbers], latest[lasts][numbers])
