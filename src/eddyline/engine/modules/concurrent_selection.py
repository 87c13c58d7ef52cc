"""A selection whose predicate waits for something: its calls run side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from eddyline.engine.agenda import Agenda
from eddyline.engine.batch import TupleBatch, as_array
from eddyline.engine.bounded_queue import BoundedQueue
from eddyline.engine.modules.callers import CallDone, Caller, PlannedCall
from eddyline.engine.modules.calls_in_rounds import arguments_of
from eddyline.engine.modules.module import Answer
from eddyline.engine.modules.selection import HeldErrors, SelectionStatistics, SelectionTotals
from eddyline.engine.relation import Relation
from eddyline.engine.signature import Signature
from eddyline.expressions import Call


class ConcurrentSelection:
    """One call over one relation, TRUE for the tuples that pass; the eddy goes on meanwhile.

    For a call that nothing else asks for: what it returned is not remembered.

    Adaptivity does not change answers: whether a row passes depends on the row
    alone, and a row whose call failed passes on, with its error held.
    """

    def __init__(
        self,
        position: int,
        name: str,
        call: Call,
        relation: Relation,
        held: HeldErrors,
        caller: Caller,
    ) -> None:
        """Make module number ``position`` of its eddy; ``caller`` makes the calls."""
        self._position = position
        self._name = name
        self._call = call
        self._relation = relation
        self._held = held
        self._caller = caller
        self.totals = SelectionTotals()
        self._number = position
        self._made = relation.totals(call)
        self._not_called: list[CallDone] = []

    @property
    def name(self) -> str:
        """The predicate's text."""
        return self._name

    @property
    def calls_functions_in_vectors(self) -> bool:
        """Whether a visit has a large fixed cost."""
        return False

    @property
    def agenda(self) -> Agenda:
        """Where it says that it has answers."""
        return self._caller.agenda

    @property
    def queue(self) -> BoundedQueue:
        """Room for as many calls again as are made at a time; offered more at half of these."""
        width = self._caller.width
        return BoundedQueue(2 * width, max(1, width // 2))

    def attend(self, number: int) -> None:
        """Become module number so and so of an eddy."""
        self._caller.attend(number)
        self._number = number

    def statistics(self, seconds: float) -> SelectionStatistics:
        """Return what the predicate did so far; ``seconds`` is what its eddy was told."""
        return self.totals.frozen(self._name, seconds)

    def offer(self, batch: TupleBatch) -> None:
        """Take tuples, and begin with their calls."""
        rows = batch.rows[0]
        if rows is None:
            raise ValueError(f"{batch.signature} does not span the relation of {self._name}")
        given, failed = arguments_of(self._call, self._relation, rows)
        keys = [(batch.signature, row) for row in as_array(rows).tolist()]
        calls = list(map(PlannedCall, keys, given))
        if failed:  # a row without arguments is not called; its result is the argument's error
            self._not_called += [
                CallDone(keys[at], None, error, 0.0) for at, error in failed.items()
            ]
            calls = [call for position, call in enumerate(calls) if position not in failed]
            self.agenda.tell(self._number)
        if calls:
            self._caller.submit(calls)

    def collect(self) -> Sequence[Answer]:
        """Return what has come out, together for all tuples of a signature."""
        by_signature: dict[Signature, list[CallDone]] = {}
        for done in (*self._not_called, *self._caller.collect()):
            by_signature.setdefault(done.key[0], []).append(done)
        self._not_called = []
        return [self._answer(signature, calls) for signature, calls in by_signature.items()]

    def _answer(self, signature: Signature, calls: list[CallDone]) -> Answer:
        totals = self.totals
        kept = []
        cost = price = 0.0
        for (_, row), value, error, seconds, besides in calls:
            cost += seconds
            price += besides
            if isinstance(value, pa.Scalar):
                value = value.as_py()  # noqa: PLW2901 - the same, as Python has it
            if error is None and not isinstance(value, bool | np.bool_ | None):
                who, what = self._name or "a predicate", type(value).__name__
                error = TypeError(f"{who} must answer with a bool or None, not {what}")  # noqa: PLW2901 - the call's, from here on
            if error is not None:
                totals.errors += 1
                self._held.hold(self._position, range(row, row + 1), {0: error})
                kept.append(row)
            elif value:
                totals.passed += 1
                kept.append(row)
            elif value is None:
                totals.null += 1
        totals.rows_in += len(calls)
        self._made.calls += len(calls)
        self._made.seconds += cost
        results = []
        if kept:
            rows = np.array(kept, dtype=np.int64)
            results.append(TupleBatch(signature.after(self._position), (rows,)))
        return Answer(signature, len(calls), results, cost / self._caller.width + price)
