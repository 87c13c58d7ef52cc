"""When selections that call functions are asked: before rows are stored, or of joined tuples.

"Adaptivity in CACQ allowed for efficient join ordering as well as delayed execution of expensive
filters at the cost of zombies. In contrast, with CAR joins are ordered efficiently without zombies
at the cost of early evaluation of expensive filters. [...] An interesting question is if it is
possible to make this choice adaptively" (Krishnamurthy et al., 2004, Section 6.3). Here it is made
stream by stream, by what a row has cost either way. A row whose calls are delayed is stored for all
queries that may want it; each tuple that it is joined to is asked before it is made, so results are
the same ones, each once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.clock import Clock
from eddyline.expressions import Argument, Call, Expression
from eddyline.expressions.leaves import with_arguments
from eddyline.expressions.vector import Function, Vector
from eddyline.standing.engine.join_conditions import MOST_COLUMNS, conditions_in
from eddyline.standing.engine.selections import split
from eddyline.standing.engine.shared_query import SharedQuery

TRIAL: Final = 256
"""Rows whose calls are delayed to find out what that costs: a row may be joined to thousands."""

_WARMING_UP: Final = 16
"""Rows before the first trial."""

_ENOUGH: Final = 16
"""Calls before it is believed what one costs."""

_BETTER: Final = 0.9
"""The part of what a row costs now that it may cost the other way for that to be chosen."""

_LONGEST_PAUSE: Final = 64
"""Pushes between two trials, at the most; from trial to trial twice as many."""

_FORGET: Final = 1 << 16
"""Rows after which older ones count for half."""


def calling(expression: Expression) -> bool:
    """Tell whether an expression calls a function."""
    return any(isinstance(node, Call) for node in expression.walk())


@dataclass(slots=True)
class Cost:
    """Seconds that so many things have taken, later ones counting more."""

    number: float = 0.0
    seconds: float = 0.0

    def add(self, number: int, seconds: float) -> None:
        """Take further ones."""
        if self.number > _FORGET:
            self.number, self.seconds = self.number / 2, self.seconds / 2
        self.number += number
        self.seconds += seconds

    @property
    def of_one(self) -> float:
        """What one takes; 0 where there was none."""
        return self.seconds / self.number if self.number else 0.0


class MeteredFunction:
    """A function, and what its calls take."""

    def __init__(self, function: Function, clock: Clock) -> None:
        self._function = function
        self._clock = clock
        self.cost = Cost()

    @property
    def vectorized(self) -> bool:
        """Whether the user's code sees whole vectors."""
        return self._function.vectorized

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        """Call it."""
        started = self._clock.now()
        vector = self._function(columns, rows)
        self.cost.add(rows, self._clock.now() - started)
        return vector


@dataclass(slots=True)
class _StreamCalls:
    """The choice for one stream: calls are delayed at first, as nothing is known of them.

    ``rows``, ``seconds`` and ``failed`` are of delayed calls: for how many rows, what they took,
    and how many tuples were made for nothing but to fail.
    """

    late: bool = True
    rows: float = 0.0
    seconds: float = 0.0
    failed: float = 0.0
    changes: list[int] = field(default_factory=lambda: [0])
    """Numbers of arrivals: rows from the first up to the next were late, then early, and so on."""
    until_trial: int = 1
    pause: int = 1

    def delayed(self, rows: int) -> None:
        """Take that so many rows were stored without calls."""
        if self.rows > _FORGET:
            self.rows, self.seconds = self.rows / 2, self.seconds / 2
            self.failed /= 2
        self.rows += rows

    def choose(self, call: Cost, tuple_: Cost) -> None:
        """Choose by what a call takes, and a tuple that is made."""
        if not self.rows or call.number < _ENOUGH:
            return
        early, late = call.of_one, (self.seconds + self.failed * tuple_.of_one) / self.rows
        now, other = (late, early) if self.late else (early, late)
        if other < _BETTER * now:
            self.late = not self.late
            self.until_trial = self.pause = 1
            self.forget()

    def forget(self) -> None:
        """Forget what delayed calls have cost.

        When the choice changes: had the machine stalled for a tenth of a second once, or compiled
        something, two trials of 256 rows would not outweigh it.
        """
        self.rows = self.seconds = self.failed = 0.0

    def tries(self) -> bool:
        """Tell whether some rows of a push are to be delayed, though it does not seem to pay."""
        self.until_trial -= 1
        if self.until_trial > 0:
            return False
        self.pause = min(2 * self.pause, _LONGEST_PAUSE)
        self.until_trial = self.pause
        return True


class DelayedCalls:
    """The selections that may be asked of joined tuples instead of rows, and which rows are."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._functions: list[MeteredFunction] = []
        self._tuples = Cost()
        self._queries: dict[Expression, dict[int, set[int]]] = {}
        self._streams: dict[int, _StreamCalls] = {}
        self._now: dict[int, bool] = {}  # streams whose rows are pushed just now

    def metered(self, functions: Sequence[Function]) -> list[MeteredFunction]:
        """Return further functions with what measures them, in the order of their numbers."""
        metered = [MeteredFunction(function, self._clock) for function in functions]
        self._functions += metered
        return metered

    def added(
        self, queries: Mapping[int, SharedQuery], tables: Collection[int]
    ) -> dict[int, SharedQuery]:
        """Return queries that ask joined tuples, too, for what calls functions."""
        return {number: self._added(number, query, tables) for number, query in queries.items()}

    def _added(self, number: int, query: SharedQuery, tables: Collection[int]) -> SharedQuery:
        streams = query.shape.streams
        if not streams & (streams - 1) or query.absence is not None:
            return query  # what waits is stored for the queries that want it, and for no other
        conditions = []
        for stream, selection in query.selections.items():
            if stream in tables:
                continue
            for expression in filter(calling, split(selection).rest):
                self._queries.setdefault(expression, {}).setdefault(stream, set()).add(number)
                self._streams.setdefault(stream, _StreamCalls())
                conditions += [
                    condition._replace(delayed=True)
                    for condition in conditions_in([_on_stream(expression, stream)])
                ]
        if not conditions:
            return query
        return SharedQuery(
            query.selections, query.edges, query.bounds, (*query.conditions, *conditions)
        )

    def remove(self, queries: Collection[int]) -> None:
        """Forget queries."""
        for expression, by_stream in list(self._queries.items()):
            for stream, asking in list(by_stream.items()):
                asking.difference_update(queries)
                if not asking:
                    del by_stream[stream]
            if not by_stream:
                del self._queries[expression]

    def is_late(self, stream: int, expression: Expression, asking: Collection[int]) -> bool:
        """Tell whether rows that are pushed now are stored without asking for an expression.

        ``asking`` are the queries that do ask.
        """
        if not self._now.get(stream, False):
            return False
        return self._queries.get(expression, {}).get(stream, set()).issuperset(asking)

    def parts(self, stream: int, arrivals: range, *, only_stored: bool = False) -> Iterator[range]:
        """Yield the rows of a push, by arrival, in parts that are taken in one way each.

        Rows that are ``only_stored``, as they were here before, tell nothing of costs.
        """
        known = self._streams.get(stream)
        if known is None or not len(arrivals):
            yield arrivals
            return
        if only_stored:
            yield from self._in_one_way(known, stream, arrivals, late=True)
            return
        known.choose(self._call(stream), self._tuples)
        if not known.rows or (not known.late and known.tries()):
            if not arrivals.start:  # the very first, which may have to compile: they tell nothing
                yield from self._delayed(known, stream, arrivals[:_WARMING_UP])
                arrivals = arrivals[_WARMING_UP:]
                known.forget()
            yield from self._delayed(known, stream, arrivals[:TRIAL])
            known.choose(self._call(stream), self._tuples)
            arrivals = arrivals[TRIAL:]
        if known.late:
            yield from self._delayed(known, stream, arrivals)
        else:
            yield from self._in_one_way(known, stream, arrivals, late=False)

    def _delayed(self, known: _StreamCalls, stream: int, rows: range) -> Iterator[range]:
        known.delayed(len(rows))
        yield from self._in_one_way(known, stream, rows, late=True)

    def _call(self, stream: int) -> Cost:
        """Return what the functions take together that a stream's selections call."""
        numbers = {
            node.function
            for expression, by_stream in self._queries.items()
            if stream in by_stream
            for node in expression.walk()
            if isinstance(node, Call)
        }
        costs = [self._functions[number].cost for number in numbers]
        together = Cost(min((cost.number for cost in costs), default=0.0))
        together.seconds = together.number * sum(cost.of_one for cost in costs)
        return together

    def _in_one_way(
        self, known: _StreamCalls, stream: int, rows: range, *, late: bool
    ) -> Iterator[range]:
        if not len(rows):
            return
        if late is not bool(len(known.changes) % 2):
            known.changes.append(rows.start)
        self._now[stream] = late
        try:
            yield rows
        finally:
            self._now[stream] = False

    def undecided(self, stream: int, arrivals: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Tell which rows were stored without asking for what calls functions."""
        known = self._streams.get(stream)
        if known is None:
            return np.zeros(len(arrivals), np.bool_)
        late: npt.NDArray[np.bool_] = (
            np.searchsorted(known.changes, arrivals, side="right") % 2
        ).astype(np.bool_)
        return late

    def took(self, stream: int, seconds: float, failed: int) -> None:
        """Take how long delayed calls have taken, and how many tuples have failed by them."""
        known = self._streams[stream]
        known.seconds += seconds
        known.failed += failed

    def made(self, tuples: int, seconds: float) -> None:
        """Take how long it has taken to make so many joined tuples."""
        self._tuples.add(tuples, seconds)

    def forget_before(self, stream: int, arrival: int) -> None:
        """Forget which way rows were taken that are gone."""
        known = self._streams.get(stream)
        if known is not None:
            gone = int(np.searchsorted(known.changes, arrival, side="right")) - 1
            del known.changes[: max(gone, 0) // 2 * 2]


def _on_stream(expression: Expression, stream: int) -> Expression:
    """Return an expression over a stream's columns with arguments numbered as in conditions."""

    def numbered(argument: Argument) -> Expression:
        return Argument(stream * MOST_COLUMNS + argument.index, argument.type)

    return with_arguments(expression, numbered)
