"""Lookups whose answers come later: the eddy goes on, and many calls are under way at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eddyline.engine.batch import TupleBatch
from eddyline.engine.callers import Agenda, Caller, PlannedCall
from eddyline.engine.modules.index_access import LookupRequests, LookupStatistics
from eddyline.engine.modules.module import Answer, BoundedQueue
from eddyline.engine.signature import Signature


@dataclass(frozen=True, slots=True)
class ConcurrentSource:
    """A source that somebody else asks, for up to ``bindings`` distinct bindings in a call.

    What ``caller`` calls takes one array, of as many values as bindings, for each bind column,
    and returns one for each column of the relation, as a
    :data:`~eddyline.engine.modules.index_access.Source` does. There is ``room`` for so many tuples
    at a time, where the relation has no other access method; at the least for those that keep the
    caller busy, and for no more by default. What has been handed over cannot be preferred any
    more; but a visit of a few tuples costs a millisecond as one of thousands does: with room for
    16, 200,000 tuples of 300 bindings took 7.6 s, of which the lookups needed 3.9.

    ``packed`` is how many calls are made into one behind ``caller``: room is counted in these.
    ``rest`` is called when nothing more will be asked for before there are answers, so that they
    wait for no more.
    """

    caller: Caller
    bindings: int = 1
    room: int = 0
    packed: int = 1
    rest: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        for number in (self.bindings, self.packed):
            if number < 1:
                raise ValueError(f"a call asks for 1 binding at least, not {number}")


class ConcurrentIndexAccess:
    """An access method that must be given the values of its bind columns, and answers later.

    Each distinct binding is asked for once, ever. Of the tuples that come those that make it
    ask are away until the answer is there; the others are answered at once, since
    somebody has asked for them (Raman, Deshpande and Hellerstein, 2003, Section 2.1.3,
    asynchronous indexes). So a tuple that waits here for nothing takes no room in the queue.

    Adaptivity does not change answers: the order in which answers come changes only when rows
    are built, and what is built last finds the others. An error of the source is no
    row's; it is raised when it is collected.
    """

    def __init__(self, requests: LookupRequests, source: ConcurrentSource) -> None:
        self._requests = requests
        self._source = source
        self._number = -1
        self._at_once: list[Answer] = []
        self._under_way: dict[int, int] = {}  # bindings, by transmission

    @property
    def name(self) -> str:
        """The relation's name, and the columns that must be given."""
        return self._requests.name

    @property
    def rows(self) -> int:
        """Rows that came so far."""
        return self._requests.rows

    @property
    def agenda(self) -> Agenda:
        """Where it says that it has answers."""
        return self._source.caller.agenda

    @property
    def queue(self) -> BoundedQueue:
        """Room for as many bindings again as are asked for at a time, in calls of so many.

        It is offered more at half of that, a call's worth at a time.

        Then tuples that are not sent yet may still go to another access method, if that turns
        out better. Where there is none, there is as much as the source says.
        """
        source = self._source
        unit = source.bindings * source.packed
        width = source.caller.width * unit
        room = 2 * width if self._requests.competing else max(2 * width, self._source.room)
        return BoundedQueue(room, max(1, width // 2), unit)

    @property
    def relation(self) -> int:
        """The relation whose rows it fetches."""
        return self._requests.relation

    def rest(self) -> None:
        """Say that no tuple will come before there are answers."""
        if self._source.rest is not None:
            self._source.rest()

    def attend(self, number: int) -> None:
        """Take the number of the module in its eddy, for the agenda."""
        self._source.caller.attend(number)
        self._number = number

    def statistics(self, seconds: float) -> LookupStatistics:
        """Return what it did so far; ``seconds`` is what its eddy was told."""
        return self._requests.statistics(seconds)

    def offer(self, batch: TupleBatch) -> None:
        """Take tuples, and begin to ask for what nobody has asked for."""
        asked = self._requests.new(batch)
        new = len(asked[0])
        size = self._source.bindings
        parts = [
            tuple(column.slice(start, size) for column in asked) for start in range(0, new, size)
        ]
        # What is asked for must have a number before a tuple can wait for it.
        numbers = self._requests.begin([len(part[0]) for part in parts])
        calls = []
        for number, part in zip(numbers, parts, strict=True):
            self._under_way[number] = len(part[0])
            calls.append(PlannedCall((batch.signature, number), (part,)))
        if calls:
            self._source.caller.submit(calls)
        at_once = len(batch) - new
        passed_on = self._requests.pass_on(batch)
        if at_once or passed_on:
            self._at_once.append(Answer(batch.signature, at_once, passed_on, 0.0))
            self.agenda.tell(self._number)

    def collect(self) -> Sequence[Answer]:
        """Return what has come out."""
        answers, self._at_once = self._at_once, []
        caller = self._source.caller
        came: dict[Signature, list[tuple[int, object]]] = {}
        cost: dict[Signature, float] = {}
        for (signature, number), value, error, seconds, _ in caller.collect():
            if error is not None:
                raise error
            came.setdefault(signature, []).append((number, value))
            cost[signature] = cost.get(signature, 0.0) + seconds / caller.width
        for signature, replies in came.items():
            tuples = sum(self._under_way.pop(number) for number, _ in replies)
            results = self._requests.came(replies)
            answers.append(Answer(signature, tuples, results, cost[signature]))
        return answers
