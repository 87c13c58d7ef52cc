"""The way back into an eddy on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush

from eddyline.simulation.virtual_clock import VirtualClock


class VirtualAgenda:
    """An agenda on a virtual clock, with what is to happen there; waiting moves the clock on.

    An eddy that computes takes virtual time too, and looks late. What is planned happens at its
    own time all the same, and what follows from it is planned from there: as beside the eddy.

    >>> clock = VirtualClock()
    >>> agenda = VirtualAgenda(clock)
    >>> agenda.plan(2.0, lambda: agenda.tell(1))
    >>> agenda.plan(1.0, lambda: agenda.tell(0))
    >>> agenda.wait(), clock.now()
    ([0], 1.0)
    """

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._told: dict[int, None] = {}
        self._planned: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0  # of two events at one time the one that was planned first comes first
        self._happening: float | None = None  # when it is, in an event

    def plan(self, delay: float, event: Callable[[], None]) -> None:
        """Let something happen in so much time from now."""
        now = self._clock.now() if self._happening is None else self._happening
        heappush(self._planned, (now + delay, self._count, event))
        self._count += 1

    def tell(self, module: int) -> None:
        """Say that a module has answers."""
        self._told[module] = None

    def wait(self) -> Sequence[int]:
        """Go on to the first time at which a module has answers, and return all that have.

        IndexError where nothing is planned: nobody would ever answer.
        """
        while not (told := self.poll()):
            self._clock.advance(self._planned[0][0] - self._clock.now())
        return told

    def poll(self) -> Sequence[int]:
        """Return the modules that have answers by now."""
        while self._planned and self._planned[0][0] <= self._clock.now():
            self._happening, _, event = heappop(self._planned)
            event()
        self._happening = None
        told = list(self._told)
        self._told.clear()
        return told
