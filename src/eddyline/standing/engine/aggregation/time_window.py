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


class SessionStretches:
    """Stretches of time by group, in the order of groups and starts.

    Sorted once, so that the sessions of any choice of them take no more than one pass.
    """

    def __init__(self, groups: npt.NDArray[np.integer], starts: Times, ends: Times) -> None:
        self.order = np.lexsort((starts, groups))
        """The places of the stretches as they were given."""
        self.groups = groups[self.order].astype(np.int64)
        self.starts, self.ends = starts[self.order], ends[self.order]
        self._by_end = np.argsort(self.ends, kind="stable")
        self._ranks = np.empty(len(starts), np.int64)
        self._ranks[self._by_end] = np.arange(len(starts))

    def sessions(self, chosen: npt.NDArray[np.int64], groups: npt.NDArray[np.int64]) -> Sessions:
        """Return the sessions of stretches in their order, which are those of some groups.

        These ascend. What overlaps in a group, or meets, is one.

        >>> starts, ends = np.array([5, 0, 9, 11]), np.array([9, 5, 20, 12])
        >>> stretches = SessionStretches(np.array([0, 0, 1, 0]), starts, ends)
        >>> found = stretches.sessions(np.arange(4), stretches.groups)
        >>> found.starts, found.ends, found.numbers
        (array([ 0, 11,  9]), array([ 9, 12, 20]), array([0, 0, 1, 2]))
        """
        number = len(self.order)
        starts = self.starts[chosen]
        # The latest end so far: groups come one after the other, so that of a later one is more.
        latest = np.maximum.accumulate(groups * number + self._ranks[chosen])
        ends = self.ends[self._by_end[latest % max(number, 1)]]
        begins = np.ones(len(chosen), np.bool_)
        begins[1:] = (groups[1:] != groups[:-1]) | (starts[1:] > ends[:-1])
        firsts = np.flatnonzero(begins)
        lasts = np.append(firsts[1:], len(chosen))[: len(firsts)] - 1
        return Sessions(np.cumsum(begins) - 1, firsts, starts[firsts], ends[lasts])


class Sessions(NamedTuple):
    """Sessions, and for each of some stretches the number of the one that it is in."""

    numbers: npt.NDArray[np.int64]
    firsts: npt.NDArray[np.int64]
    """The first stretch of each session."""
    starts: Times
    ends: Times
