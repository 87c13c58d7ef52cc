"""A function of a task, whose calls the driver makes: see :mod:`eddyline.asking.lookup_server`."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from eddyline.asking.frozen import frozen
from eddyline.asking.function_answers import ERROR, PRICE, STOP, STOPS, VALUE
from eddyline.asking.remote_lookup import RemoteLookup
from eddyline.asking.wire import Address
from eddyline.engine.callers import Agenda, CallDone, CallKey, Outbox, PlannedCall
from eddyline.engine.signature import ENTERING
from eddyline.errors import FunctionFailedError
from eddyline.expressions.vector import Vector


class _Known(NamedTuple):
    value: object
    error: Exception | None
    stops: bool


class RemoteFunction:
    """A function that answers later, for all places of a task's block in which it stands.

    What is known of some arguments is asked of nobody again. A thread reads the answers.
    """

    vectorized = False

    def __init__(
        self,
        address: Address,
        job: str,
        method: str,
        agenda: Agenda,
        types: Sequence[pa.DataType],
        returns: pa.DataType,
        *,
        width: int,
        worth: float = 0.0,
    ) -> None:
        """Connect; ServerGoneError where nobody is there.

        ``types`` are those of the arguments. ``worth`` is what a unit of money counts as, in
        seconds.
        """
        self.agenda = agenda
        self.width = width
        self._types = tuple(types)
        self._worth = worth
        self._lock = threading.Lock()
        self._known: dict[object, _Known] = {}
        self._waiting: dict[object, list[tuple[Outbox, CallKey]]] = {}
        self._asked: list[object] = []
        wanted = [(VALUE, returns), (ERROR, pa.string()), (STOP, pa.string())]
        self._remote = RemoteLookup(
            address, job, method, _Told(self), [*wanted, (PRICE, pa.float64())], width=width
        )
        self._remote.attend(0)

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        """Raise TypeError: whoever calls this would have to wait."""
        raise TypeError(f"cannot be called on {rows} rows of {len(columns)} columns: answers later")

    def connect(self, agenda: Agenda) -> RemoteFunctionCaller:
        """Return a caller for one module."""
        return RemoteFunctionCaller(self, agenda)

    def close(self) -> None:
        """Hang up."""
        self._remote.close()

    def ask(self, calls: Sequence[PlannedCall], outbox: Outbox) -> None:
        """Have calls made that are not known; all answers go into an outbox."""
        known: list[CallDone] = []
        new: list[tuple[object, ...]] = []
        with self._lock:
            first = len(self._asked)
            for call in calls:
                key = frozen(call.arguments)
                found = self._known.get(key)
                if found is not None:
                    known.append(_done(call.key, found, 0.0, 0.0))
                    continue
                if key not in self._waiting:
                    self._asked.append(key)
                    new.append(call.arguments)
                self._waiting.setdefault(key, []).append((outbox, call.key))
        for done in known:
            outbox.put(done)
        if new:
            columns = [
                pa.array(values, kind)
                for values, kind in zip(zip(*new, strict=True), self._types, strict=True)
            ]
            self._remote.submit(
                [
                    PlannedCall((ENTERING, first + place), ([c.slice(place, 1) for c in columns],))
                    for place in range(len(new))
                ]
            )

    def take(self) -> None:
        """Hand on what was answered."""
        for (_, number), value, error, took, _ in self._remote.collect():
            seconds = took
            with self._lock:
                key = self._asked[number]
                found, money = _found(value, error)
                self._known[key] = found
                waiting = self._waiting.pop(key, [])
            for place, (outbox, call) in enumerate(waiting):
                first = place == 0  # the others have waited, and cost nothing
                outbox.put(
                    _done(
                        call, found, seconds if first else 0.0, self._price(seconds, money, first)
                    )
                )

    def _price(self, seconds: float, money: float, first: bool) -> float:  # noqa: FBT001
        """Return what money counts as; the driver knew the value already where it took no time."""
        return self._worth * money if first and seconds else 0.0


class RemoteFunctionCaller:
    """Has the calls of one module made."""

    def __init__(self, function: RemoteFunction, agenda: Agenda) -> None:
        """Say in ``agenda`` that there are answers."""
        self.agenda = agenda
        self.width = function.width
        self._function = function
        self._outbox = Outbox(agenda)

    def attend(self, module: int) -> None:
        """Call for a module of this number."""
        self._outbox.attend(module)

    def submit(self, calls: Sequence[PlannedCall]) -> None:
        """Have calls made."""
        self._function.ask(calls, self._outbox)

    def collect(self) -> list[CallDone]:
        """Return what has come; raises what ends the job, as a budget that is spent."""
        found = self._outbox.empty()
        for done in found:
            if done.error is not None and not isinstance(done.error, FunctionFailedError):
                raise done.error
        return found


class _Told:
    """The agenda of a connection, which hands on what comes in the thread in which it comes."""

    def __init__(self, function: RemoteFunction) -> None:
        self._function = function

    def tell(self, module: int) -> None:  # noqa: ARG002 - there is one
        self._function.take()

    def poll(self) -> Sequence[int]:
        return ()

    def wait(self) -> Sequence[int]:
        return ()


def _found(value: object, error: Exception | None) -> tuple[_Known, float]:
    """Return an answer, and the money that it has cost."""
    if error is not None:
        return _Known(None, error, stops=True), 0.0
    if not isinstance(value, list):
        raise TypeError(f"an answer is columns of one row, not {value!r}")
    money = value[PRICE][0].as_py()
    text = value[ERROR][0].as_py()
    if text is None:
        return _Known(value[VALUE][0], None, stops=False), money
    stop = value[STOP][0].as_py()
    kind = STOPS[stop] if stop is not None else FunctionFailedError
    return _Known(None, kind(text), stops=stop is not None), money


def _done(key: CallKey, known: _Known, seconds: float, price: float) -> CallDone:
    return CallDone(key, known.value, known.error, seconds, price)
