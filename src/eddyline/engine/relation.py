"""A relation inside an eddy: its rows, and the user functions that are called on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.batch import Rows, pick
from eddyline.engine.callers import answers_later, later_calls
from eddyline.engine.clock import Clock
from eddyline.engine.storage.call_memo import CallMemo
from eddyline.engine.storage.indexed_store import IndexedStore
from eddyline.errors import FunctionAnswerError
from eddyline.expressions import Call, Expression, evaluate
from eddyline.expressions.vector import Function, Scope, Vector


@dataclass(frozen=True, slots=True)
class CallStatistics:
    """How often a call was made, and what that took; ``possible`` is once for every row."""

    call: Call
    calls: int
    possible: int
    seconds: float


@dataclass(slots=True)
class CallTotals:
    """The running totals behind :class:`CallStatistics`."""

    calls: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class RelationState:
    """The rows of a relation, and what is remembered of calls on them.

    Plain data: it can be copied and pickled.
    """

    store: IndexedStore = field(default_factory=IndexedStore)
    memos: dict[Call, CallMemo] = field(default_factory=dict)
    """Of calls that were made and may be asked for again."""


class Relation:
    """Rows, and the results of calls on them.

    At most one call per row and distinct (function, arguments): a call that
    occurs in several places is remembered for as long as its rows are here; one
    that occurs once cannot be asked for twice and is not remembered, unless a
    function that works on whole vectors may fail, which makes its rows be tried
    again.
    """

    def __init__(
        self,
        functions: Sequence[Function],
        uses: Iterable[Expression],
        clock: Clock,
        state: RelationState | None = None,
    ) -> None:
        """Make a relation; ``uses`` are all expressions that it will be asked for.

        ``state``: its rows and what is known of them; by default it has none yet.
        """
        self._functions = tuple(functions)
        self._clock = clock
        state = RelationState() if state is None else state
        self._store = state.store
        self._memos = state.memos
        occurrences: Counter[Call] = Counter()
        for expression in uses:
            occurrences.update(node for node in expression.walk() if isinstance(node, Call))
        self.calls = tuple(occurrences)
        self._elsewhere = set(later_calls(self._functions, self.calls))
        tried_again = any(function.vectorized for function in self._functions)
        self._remembered = {call for call, count in occurrences.items() if count > 1 or tried_again}
        if self._elsewhere:
            # What decides beforehand which rows these are made for is asked again afterwards.
            self._remembered.update(call for call in self.calls if call not in self._elsewhere)
        self._totals = {call: CallTotals() for call in self.calls}

    @property
    def store(self) -> IndexedStore:
        """The rows, with what is derived from them."""
        return self._store

    def load(self, columns: Sequence[pa.Array], rows: int) -> range:
        """Replace the rows by new ones and return their numbers."""
        self.evict()
        return self.append(columns, rows)

    def append(self, columns: Sequence[pa.Array], rows: int) -> range:
        """Add rows to those that are here and return their numbers."""
        return self._store.append(columns, rows)

    def evict(self) -> None:
        """Forget all rows and what was computed for them."""
        self._store.evict_before(self._store.stop)
        self._memos.clear()

    def scope(self, rows: Rows) -> RowScope:
        """Return the place where expressions find the values of these rows."""
        return RowScope(self, rows)

    def renew(self, functions: Sequence[Function], clock: Clock) -> None:
        """Go on with other functions, which do the same, and another clock."""
        self._functions = tuple(functions)
        self._clock = clock

    def is_vectorized(self, expression: Expression) -> bool:
        """Tell whether an expression calls a function that sees whole vectors."""
        return any(
            self._functions[node.function].vectorized
            for node in expression.walk()
            if isinstance(node, Call)
        )

    def statistics(self) -> tuple[CallStatistics, ...]:
        """Return what each call did so far."""
        return tuple(
            CallStatistics(call, totals.calls, self._store.stop, totals.seconds)
            for call, totals in self._totals.items()
        )

    def forget_collective_failures(self, expression: Expression, rows: Rows) -> None:
        """Let rows whose calls failed only together with other rows be tried again."""
        places = self._store.offsets(rows)
        if isinstance(places, slice):
            places = np.arange(places.start, places.stop)
        for node in expression.walk():
            if isinstance(node, Call) and node in self._memos:
                self._memos[node].forget_collective_failures(places)

    def column(self, index: int, rows: Rows) -> pa.Array:
        """Return a column's values at the given rows."""
        return self._store.take(index, rows)

    def results(self, call: Call, scope: RowScope) -> Vector:
        """Return a call's results for the rows of a scope; each row is computed at most once."""
        if call in self._elsewhere:
            if not len(scope):
                return Vector(pa.nulls(0, call.type))
        elif call not in self._remembered:
            return self.compute(call, scope)
        memo = self._memo(call)

        def compute(positions: npt.NDArray[np.int64] | None) -> Vector:
            return self.compute(call, scope if positions is None else scope.narrow(positions))

        return memo.get(self._store.offsets(scope.rows), compute)

    def compute(self, call: Call, scope: Scope) -> Vector:
        """Make a call for all rows of a scope, whatever is remembered.

        FunctionAnswerError where the function returns another number of values.
        """
        return called(call, scope, lambda columns, rows: self._call(call, columns, rows))

    def is_remembered(self, call: Call) -> bool:
        """Tell whether the results of a call may be asked for again."""
        return call in self._remembered

    def knows(self, call: Call, rows: Rows) -> npt.NDArray[np.bool_]:
        """Return for which rows the result of a call is remembered."""
        return self._memo(call).known(self._store.offsets(rows))

    def remember(self, call: Call, rows: npt.NDArray[np.int64], results: Vector) -> None:
        """Take the results of a call, made elsewhere, for rows without one."""
        self._memo(call).put(self._store.offsets(rows), results)

    def _memo(self, call: Call) -> CallMemo:
        memo = self._memos.get(call)
        if memo is None:
            memo = self._memos[call] = CallMemo(self._store)
        return memo

    def totals(self, call: Call) -> CallTotals:
        """Return where calls are counted; the caller adds those made elsewhere."""
        return self._totals[call]

    def _call(self, call: Call, columns: Sequence[pa.Array], rows: int) -> Vector:
        started = self._clock.now()
        result = self._functions[call.function](columns, rows)
        require_answers(call, result, rows)
        totals = self._totals[call]
        totals.seconds += self._clock.now() - started
        totals.calls += rows
        return result


def called(
    call: Call, scope: Scope, function: Callable[[Sequence[pa.Array], int], Vector]
) -> Vector:
    """Return what a function gives for the arguments of a call, for all rows of a scope.

    Rows whose arguments have failed are not called; their result is the argument's error.
    """
    arguments = [evaluate(argument, scope) for argument in call.arguments]
    failed: dict[int, Exception] = {}
    for argument in arguments:
        for position, error in argument.errors.items():
            failed.setdefault(position, error)
    rows = len(scope)
    if not failed:
        return function([argument.values for argument in arguments], rows)
    good = np.setdiff1d(np.arange(rows), np.fromiter(failed, dtype=np.int64))
    taken = pa.array(good)
    fresh = function([a.values.take(taken) for a in arguments], len(good))
    for position, error in fresh.errors.items():
        failed[int(good[position])] = error
    where = np.full(rows, -1, dtype=np.int64)
    where[good] = np.arange(len(good))
    return Vector(fresh.values.take(pa.array(where, mask=where < 0)), failed)


def require_answers(call: Call, result: Vector, rows: int) -> None:
    """Raise FunctionAnswerError where a function has returned another number of values."""
    if len(result) != rows:
        raise FunctionAnswerError(
            f"function {call.function} has returned {len(result)} values for {rows} rows"
        )


class RowScope:
    """The values of one relation's columns and calls for some of its rows."""

    __slots__ = ("_columns", "_relation", "rows")

    def __init__(self, relation: Relation, rows: Rows) -> None:
        self._relation = relation
        self._columns: dict[int, pa.Array] = {}
        self.rows = rows

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    def argument(self, index: int) -> pa.Array:
        """Return a column's values."""
        column = self._columns.get(index)
        if column is None:
            column = self._columns[index] = self._relation.column(index, self.rows)
        return column

    def call(self, call: Call) -> Vector:
        """Return a call's results."""
        return self._relation.results(call, self)

    def narrow(self, positions: npt.NDArray[np.int64]) -> RowScope:
        """Return the scope of the rows at ``positions``."""
        return RowScope(self._relation, pick(self.rows, positions))


def require_functions(functions: Sequence[Function], uses: Iterable[Expression]) -> None:
    """Raise ValueError where a call names none of the functions."""
    for expression in uses:
        for node in expression.walk():
            if isinstance(node, Call) and not 0 <= node.function < len(functions):
                raise ValueError(
                    f"{node} calls function {node.function}, and there are {len(functions)}"
                )


def require_answers_at_once(functions: Sequence[Function]) -> None:
    """Raise ValueError where functions of a join answer later."""
    if later := [n for n, function in enumerate(functions) if answers_later(function)]:
        raise ValueError(f"functions {later} answer later, which those of a join cannot")


def require_lengths(columns: Sequence[pa.Array], rows: int) -> None:
    """Raise ValueError unless columns have so many rows each, which may be none."""
    if rows < 0 or any(len(column) != rows for column in columns):
        raise ValueError(f"{rows} rows cannot have columns of lengths {list(map(len, columns))}")
