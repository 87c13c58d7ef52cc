"""Scans whose rows come in the course of virtual time."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from bench.simulation.virtual_agenda import VirtualAgenda
from eddyline.engine.modules.scan_access import Arrival

NOBODY: Final = -1
"""No module's number: it wakes an eddy that waits, which then looks after its inputs."""


class VirtualScan:
    """An input that gives its rows one arrival after the other, each after some time.

    >>> from eddyline.simulation.virtual_clock import VirtualClock
    >>> agenda = VirtualAgenda(clock := VirtualClock())
    >>> scan = VirtualScan([Arrival((), 1), Arrival((), 1)], [2.0, 0.5], agenda)
    >>> scan.poll(), agenda.wait(), clock.now(), scan.poll()
    (None, [-1], 2.0, Arrival(columns=(), rows=1, done=0))
    """

    def __init__(
        self,
        arrivals: Sequence[Arrival],
        seconds: Sequence[float],
        agenda: VirtualAgenda,
        *,
        sized: bool = True,
    ) -> None:
        """Give each arrival so many seconds after the one before.

        ``sized``: it says how many rows are left. ValueError where there are not as many times.
        """
        if len(arrivals) != len(seconds):
            raise ValueError(f"{len(arrivals)} arrivals cannot come at {len(seconds)} times")
        self._coming = deque(zip(arrivals, seconds, strict=True))
        self._here: deque[Arrival] = deque()
        self._left = sum(arrival.rows for arrival in arrivals)
        self._agenda = agenda
        self._sized = sized
        self._expect_next()

    @property
    def ended(self) -> bool:
        """Whether all rows were given."""
        return not self._here and not self._coming

    @property
    def expected_rows(self) -> float | None:
        """How many rows are left, where it says so."""
        return self._left if self._sized else None

    def poll(self) -> Arrival | None:
        """Return the next rows that have come; None where there are none now."""
        if not self._here:
            return None
        arrival = self._here.popleft()
        self._left -= arrival.rows
        return arrival

    def _expect_next(self) -> None:
        if self._coming:
            self._agenda.plan(self._coming[0][1], self._come)

    def _come(self) -> None:
        arrival, _ = self._coming.popleft()
        self._here.append(arrival)
        self._agenda.tell(NOBODY)
        self._expect_next()
