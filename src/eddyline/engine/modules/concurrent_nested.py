"""An AND inside an OR, or the other way round, with some terms that answer later."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from eddyline.engine.batch import Rows, TupleBatch, as_array
from eddyline.engine.callers import Agenda
from eddyline.engine.modules.module import Answer, BoundedQueue
from eddyline.engine.modules.nested import Nested
from eddyline.engine.modules.selection import SelectionStatistics
from eddyline.engine.signature import ENTERING, Signature
from eddyline.engine.statistics import Spent

WIDTHS: int = 8
"""Room for so many times the tuples that the widest term works on.

Tuples are answered together once the inner eddy has finished all of them. While the last ones
are on their way the terms have little to do: with eight widths for about an eighth of the time.
"""


class NestedAgenda:
    """The agenda of an inner eddy: its modules speak to it, and it to the outer eddy.

    Nobody waits here: the outer eddy does.
    """

    def __init__(self, outer: Agenda) -> None:
        self.outer = outer
        self.number: int | None = None
        self._told: deque[int] = deque()

    def tell(self, module: int) -> None:
        """Say that a module of the inner eddy has answers; from any thread."""
        self._told.append(module)
        if self.number is not None:
            self.outer.tell(self.number)

    def poll(self) -> Sequence[int]:
        """Return the modules that have said so by now."""
        told: dict[int, None] = {}
        while self._told:
            told[self._told.popleft()] = None
        return list(told)

    def wait(self) -> Sequence[int]:
        """Return the modules that have said so by now, which may be none."""
        return self.poll()


class ConcurrentNested:
    """An eddy as a module that works while the outer eddy goes on.

    Adaptivity does not change answers: see :class:`~eddyline.engine.modules.nested.Nested`,
    which decides.
    """

    def __init__(self, nested: Nested, agenda: NestedAgenda) -> None:
        """``agenda`` is that of the modules inside ``nested`` that answer later."""
        self._nested = nested
        self._agenda = agenda
        self._parts: list[TupleBatch] = []
        self._finished: list[Rows] = []
        self._cost = 0.0  # of the terms, when tuples were answered last

    @property
    def name(self) -> str:
        """The predicate's text."""
        return self._nested.name

    @property
    def calls_functions_in_vectors(self) -> bool:
        """Whether a visit has a large fixed cost."""
        return self._nested.calls_functions_in_vectors

    @property
    def agenda(self) -> Agenda:
        """Where it says that it has answers."""
        return self._agenda.outer

    @property
    def queue(self) -> BoundedQueue:
        """Room for some times the tuples that its widest term has room for."""
        modules = self._nested.eddy.modules.values()
        rooms = [queue.room for module in modules if (queue := getattr(module, "queue", None))]
        room = WIDTHS // 2 * max(rooms)
        return BoundedQueue(room, room)

    def attend(self, number: int) -> None:
        """Take the number of the module in its eddy, for the agenda."""
        self._agenda.number = number

    def statistics(self, spent: Spent) -> SelectionStatistics:
        """Return what the predicate and its terms did so far."""
        return self._nested.statistics(spent)

    def offer(self, batch: TupleBatch) -> None:
        """Take tuples, and route them as far as is possible without waiting."""
        if batch.rows[0] is None:
            raise ValueError(f"{batch.signature} does not span the relation of {self.name}")
        self._parts.append(batch)
        self._take(self._nested.eddy.feed(batch.under(ENTERING)))
        if not self._nested.eddy.away:
            self._agenda.tell(-1)  # no module of that number: there is an answer all the same

    def collect(self) -> Sequence[Answer]:
        """Route on; return what has become of the tuples once none is on its way any more."""
        eddy = self._nested.eddy
        if eddy.away:
            self._take(eddy.advance())
        else:
            self._agenda.poll()
        if eddy.away or not self._parts:
            return []
        by_signature: dict[Signature, list[Rows]] = {}
        for part in self._parts:
            rows = part.rows[0]
            if rows is not None:
                by_signature.setdefault(part.signature, []).append(rows)
        finished, self._parts, self._finished = self._finished, [], []
        total = sum(len(rows) for parts in by_signature.values() for rows in parts)
        cost = sum(map(eddy.seconds_in, eddy.modules))
        spent, self._cost = cost - self._cost, cost
        answers = []
        for signature, parts in by_signature.items():
            rows = np.sort(np.concatenate([as_array(part) for part in parts]))
            taken = TupleBatch(signature, (rows,))
            results = self._nested.settled(taken, finished)
            answers.append(Answer(signature, len(rows), results, spent * len(rows) / total, taken))
        self._nested.forget_errors()
        return answers

    def _take(self, batches: Sequence[TupleBatch]) -> None:
        self._finished += [rows for batch in batches if (rows := batch.rows[0]) is not None]
