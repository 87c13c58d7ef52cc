"""What comes later: rows of inputs, and answers to calls that a generator has made in any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from eddyline.engine.callers import CallDone, Outbox, PlannedCall, as_error
from eddyline.engine.modules.scan_access import Arrival, ScanAccess


class Delayed:
    """An input that gives the rows of another when it likes to; ``poll`` says when."""

    def __init__(self, source: ScanAccess) -> None:
        self._source = source

    @property
    def ended(self) -> bool:
        return self._source.ended

    @property
    def expected_rows(self) -> float | None:
        return self._source.expected_rows


class Late(Delayed):
    """An input that has nothing to give until it is opened."""

    def __init__(self, source: ScanAccess) -> None:
        super().__init__(source)
        self.open = False

    def poll(self) -> Arrival | None:
        return self._source.poll() if self.open else None


class UnrulyAgenda:
    """Makes the calls that were submitted to its callers one by one, whichever comes to its mind.

    With ``patience`` 1 no call is made as long as the eddy does not wait; with 0 many are.
    """

    def __init__(self, generator: np.random.Generator, patience: float = 0.7) -> None:
        self._generator = generator
        self._patience = patience
        self._told: dict[int, None] = {}
        self._waiting: list[Callable[[], None]] = []
        self.most = 0
        """Calls that waited at a time, at the most."""

    def tell(self, module: int) -> None:
        self._told[module] = None

    def poll(self) -> Sequence[int]:
        while self._waiting and self._generator.random() >= self._patience:
            self._make_one()
        return self._taken()

    def wait(self) -> Sequence[int]:
        while not self._told:
            self._make_one()
        return self._taken()

    def submit(self, call: Callable[[], None]) -> None:
        self._waiting.append(call)
        self.most = max(self.most, len(self._waiting))

    def _make_one(self) -> None:
        self._waiting.pop(int(self._generator.integers(len(self._waiting))))()

    def _taken(self) -> Sequence[int]:
        told, self._told = self._told, {}
        return list(told)


class UnrulyCaller:
    """A caller whose calls are made when an :class:`UnrulyAgenda` feels like it."""

    def __init__(
        self, function: Callable[..., object], agenda: UnrulyAgenda, width: int = 2
    ) -> None:
        self.agenda = agenda
        self.width = width
        self._function = function
        self._outbox = Outbox(agenda)

    def attend(self, module: int) -> None:
        self._outbox.attend(module)

    def submit(self, calls: Sequence[PlannedCall]) -> None:
        for call in calls:
            self.agenda.submit(partial(self._make, call))

    def collect(self) -> list[CallDone]:
        return self._outbox.empty()

    def _make(self, call: PlannedCall) -> None:
        value, error = None, None
        try:
            value = self._function(*call.arguments)
        except Exception as raised:  # noqa: BLE001 - whatever the function raises
            error = as_error(raised)
        self._outbox.put(CallDone(call.key, value, error, 0.001))
