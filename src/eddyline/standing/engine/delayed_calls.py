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

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from eddyline.engine.clock import Clock
from eddyline.expressions import Argument, Call, Expression
from eddyline.expressions.leaves import with_arguments
from eddyline.standing.engine.join_conditions import MOST_COLUMNS, conditions_in
from eddyline.standing.engine.selections import split
from eddyline.standing.engine.shared_query import SharedQuery

TRIAL: Final = 256
"""Rows that try the other way: a row may be joined to thousands."""

_ENOUGH: Final = 20
"""Rows that calls were made for, before it is believed what a row's calls cost."""

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
class _Cost:
    """What rows have taken: seconds, later ones counting more."""

    rows: float = 0.0
    seconds: float = 0.0

    def add(self, rows: int, seconds: float) -> None:
        if self.rows > _FORGET:
            self.rows, self.seconds = self.rows / 2, self.seconds / 2
        self.rows += rows
        self.seconds += seconds

    @property
    def of_row(self) -> float | None:
        return self.seconds / self.rows if self.rows else None


@dataclass(slots=True)
class _StreamCalls:
    """The choice for one stream: calls are delayed at first, as nothing is known of them."""

    late: bool = True
    costs: dict[bool, _Cost] = field(default_factory=lambda: {True: _Cost(), False: _Cost()})
    calls: _Cost = field(default_factory=_Cost)
    """What delayed calls have taken, by the rows that they were made for."""
    changes: list[int] = field(default_factory=lambda: [0])
    """Numbers of arrivals: rows from the first up to the next were late, then early, and so on."""
    until_trial: int = 1
    pause: int = 1

    def tries_other(self) -> bool:
        """Tell whether some rows are to try the other way."""
        if not self.late:
            self.until_trial -= 1
            return self.until_trial <= 0
        now, own = self.costs[True].of_row, self.calls.of_row
        cheap = now is not None and own is not None and own < now
        if not cheap or self.calls.rows < _ENOUGH:
            return False
        self.until_trial -= 1
        return self.until_trial <= 0

    def tried(self) -> None:
        """Choose by what is known now."""
        one, other = self.costs[self.late].of_row, self.costs[not self.late].of_row
        if one is not None and other is not None and other < _BETTER * one:
            self.late, self.pause = not self.late, 1
        else:
            self.pause = min(2 * self.pause, _LONGEST_PAUSE)
        self.until_trial = self.pause


class DelayedCalls:
    """The selections that may be asked of joined tuples instead of rows, and which rows are."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queries: dict[Expression, dict[int, set[int]]] = {}
        self._streams: dict[int, _StreamCalls] = {}
        self._now: dict[int, bool] = {}  # streams whose rows are pushed just now

    def added(
        self, queries: Mapping[int, SharedQuery], tables: Collection[int]
    ) -> dict[int, SharedQuery]:
        """Return queries that ask joined tuples, too, for what calls functions."""
        return {number: self._added(number, query, tables) for number, query in queries.items()}

    def _added(self, number: int, query: SharedQuery, tables: Collection[int]) -> SharedQuery:
        streams = query.shape.streams
        if not streams & (streams - 1):
            return query
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
        trial = arrivals[:0]
        if known.tries_other():
            trial = arrivals[:TRIAL]
            yield from self._taken(known, stream, trial, late=not known.late)
            known.tried()
        rest = arrivals[len(trial) :]
        if known.late and not known.costs[True].rows:
            yield from self._taken(known, stream, rest[:TRIAL], late=True)
            rest = rest[TRIAL:]
        yield from self._taken(known, stream, rest, late=known.late)

    def _taken(
        self, known: _StreamCalls, stream: int, rows: range, *, late: bool
    ) -> Iterator[range]:
        if not len(rows):
            return
        started = self._clock.now()
        yield from self._in_one_way(known, stream, rows, late=late)
        known.costs[late].add(len(rows), self._clock.now() - started)

    def _in_one_way(
        self, known: _StreamCalls, stream: int, rows: range, *, late: bool
    ) -> Iterator[range]:
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

    def took(self, stream: int, rows: int, seconds: float) -> None:
        """Take how long delayed calls for so many rows have taken."""
        self._streams[stream].calls.add(rows, seconds)

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
