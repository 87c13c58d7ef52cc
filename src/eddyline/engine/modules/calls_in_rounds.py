"""The calls that rows need of functions that answer later, inner calls before outer ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.batch import Rows, as_array
from eddyline.engine.callers import Agenda, CallDone, Caller, CallKey, PlannedCall
from eddyline.engine.relation import Relation
from eddyline.engine.signature import ENTERING, Signature
from eddyline.expressions import Call, Expression, calls_in, evaluate
from eddyline.expressions.demand import demand
from eddyline.expressions.program import Positions, true_mask
from eddyline.expressions.vector import NO_ERRORS, Vector


class RowsCalled(NamedTuple):
    """Rows of one signature whose calls have all been made; ``cost`` is for the rows together.

    Each of several calls made side by side counts for its part of the time. ``verdicts`` are
    what the calls say about the rows, where that is remembered nowhere else.
    """

    signature: Signature
    rows: npt.NDArray[np.int64]
    cost: float
    verdicts: Vector | None = None


@dataclass(slots=True)
class _Open:
    """A row that waits for ``left`` calls of a round."""

    round: int
    left: int = 0
    cost: float = 0.0


class CallsInRounds:
    """Makes calls for rows, and puts what they return where the relation remembers calls.

    Then whatever needs them is evaluated as if they had been made at once. A call whose
    argument is another call belongs to a later round, and so does one that a row needs or not
    depending on another call. A row whose result is remembered is not called for again.
    """

    def __init__(
        self,
        calls: Sequence[Call],
        relation: Relation,
        by: Mapping[Call, Caller],
        expressions: Sequence[Expression] = (),
    ) -> None:
        """Take the calls and who makes each of them; all callers share one agenda.

        ``expressions`` are all that the calls are made for, and say for which rows; without them
        each is made for all.
        """
        self._relation = relation
        self._callers = dict(by)
        self._demands = {
            call: demanded
            for call in (calls if expressions else ())
            if (demanded := demand(call, expressions, self._callers.__contains__)) is not None
        }
        self._rounds = _rounds(calls, self._demands)
        self._number: int | None = None
        self._open: dict[CallKey, _Open] = {}
        self._ready: list[RowsCalled] = []

    @property
    def agenda(self) -> Agenda:
        """Where it says that calls are done."""
        return next(iter(self._callers.values())).agenda

    @property
    def width(self) -> int:
        """Calls of the slowest function that are made at a time."""
        return min(caller.width for caller in self._callers.values())

    def attend(self, number: int) -> None:
        """Make calls for the module of this number, once."""
        self._number = number
        for caller in self._callers.values():
            caller.attend(number)

    def begin(self, signature: Signature, rows: Rows) -> None:
        """Begin with the calls for rows that are not under way."""
        self._ask(0, signature, as_array(rows), 0.0)

    def collect(self) -> list[RowsCalled]:
        """Return the rows whose calls were all made by now."""
        further: dict[tuple[Signature, int], list[int]] = {}
        costs: dict[tuple[Signature, int], float] = {}
        for call, caller in self._callers.items():
            done = caller.collect()
            if not done:
                continue
            self._remember(call, done)
            for key, _, _, seconds, price in done:
                row = self._open[key]
                row.left -= 1
                row.cost += seconds / caller.width + price
                if not row.left:
                    del self._open[key]
                    group = key[0], row.round
                    further.setdefault(group, []).append(key[1])
                    costs[group] = costs.get(group, 0.0) + row.cost
        for (signature, number), rows in further.items():
            array = np.array(rows, dtype=np.int64)
            self._ask(number + 1, signature, array, costs[signature, number])
        ready, self._ready = self._ready, []
        return ready

    def all_now(self, rows: Rows) -> None:
        """Make the calls for rows, and wait for all of them: where there is nothing else to do."""
        if not len(rows):
            return
        self.begin(ENTERING, rows)
        left = len(rows)
        while left := left - sum(len(called.rows) for called in self.collect()):
            self.agenda.wait()

    def _ask(
        self, number: int, signature: Signature, rows: npt.NDArray[np.int64], cost: float
    ) -> None:
        """Ask for what rows need from a round on; ``cost`` is what they have cost so far."""
        share = cost / len(rows) if len(rows) else 0.0
        while number < len(self._rounds) and len(rows):
            waits = np.zeros(len(rows), dtype=np.int64)
            for call in self._rounds[number]:
                needing = self._needing(call, rows)
                waits[needing] += self._begun(call, signature, rows[needing])
            for row, left in zip(rows[waits > 0].tolist(), waits[waits > 0].tolist(), strict=True):
                self._open[signature, row] = _Open(number, left, share)
            rows = rows[waits == 0]
            number += 1
        if len(rows):
            self._ready.append(RowsCalled(signature, rows, share * len(rows)))
            if self._number is not None:
                self.agenda.tell(self._number)

    def _needing(self, call: Call, rows: npt.NDArray[np.int64]) -> Positions:
        """Return the positions of the rows that need a call, or may: their demand has failed."""
        demanded = self._demands.get(call)
        if demanded is None:
            return np.arange(len(rows))
        vector = evaluate(demanded, self._relation.scope(rows))
        needing = true_mask(vector.values)
        needing[list(vector.errors)] = True
        return np.flatnonzero(needing)

    def _begun(
        self, call: Call, signature: Signature, rows: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Begin with one call for rows; return a mask of those it was begun for."""
        begun = ~self._relation.knows(call, rows)
        missing = rows[begun]
        if not len(missing):
            return begun
        given, failed = arguments_of(call, self._relation, missing)
        if failed:  # a row without arguments is not called; its result is the argument's error
            at = sorted(failed)
            errors = {place: failed[position] for place, position in enumerate(at)}
            self._relation.remember(call, missing[at], Vector(pa.nulls(len(at), call.type), errors))
            begun[np.flatnonzero(begun)[at]] = False
        planned = [
            PlannedCall((signature, row), values)
            for position, (row, values) in enumerate(zip(missing.tolist(), given, strict=True))
            if position not in failed
        ]
        if planned:
            self._callers[call].submit(planned)
        return begun

    def _remember(self, call: Call, done: Sequence[CallDone]) -> None:
        rows = np.array([answer.key[1] for answer in done], dtype=np.int64)
        self._relation.remember(call, rows, _vector(call, done))
        totals = self._relation.totals(call)
        totals.calls += len(done)
        totals.seconds += sum(answer.seconds for answer in done)


def arguments_of(
    call: Call, relation: Relation, rows: Rows
) -> tuple[list[tuple[object, ...]], dict[int, Exception]]:
    """Return for each row what a call is given, and by position the errors of those without."""
    vectors = [evaluate(argument, relation.scope(rows)) for argument in call.arguments]
    failed: dict[int, Exception] = {}
    for vector in vectors:
        for position, error in vector.errors.items():
            failed.setdefault(position, error)
    columns = [_as_python(vector.values, failed) for vector in vectors]
    if not columns:
        return [()] * len(rows), failed
    return list(zip(*columns, strict=True)), failed


def _as_python(column: pa.Array, failed: dict[int, Exception]) -> list[object]:
    """Return Python values; a row whose value Python lacks (the year 10000) goes to ``failed``."""
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):
        values: list[object] = []
        for position, value in enumerate(column):
            try:
                values.append(value.as_py())
            except (ValueError, OverflowError) as error:
                values.append(None)
                failed.setdefault(position, error)
        return values


def _vector(call: Call, done: Sequence[CallDone]) -> Vector:
    """Return what calls have returned as a column of the call's type."""
    errors = {at: answer.error for at, answer in enumerate(done) if answer.error is not None}
    values = [None if answer.error is not None else answer.value for answer in done]
    try:
        return Vector(pa.array(values, call.type), errors or NO_ERRORS)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        parts = []
        for at, value in enumerate(values):
            try:
                parts.append(_of_one(value, call.type))
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                parts.append(pa.nulls(1, call.type))
                errors[at] = error
        return Vector(pa.concat_arrays(parts), errors)


def _of_one(value: object, kind: pa.DataType) -> pa.Array:
    if isinstance(value, pa.Scalar) and value.type == kind:
        return pa.repeat(value, 1)  # a NULL map makes no array by itself
    return pa.array([value], kind)


def _rounds(calls: Sequence[Call], demands: dict[Call, Expression]) -> list[list[Call]]:
    """Return calls such that each comes after those in its arguments, and in its demand.

    Of calls that decide whether the others are needed, one loses its demand. O(calls² x nodes of
    an expression).
    """
    rounds: list[list[Call]] = []
    left = dict.fromkeys(calls)
    while left:
        ready = [
            call
            for call in left
            if not any(
                inner in left
                for part in (*call.arguments, *([demands[call]] if call in demands else ()))
                for inner in calls_in(part)
            )
        ]
        if ready:
            rounds.append(ready)
            for call in ready:
                del left[call]
        else:
            del demands[next(call for call in left if call in demands)]
    return rounds
