"""What an eddy asks of a module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from eddyline.engine.batch import TupleBatch
from eddyline.engine.callers import Agenda
from eddyline.engine.signature import Signature


@runtime_checkable
class Module(Protocol):
    """An inline module: it computes while the eddy waits.

    ``name`` is shown to people. What :meth:`process` returns goes back to the
    eddy: fewer tuples than it got (a selection), more (a probe into a SteM), the
    same tuples under another signature (a build that bounces back), none. Each
    returned batch carries its own signature, so a module that keeps tuples, adds
    components to them or lets them visit it again says so there.
    """

    @property
    def name(self) -> str:
        """The module as people know it."""
        ...

    def process(self, batch: TupleBatch) -> Sequence[TupleBatch]:
        """Handle a batch of one signature, and return what goes on, by signature."""
        ...


class BoundedQueue(NamedTuple):
    """How many tuples a module takes at a time, those that it works on included.

    Once full it is offered more when it has room again for ``refill`` of them. A visit takes
    ``unit`` of them at the least, if there are so many: as many as one call of the module can.
    """

    room: int
    refill: int = 1
    unit: int = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of ``tuples`` tuples of one signature; ``cost`` is what they took in all.

    The cost is in the clock's unit and for the module as a whole: of a call that takes 2
    milliseconds beside fifteen others it is an eighth of a millisecond. ``taken`` are the tuples
    themselves, where the module still knows them.
    """

    signature: Signature
    tuples: int
    results: Sequence[TupleBatch]
    cost: float
    taken: TupleBatch | None = None


@runtime_checkable
class ConcurrentModule(Protocol):
    """A module that works while the eddy goes on, behind a bounded queue.

    The eddy never waits for one as long as another can work. A full queue is
    back-pressure: such a module is no open candidate until it has caught up
    (Avnur and Hellerstein, 2000, Section 4.2).
    """

    @property
    def name(self) -> str:
        """The module as people know it."""
        ...

    @property
    def queue(self) -> BoundedQueue:
        """Its room in tuples, and how much of it must be free before it is offered more."""
        ...

    @property
    def agenda(self) -> Agenda:
        """Where it says that there are answers; the same for all modules of an eddy."""
        ...

    def attend(self, number: int) -> None:
        """Take the number of the module in its eddy, and use it in the agenda from now on."""
        ...

    def offer(self, batch: TupleBatch) -> None:
        """Take tuples, never more than there is room for; return before they are worked on."""
        ...

    def collect(self) -> Sequence[Answer]:
        """Return what has come out since the last time; called by the eddy, in its thread.

        Each tuple offered is answered once, in any order and company.
        """
        ...
