"""The way back into an eddy on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush

from eddyline.engine.clock import VirtualClock


class VirtualAgenda:
    """An agenda on a virtual clock, with what is to happen there; waiting moves the clock on.

    >>> clock = VirtualClock()
    >>> agenda = VirtualAgenda(clock)
    >>> agenda.plan(2.0, lambda: agenda.tell(1))
    >>> agenda.plan(1.0, lambda: agenda.tell(0))
    >>> agenda.wait(), clock.now()
    ([0], 1.0)
    """

    def __init__(self, clock: VirtualClock) -> None:
        """Start with nothing told and nothing planned."""
        self._clock = clock
        self._told: dict[int, None] = {}
        self._planned: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0  # of two events at one time the one that was planned first comes first

    def plan(self, delay: float, event: Callable[[], None]) -> None:
        """Let something happen in so much time from now."""
        heappush(self._planned, (self._clock.now() + delay, self._count, event))
        self._count += 1

    def tell(self, module: int) -> None:
        """Say that a module has answers."""
        self._told[module] = None

    def wait(self) -> Sequence[int]:
        """Go on to the first event after which a module has answers, and return these.

        IndexError where nothing is planned: nobody would ever answer.
        """
        while not self._told:
            when, _, event = heappop(self._planned)
            # An eddy may itself take virtual time, and be late.
            self._clock.advance(max(0.0, when - self._clock.now()))
            event()
        told = list(self._told)
        self._told.clear()
        return told
