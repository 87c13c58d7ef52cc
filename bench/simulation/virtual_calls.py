"""Calls on a virtual clock: the counterpart, in simulations, of threads and event loops."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from bench.simulation.virtual_agenda import VirtualAgenda
from eddyline.engine.callers import CallDone, Outbox, PlannedCall, as_error, checked_width


class VirtualCaller:
    """Makes calls that take virtual time, ``width`` of them at a time, first come first served.

    >>> from eddyline.simulation.virtual_clock import VirtualClock
    >>> from eddyline.engine.signature import ENTERING
    >>> agenda = VirtualAgenda(clock := VirtualClock())
    >>> caller = VirtualCaller(lambda x: x > 1, agenda, lambda x: 2.0, width=2)
    >>> caller.attend(0)
    >>> caller.submit([PlannedCall((ENTERING, x), (x,)) for x in range(3)])
    >>> for _ in range(2):
    ...     told = agenda.wait()
    ...     print([done.value for done in caller.collect()], clock.now())
    [False, False] 2.0
    [True] 4.0
    """

    def __init__(
        self,
        function: Callable[..., object],
        agenda: VirtualAgenda,
        seconds: Callable[..., float],
        *,
        width: int = 16,
    ) -> None:
        """Take what a call returns and how long it takes, both by its arguments."""
        self.width = checked_width(width)
        self.agenda = agenda
        self._function = function
        self._seconds = seconds
        self._waiting: deque[PlannedCall] = deque()
        self._working = 0
        self._outbox = Outbox(agenda)

    def attend(self, module: int) -> None:
        """Call for a module of this number."""
        self._outbox.attend(module)

    def submit(self, calls: Sequence[PlannedCall]) -> None:
        """Take calls to be made."""
        self._waiting.extend(calls)
        self._begin()

    def collect(self) -> list[CallDone]:
        """Return the calls that were done since the last time."""
        return self._outbox.empty()

    def _begin(self) -> None:
        while self._waiting and self._working < self.width:
            self._working += 1
            call = self._waiting.popleft()
            seconds = self._seconds(*call.arguments)
            self.agenda.plan(seconds, partial(self._end, call, seconds))

    def _end(self, call: PlannedCall, seconds: float) -> None:
        self._working -= 1
        value, error = None, None
        try:
            value = self._function(*call.arguments)
        except BaseException as raised:  # noqa: BLE001 - the user's function may raise anything
            error = as_error(raised)
        self._outbox.put(CallDone(call.key, value, error, seconds))
        self._begin()
