"""A selection over functions that answer later: their calls run side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from eddyline.engine.batch import Rows, TupleBatch, as_array
from eddyline.engine.callers import Agenda, CallDone, Caller, PlannedCall
from eddyline.engine.modules.calls_in_rounds import RowsCalled, arguments_of
from eddyline.engine.modules.module import Answer, BoundedQueue
from eddyline.engine.modules.selection import Selection, SelectionStatistics
from eddyline.engine.relation import Relation
from eddyline.engine.signature import Signature
from eddyline.engine.statistics import Spent
from eddyline.expressions import Call
from eddyline.expressions.vector import NO_ERRORS, Vector


class PredicateCalls(Protocol):
    """Makes the calls that a predicate needs for rows."""

    @property
    def agenda(self) -> Agenda:
        """Where it says that calls are done."""
        ...

    @property
    def width(self) -> int:
        """Rows whose calls are made at a time."""
        ...

    def attend(self, number: int) -> None:
        """Make calls for the module of this number, once."""
        ...

    def begin(self, signature: Signature, rows: Rows) -> None:
        """Begin with the calls for rows that are not under way; return at once."""
        ...

    def collect(self) -> Sequence[RowsCalled]:
        """Return the rows whose calls were all made since the last time."""
        ...


class ConcurrentSelection:
    """A selection that is asked about a tuple once all calls that it needs have been made.

    The eddy goes on meanwhile. Adaptivity does not change answers: it is the selection that
    decides, over the same values.
    """

    calls_functions_in_vectors = False

    def __init__(self, selection: Selection, calls: PredicateCalls) -> None:
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
        """Room for as many tuples again as are called for at a time; offered more at half."""
        width = self._calls.width
        return BoundedQueue(2 * width, max(1, width // 2))

    def attend(self, number: int) -> None:
        """Take the number of the module in its eddy, for the agenda."""
        self._calls.attend(number)

    def statistics(self, spent: Spent) -> SelectionStatistics:
        """Return what the predicate did so far; ``seconds`` is what its eddy was told."""
        return self._selection.statistics(spent)

    def offer(self, batch: TupleBatch) -> None:
        """Take tuples, and begin with their calls."""
        rows = batch.rows[0]
        if rows is None:
            raise ValueError(f"{batch.signature} does not span the relation of {self.name}")
        self._calls.begin(batch.signature, rows)

    def collect(self) -> Sequence[Answer]:
        """Return what has become of the tuples whose calls have been made."""
        answers = []
        for signature, rows, cost, verdicts in self._calls.collect():
            batch = TupleBatch(signature, (rows,))
            results = (
                self._selection.process(batch)
                if verdicts is None
                else self._selection.decided(batch, verdicts)
            )
            answers.append(Answer(signature, len(rows), results, cost, batch))
        return answers


class CallAlone:
    """Makes the one call that a predicate is: what it returns is the verdict on its row.

    For a call that nothing else asks for, so that nothing of it is remembered.
    """

    def __init__(self, name: str, call: Call, relation: Relation, caller: Caller) -> None:
        """``name`` is the predicate's text, for the error where an answer is no verdict."""
        self._name = name
        self._call = call
        self._relation = relation
        self._caller = caller
        self._number: int | None = None
        self._totals = relation.totals(call)
        self._not_called: list[CallDone] = []

    @property
    def agenda(self) -> Agenda:
        """Where it says that calls are done."""
        return self._caller.agenda

    @property
    def width(self) -> int:
        """Calls that are made at a time."""
        return self._caller.width

    def attend(self, number: int) -> None:
        """Make calls for the module of this number, once."""
        self._caller.attend(number)
        self._number = number

    def begin(self, signature: Signature, rows: Rows) -> None:
        """Begin with the calls for rows; return at once."""
        given, failed = arguments_of(self._call, self._relation, rows)
        keys = [(signature, row) for row in as_array(rows).tolist()]
        calls = list(map(PlannedCall, keys, given))
        if failed:  # a row without arguments is not called; its result is the argument's error
            self._not_called += [
                CallDone(keys[at], None, error, 0.0) for at, error in failed.items()
            ]
            calls = [call for position, call in enumerate(calls) if position not in failed]
            if self._number is not None:
                self.agenda.tell(self._number)
        if calls:
            self._caller.submit(calls)

    def collect(self) -> Sequence[RowsCalled]:
        """Return the rows that were called for, all of a signature together."""
        by_signature: dict[Signature, list[CallDone]] = {}
        for done in (*self._not_called, *self._caller.collect()):
            by_signature.setdefault(done.key[0], []).append(done)
        self._not_called = []
        return [self._called(signature, calls) for signature, calls in by_signature.items()]

    def _called(self, signature: Signature, calls: Sequence[CallDone]) -> RowsCalled:
        values: list[object] = []
        errors: dict[int, Exception] = {}
        for position, done in enumerate(calls):
            value, error = done.value, done.error
            if isinstance(value, pa.Scalar):
                value = value.as_py()
            if error is None and not isinstance(value, bool | np.bool_ | None):
                who, what = self._name or "a predicate", type(value).__name__
                error = TypeError(f"{who} must answer with a bool or None, not {what}")
            if error is not None:
                errors[position] = error
                value = None
            values.append(value)
        seconds = sum(done.seconds for done in calls)
        self._totals.calls += len(calls)
        self._totals.seconds += seconds
        rows = np.array([done.key[1] for done in calls], dtype=np.int64)
        cost = seconds / self.width + sum(done.price for done in calls)
        verdicts = Vector(pa.array(values, pa.bool_()), errors or NO_ERRORS)
        return RowsCalled(signature, rows, cost, verdicts)
