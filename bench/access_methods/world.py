"""Where sources take their time: on a virtual clock, or asleep in threads."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from bench.simulation.virtual_agenda import VirtualAgenda
from bench.simulation.virtual_calls import VirtualCaller
from bench.simulation.virtual_scan import NOBODY, VirtualScan
from bench.waiting_calls import ThreadCaller
from eddyline.asking.shared_agenda import SharedAgenda
from eddyline.engine.callers import Agenda, Caller
from eddyline.engine.clock import Clock
from eddyline.engine.modules.scan_access import Arrival, ScanAccess
from eddyline.simulation.virtual_clock import VirtualClock

Function = Callable[..., object]
Seconds = Callable[..., float]


class World(Protocol):
    """A clock, an agenda, and what takes time there. Seconds are those of the experiment."""

    @property
    def clock(self) -> Clock:
        """The time since the start."""
        ...

    @property
    def agenda(self) -> Agenda:
        """Where answers and arrivals are told."""
        ...

    def caller(self, function: Function, seconds: Seconds) -> Caller:
        """Return what makes calls one at a time, which take so long by their arguments."""
        ...

    def scan(self, arrivals: Sequence[Arrival], every: float) -> ScanAccess:
        """Return an input that gives an arrival every so many seconds."""
        ...

    def close(self) -> None:
        """End what works on its own."""
        ...


class VirtualWorld:
    """The virtual clock. What the eddy itself does takes no time: the sources' is far more."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.agenda = VirtualAgenda(self.clock)

    def caller(self, function: Function, seconds: Seconds) -> Caller:
        """Return what makes calls one at a time."""
        return VirtualCaller(function, self.agenda, seconds, width=1)

    def scan(self, arrivals: Sequence[Arrival], every: float) -> ScanAccess:
        """Return an input in the course of virtual time."""
        return VirtualScan(arrivals, [every] * len(arrivals), self.agenda)

    def close(self) -> None:
        """Nothing works on its own."""


class ScaledClock:
    """Wall time since the start, in seconds of the experiment."""

    resolution = 0.0

    def __init__(self, scale: float) -> None:
        """Let a second of the experiment be ``scale`` seconds."""
        self._scale = scale
        self._start = time.perf_counter()

    def now(self) -> float:
        """Return the time."""
        return (time.perf_counter() - self._start) / self._scale


class SleepingWorld:
    """Real time: calls sleep in threads, and so do scans."""

    def __init__(self, scale: float) -> None:
        """Let a second of the experiment be ``scale`` seconds."""
        self._scale = scale
        self._callers: list[ThreadCaller] = []
        self.clock = ScaledClock(scale)
        self.agenda = SharedAgenda()

    def caller(self, function: Function, seconds: Seconds) -> Caller:
        """Return what makes calls one at a time, in a thread of its own."""

        def slowly(*arguments: object) -> object:
            if wait := seconds(*arguments):
                time.sleep(wait * self._scale)
            return function(*arguments)

        caller = ThreadCaller(slowly, self.agenda, self.clock.now, width=1)
        self._callers.append(caller)
        return caller

    def scan(self, arrivals: Sequence[Arrival], every: float) -> ScanAccess:
        """Return an input that a thread fills."""
        return SleepingScan(arrivals, every, self.clock, self.agenda, self._scale)

    def close(self) -> None:
        """Let the threads end."""
        for caller in self._callers:
            caller.close()


class SleepingScan:
    """An input whose rows come in the course of time, from a thread that sleeps."""

    def __init__(
        self,
        arrivals: Sequence[Arrival],
        every: float,
        clock: ScaledClock,
        agenda: SharedAgenda,
        scale: float,
    ) -> None:
        """Give an arrival every so many seconds of the experiment."""
        self._here: deque[Arrival] = deque()
        self._left = len(arrivals)
        self._started = clock.now()
        thread = threading.Thread(
            target=self._come, args=(list(arrivals), every, clock, agenda, scale), daemon=True
        )
        thread.start()

    @property
    def ended(self) -> bool:
        """Whether all rows were given."""
        return not self._left

    @property
    def expected_rows(self) -> float | None:
        """How many arrivals, of a row each, are left."""
        return self._left

    def poll(self) -> Arrival | None:
        """Return the next rows that have come."""
        if not self._here:
            return None
        self._left -= 1
        return self._here.popleft()

    def _come(
        self,
        arrivals: Sequence[Arrival],
        every: float,
        clock: ScaledClock,
        agenda: SharedAgenda,
        scale: float,
    ) -> None:
        for number, arrival in enumerate(arrivals, 1):
            # By the time at which it is due: sleeping is never exact.
            due = self._started + number * every - clock.now()
            if due > 0.0:
                time.sleep(due * scale)
            self._here.append(arrival)
            agenda.tell(NOBODY)
