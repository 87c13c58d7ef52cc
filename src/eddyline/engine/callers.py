"""Calls that are answered later: who makes them, and how their answers reach the eddy."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, TypeAlias, TypeGuard

from eddyline.engine.signature import Signature
from eddyline.expressions import Call, Expression, calls_in
from eddyline.expressions.vector import Function

CallKey: TypeAlias = tuple[Signature, int]
"""The tuple that a call is made for: its signature and its row."""


class Agenda(Protocol):
    """The way back into the eddy, shared by its modules: thread-safe, or on a virtual clock."""

    def tell(self, module: int) -> None:
        """Say that a module has answers; from any thread."""
        ...

    def poll(self) -> Sequence[int]:
        """Return the modules that have said so by now, without waiting."""
        ...

    def wait(self) -> Sequence[int]:
        """Return the modules that have said so, after some time at least one."""
        ...


class CallDone(NamedTuple):
    """A call that was made: what it returned or raised, and how long it took.

    ``price`` is what it costs besides, in the clock's unit: money at what it is worth. Unlike
    time, it is not shared with the calls made at the same time.
    """

    key: CallKey
    value: object
    error: Exception | None
    seconds: float
    price: float = 0.0


class PlannedCall(NamedTuple):
    """A call to be made; ``key`` comes back with what it returns."""

    key: CallKey
    arguments: tuple[object, ...]


class Caller(Protocol):
    """Makes calls of one function, ``width`` of them at a time, and keeps what they return.

    How it waits is its own affair. Each call submitted is done once, whatever becomes of it:
    otherwise the eddy would wait forever. In its life it calls for one module of one eddy.
    """

    @property
    def agenda(self) -> Agenda:
        """Where it says that calls are done."""
        ...

    @property
    def width(self) -> int:
        """Calls that are made at a time."""
        ...

    def attend(self, module: int) -> None:
        """Call for a module of this number; RuntimeError if it has called for one before."""
        ...

    def submit(self, calls: Sequence[PlannedCall]) -> None:
        """Take calls to be made; return at once."""
        ...

    def collect(self) -> list[CallDone]:
        """Return the calls that were done since it was last asked."""
        ...


class Outbox:
    """Calls that are done, on their way back into the eddy's thread."""

    def __init__(self, agenda: Agenda) -> None:
        self.agenda = agenda
        self._module: int | None = None
        self._done: deque[CallDone] = deque()
        self._told = False

    def attend(self, module: int) -> None:
        """Speak for a module; RuntimeError if it has spoken for one before.

        What was called for that one may still be on its way, and is not for another eddy.
        """
        if self._module is not None:
            raise RuntimeError(f"makes the calls of module {self._module} already")
        self._module = module

    def put(self, done: CallDone) -> None:
        """Add a call that is done; from any thread."""
        self._done.append(done)
        # Told once for all that is done until the eddy comes to collect. It takes back the word
        # before it empties the box: what comes in between is told twice, never not at all.
        if not self._told and self._module is not None:
            self._told = True
            self.agenda.tell(self._module)

    def empty(self) -> list[CallDone]:
        """Return all that is done; from the eddy's thread."""
        self._told = False
        calls = []
        while self._done:
            calls.append(self._done.popleft())
        return calls


class AnswersLater(Function, Protocol):
    """A function whose calls somebody else makes; the eddy goes on meanwhile."""

    @property
    def agenda(self) -> Agenda:
        """Where it says that calls are done, unless :meth:`connect` is given another."""
        ...

    def connect(self, agenda: Agenda) -> Caller:
        """Return who makes the calls of one module, and says so in ``agenda``.

        ValueError where that cannot be.
        """
        ...


def answers_later(function: Function) -> TypeGuard[AnswersLater]:
    """Tell whether calls of a function are made by somebody else."""
    return hasattr(function, "connect")


def later_calls(functions: Sequence[Function], expressions: Iterable[Expression]) -> list[Call]:
    """Return the distinct calls in expressions that are answered later, inner ones first."""
    calls: dict[Call, None] = {}
    for expression in expressions:
        for call in calls_in(expression):
            if call.function < len(functions) and answers_later(functions[call.function]):
                calls.setdefault(call)
    return list(calls)


def as_error(raised: BaseException) -> Exception:
    """Return what a call has raised as an error of its row.

    ``sys.exit()`` in a function ends the call, and not the thread that others wait for.
    """
    if isinstance(raised, Exception):
        return raised
    error = RuntimeError(f"a call was ended by {raised!r}")
    error.__cause__ = raised
    return error


def checked_width(width: int) -> int:
    """Return a width; ValueError unless it is 1 at least, TypeError for no whole number."""
    width = operator.index(width)
    if width < 1:
        raise ValueError(f"a width is a number of calls from 1 on, not {width}")
    return width
