"""A predicate over values of functions that answer later."""

from __future__ import annotations

from collections.abc import Sequence

from eddyline.engine.agenda import Agenda
from eddyline.engine.batch import TupleBatch
from eddyline.engine.bounded_queue import BoundedQueue
from eddyline.engine.modules.calls_in_rounds import CallsInRounds
from eddyline.engine.modules.module import Answer
from eddyline.engine.modules.selection import Selection, SelectionStatistics


class ConcurrentPredicate:
    """A selection that is asked about a tuple once all calls that it needs have been made.

    Adaptivity does not change answers: it is the selection that decides, over the same values.
    """

    calls_functions_in_vectors = False

    def __init__(self, selection: Selection, calls: CallsInRounds) -> None:
        """Make calls for ``selection``, which decides."""
        self._selection = selection
        self._calls = calls

    @property
    def name(self) -> str:
        """The predicate's text."""
        return self._selection.name

    @property
    def agenda(self) -> Agenda:
        """Where it says that it has answers."""
        return self._calls.agenda

    @property
    def queue(self) -> BoundedQueue:
        """Room for as many tuples again as are called for at a time; see ConcurrentSelection."""
        width = self._calls.width
        return BoundedQueue(2 * width, max(1, width // 2))

    def attend(self, number: int) -> None:
        """Become module number so and so of an eddy."""
        self._calls.attend(number)

    def statistics(self, seconds: float) -> SelectionStatistics:
        """Return what the predicate did so far; ``seconds`` is what its eddy was told."""
        return self._selection.statistics(seconds)

    def offer(self, batch: TupleBatch) -> None:
        """Take tuples, and begin with their calls."""
        rows = batch.rows[0]
        if rows is None:
            raise ValueError(f"{batch.signature} does not span the relation of {self.name}")
        self._calls.begin(batch.signature, rows)

    def collect(self) -> Sequence[Answer]:
        """Return what has become of the tuples whose calls have been made."""
        return [
            Answer(
                signature,
                len(rows),
                self._selection.process(TupleBatch(signature, (rows,))),
                cost,
            )
            for signature, rows, cost in self._calls.collect()
        ]
