"""Sessions that queries share: those that group alike, with gaps alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.standing.engine.aggregation.aggregate_parts import END, START, AggregateParts
from eddyline.standing.engine.aggregation.alike_values import numbers_of_tuples
from eddyline.standing.engine.aggregation.fragments import (
    FRAGMENT,
    Fragments,
    renumbered,
    with_sets,
)
from eddyline.standing.engine.aggregation.merged_parts import put_together
from eddyline.standing.engine.aggregation.time_window import (
    Sessions,
    SessionWindow,
    Times,
    sessions_of,
)

Numbers = npt.NDArray[np.int64]


class SharedSessions(AggregateParts):
    """Aggregates of the rows of some queries, in stretches of their sessions, until these close.

    A stretch is of one group and one fragment: it begins with a row and ends ``gap`` after its
    last one; those that overlap or meet are one. A query's sessions are what the stretches of all
    its fragments make, again where they overlap or meet. So queries that want different rows have
    sessions of their own, and share the stretches of rows that they all want.

    A session closes when the watermark has passed its end and ``delay`` microseconds more: not
    when it has reached it, as a row at the very end belongs to the session. Then its query goes
    from the sets of its stretches. A stretch that nobody wants any more goes; one that has ended
    stays while it is part of a session of some query that has not. A row is late when a session of
    itself alone would have closed.

    What is kept is a row for each stretch. Closing takes time with these, and with the stretches
    that may close times the kinds of queries that want them, where a kind are those that want the
    same ones.
    """

    def __init__(self, window: SessionWindow, keys: int, delay: int = 0) -> None:
        super().__init__(keys, delay)
        self.window = window

    def close(self, watermark: int) -> pa.Table | None:
        """Close the sessions that a watermark has passed: see :meth:`AggregateParts.close`."""
        self._settle()
        if watermark <= self.closed:
            return None
        self.closed = watermark
        until = watermark - self.delay
        if not any((_times(table, END) < until).any() for table in self._parts.values()):
            return None
        stretches = pa.concat_tables(self._parts.values(), promote_options="default")
        wanted = self._that_may_close(stretches, until)
        closed = wanted.sessions.ends < until
        if not closed.any():
            return None
        table = self._closed_sessions(stretches, wanted, closed)
        self._leave(stretches, wanted, closed)
        return table

    def due(self) -> int | None:
        """Return the watermark by which the next session may close; None where nothing is kept."""
        self._settle()
        until = self.closed - self.delay
        every = [_times(table, END) for table in self._parts.values()]
        ends = [int(own[own >= until].min()) for own in every if (own >= until).any()]
        return min(ends) + self.delay + 1 if ends else None

    def _that_may_close(self, stretches: pa.Table, until: int) -> _Wanted:
        """Return the sessions by kind of query that have a stretch which has ended."""
        groups = numbers_of_tuples(
            [stretches.column(key).combine_chunks() for key in self._keys], len(stretches)
        )
        starts, ends = _times(stretches, START), _times(stretches, END)
        # No session goes beyond what all stretches of its group make together.
        widest = sessions_of(groups, starts, ends)
        some = np.zeros(len(stretches), np.bool_)
        some[widest.numbers[ends < until]] = True
        places = np.flatnonzero(some[widest.numbers])
        used, own = np.unique(_numbers(stretches)[places], return_inverse=True)
        kinds = _Kinds.of([self._fragments.queries(int(number)) for number in used])
        sizes = np.array([len(each) for each in kinds.of_fragments])[own]
        stretch = np.repeat(places, sizes)
        kind = np.concatenate([kinds.of_fragments[number] for number in own.tolist()])
        together = groups[stretch] * len(kinds.queries) + kind
        sessions = sessions_of(together, starts[stretch], ends[stretch])
        return _Wanted(stretch, kind, sessions, kinds)

    def _closed_sessions(
        self, stretches: pa.Table, wanted: _Wanted, closed: npt.NDArray[np.bool_]
    ) -> pa.Table:
        """Return a row for each session that has closed, its group and kind of query."""
        kinds = Fragments()
        numbers = np.array([kinds.number(queries) for queries in wanted.kinds.queries], np.int32)
        rows = stretches.take(pa.array(wanted.stretches[closed]))
        rows = renumbered(rows, numbers[wanted.of_kinds[closed]])
        starts, ends = wanted.sessions.starts[closed], wanted.sessions.ends[closed]
        rows = _between(rows, starts, ends)
        return with_sets(put_together(rows, [START, END, *self._keys, FRAGMENT]), kinds)

    def _leave(self, stretches: pa.Table, wanted: _Wanted, closed: npt.NDArray[np.bool_]) -> None:
        """Take queries whose sessions have closed from the sets of their stretches."""
        before = _numbers(stretches)
        after = before.copy()
        after[wanted.stretches[closed]] = -1
        left: dict[int, list[int]] = {}
        some = ~closed & (after[wanted.stretches] < 0)
        pairs = zip(wanted.stretches[some].tolist(), wanted.of_kinds[some].tolist(), strict=True)
        for stretch, kind in pairs:
            left.setdefault(stretch, []).append(kind)
        known: dict[tuple[int, ...], int] = {}
        for stretch, of_stretch in left.items():
            key = tuple(of_stretch)
            if key not in known:
                queries = np.concatenate([wanted.kinds.queries[kind] for kind in of_stretch])
                known[key] = self._fragments.number(np.sort(queries))
            after[stretch] = known[key]
        first, changed = 0, []
        for number, table in list(self._parts.items()):
            own = after[first : first + len(table)]
            first += len(table)
            if not np.array_equal(own, before[first - len(table) : first]):
                self._drop(number)
                changed.append(renumbered(table, own).filter(pa.array(own >= 0)))
        self._keep(self._together(pa.concat_tables(changed, promote_options="default")))

    def _is_late(self, times: Times) -> npt.NDArray[np.bool_]:
        late: npt.NDArray[np.bool_] = times + self.window.gap + self.delay < self.closed
        return late

    def _stretches(self, times: Times) -> dict[str, pa.Array]:
        return {START: pa.array(times), END: pa.array(times + self.window.gap)}

    def _together(self, rows: pa.Table) -> pa.Table:
        columns = [rows.column(name).combine_chunks() for name in (*self._keys, FRAGMENT)]
        numbers = numbers_of_tuples(columns, len(rows))
        sessions = sessions_of(numbers, _times(rows, START), _times(rows, END))
        rows = _between(rows, sessions.starts, sessions.ends)
        return put_together(rows, [START, END, *self._keys, FRAGMENT])


class _Kinds(NamedTuple):
    """Queries by which of some fragments they are in: all of a kind are in the same ones."""

    queries: Sequence[npt.NDArray[np.int32]]
    """By kind, ascending."""
    of_fragments: Sequence[Numbers]
    """The kinds whose queries each fragment has."""

    @classmethod
    def of(cls, fragments: Sequence[npt.NDArray[np.int32]]) -> _Kinds:
        """Return the kinds of queries in some fragments, in time with the sum of their sizes."""
        queries = np.concatenate(fragments)
        numbers = np.repeat(np.arange(len(fragments)), list(map(len, fragments)))
        order = np.lexsort((numbers, queries))
        distinct, firsts = np.unique(queries[order], return_index=True)
        by_set: dict[bytes, list[int]] = {}
        for query, own in zip(distinct.tolist(), np.split(numbers[order], firsts[1:]), strict=True):
            by_set.setdefault(own.tobytes(), []).append(query)
        of_fragments: list[list[int]] = [[] for _ in fragments]
        for kind, members in enumerate(by_set):
            for fragment in np.frombuffer(members, numbers.dtype).tolist():
                of_fragments[fragment].append(kind)
        return cls(
            [np.array(members, np.int32) for members in by_set.values()],
            [np.array(kinds, np.int64) for kinds in of_fragments],
        )


class _Wanted(NamedTuple):
    """Stretches with a kind of queries that wants each, and the session of such a query.

    A stretch is there once for each such kind.
    """

    stretches: Numbers
    of_kinds: Numbers
    sessions: Sessions
    kinds: _Kinds


def _times(table: pa.Table, name: str) -> Times:
    times: Times = table.column(name).to_numpy()
    return times


def _numbers(table: pa.Table) -> npt.NDArray[np.int32]:
    numbers: npt.NDArray[np.int32] = table.column(FRAGMENT).to_numpy()
    return numbers


def _between(rows: pa.Table, starts: Times, ends: Times) -> pa.Table:
    """Return rows with other starts and ends."""
    for name, times in ((START, starts), (END, ends)):
        rows = rows.set_column(rows.schema.get_field_index(name), name, pa.array(times))
    return rows
