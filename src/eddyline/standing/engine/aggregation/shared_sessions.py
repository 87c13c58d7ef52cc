"""Sessions that queries share: those that group alike, with gaps alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

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
    SessionStretches,
    SessionWindow,
    Times,
)

Numbers = npt.NDArray[np.int64]

AT_ONCE: Final = 1 << 21
"""Stretches, each for a kind of queries, that are looked at together: about 100 MB."""

_SESSION: Final = "session"


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
        rows = pa.concat_tables(self._parts.values(), promote_options="default")
        columns = [rows.column(key).combine_chunks() for key in self._keys]
        groups = numbers_of_tuples(columns, len(rows))
        stretches = SessionStretches(groups, _times(rows, START), _times(rows, END))
        before, after = _numbers(rows), _numbers(rows).copy()
        fragments = np.unique(before)
        kinds = _Kinds.of({n: self._fragments.queries(n) for n in fragments.tolist()})
        tables, sets = [], Fragments()
        for places in _that_may_close(stretches, until, kinds.sizes(before)):
            wanted = _wanted(stretches, places, before, kinds)
            closed = wanted.sessions.ends < until
            if closed.any():
                tables.append(self._closed_sessions(rows, wanted, closed, sets))
                self._leave(after, wanted, closed)
        if not tables:
            return None
        self._replace(after)
        return with_sets(pa.concat_tables(tables, promote_options="default"), sets)

    def due(self) -> int | None:
        """Return the watermark by which the next session may close; None where nothing is kept."""
        self._settle()
        until = self.closed - self.delay
        every = [_times(table, END) for table in self._parts.values()]
        ends = [int(own[own >= until].min()) for own in every if (own >= until).any()]
        return min(ends) + self.delay + 1 if ends else None

    def _closed_sessions(
        self,
        rows: pa.Table,
        wanted: _WantedStretches,
        closed: npt.NDArray[np.bool_],
        sets: Fragments,
    ) -> pa.Table:
        """Return a row for each session that has closed, with its group and kind of query.

        The kinds are numbered as ``sets`` of queries.
        """
        sessions = wanted.sessions
        own = closed[sessions.numbers]
        names = [START, END, *self._keys, FRAGMENT]
        parts = rows.drop_columns(names).take(pa.array(wanted.rows[wanted.by_kind[own]]))
        parts = parts.append_column(_SESSION, pa.array(sessions.numbers[own]))
        parts = put_together(parts, [_SESSION])
        numbers = parts.column(_SESSION).to_numpy()
        firsts = wanted.by_kind[sessions.firsts[numbers]]
        fragments = np.array([sets.number(queries) for queries in wanted.kinds.queries], np.int32)
        table = rows.select(names).take(pa.array(wanted.rows[firsts]))
        table = _between(table, sessions.starts[numbers], sessions.ends[numbers])
        table = renumbered(table, fragments[wanted.of_kinds[firsts]])
        for name in parts.column_names:
            if name != _SESSION:
                table = table.append_column(name, parts.column(name))
        return table

    def _leave(
        self,
        fragments: npt.NDArray[np.int32],
        wanted: _WantedStretches,
        closed: npt.NDArray[np.bool_],
    ) -> None:
        """Take queries whose sessions have closed from the sets of their stretches."""
        stays = np.empty(len(wanted.rows), np.bool_)
        stays[wanted.by_kind] = ~closed[wanted.sessions.numbers]
        firsts = np.append(np.flatnonzero(np.diff(wanted.rows, prepend=-1)), len(wanted.rows))
        staying = np.add.reduceat(stays, firsts[:-1], dtype=np.int64)
        changed = np.flatnonzero(staying < np.diff(firsts))
        fragments[wanted.rows[firsts[changed]]] = -1
        known: dict[bytes, int] = {}
        for place in changed[staying[changed] > 0].tolist():
            own = slice(firsts[place], firsts[place + 1])
            kinds = wanted.of_kinds[own][stays[own]]
            key = kinds.tobytes()
            if key not in known:
                queries = np.concatenate([wanted.kinds.queries[kind] for kind in kinds.tolist()])
                known[key] = self._fragments.number(np.sort(queries))
            fragments[wanted.rows[own.start]] = known[key]

    def _replace(self, fragments: npt.NDArray[np.int32]) -> None:
        """Have the stretches of all parts in other fragments, or in none."""
        sizes = [len(table) for table in self._parts.values()]
        changed = []
        bounds = pairwise(np.cumsum([0, *sizes]).tolist())
        for (begin, end), (number, table) in zip(bounds, list(self._parts.items()), strict=True):
            own = fragments[begin:end]
            if not np.array_equal(own, _numbers(table)):
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
        groups = numbers_of_tuples(columns, len(rows))
        stretches = SessionStretches(groups, _times(rows, START), _times(rows, END))
        sessions = stretches.sessions(np.arange(len(rows)), stretches.groups)
        if len(sessions.starts) == len(rows):
            return rows.combine_chunks()
        rows = rows.take(pa.array(stretches.order))
        numbers = sessions.numbers
        rows = _between(rows, sessions.starts[numbers], sessions.ends[numbers])
        return put_together(rows, [START, END, *self._keys, FRAGMENT])


class _Kinds(NamedTuple):
    """Queries by which of some fragments they are in: all of a kind are in the same ones."""

    queries: Sequence[npt.NDArray[np.int32]]
    """By kind, ascending."""
    of_fragments: Mapping[int, Numbers]
    """The kinds whose queries each fragment has, ascending."""

    @classmethod
    def of(cls, fragments: Mapping[int, npt.NDArray[np.int32]]) -> _Kinds:
        """Return the kinds of queries in some fragments, in time with the sum of their sizes."""
        queries = np.concatenate(list(fragments.values()))
        numbers = np.repeat(list(fragments), list(map(len, fragments.values())))
        order = np.lexsort((numbers, queries))
        distinct, firsts = np.unique(queries[order], return_index=True)
        by_set: dict[tuple[int, ...], list[int]] = {}
        split = np.split(numbers[order], firsts[1:])
        for query, own in zip(distinct.tolist(), split, strict=True):
            by_set.setdefault(tuple(own.tolist()), []).append(query)
        of_fragments: dict[int, list[int]] = {number: [] for number in fragments}
        for kind, members in enumerate(by_set):
            for fragment in members:
                of_fragments[fragment].append(kind)
        return cls(
            [np.array(members, np.int32) for members in by_set.values()],
            {number: np.array(kinds, np.int64) for number, kinds in of_fragments.items()},
        )

    def sizes(self, fragments: npt.NDArray[np.int32]) -> Numbers:
        """Return how many kinds of queries want rows of each of these fragments."""
        known = np.zeros(int(fragments.max(initial=-1)) + 1, np.int64)
        for number, kinds in self.of_fragments.items():
            known[number] = len(kinds)
        sizes: Numbers = known[fragments]
        return sizes


class _WantedStretches(NamedTuple):
    """Rows of stretches, each once for each kind of queries that wants it, and their sessions.

    ``by_kind`` has the order in which ``sessions`` are of them: a session is of one kind of query.
    """

    rows: Numbers
    of_kinds: Numbers
    by_kind: Numbers
    sessions: Sessions
    kinds: _Kinds


def _that_may_close(stretches: SessionStretches, until: int, sizes: Numbers) -> Iterator[Numbers]:
    """Yield the stretches whose sessions may have ended, by their places in order.

    No session goes beyond what all stretches of its group make together: what is yielded together
    has all of these, and is about :data:`AT_ONCE` by ``sizes``.
    """
    widest = stretches.sessions(np.arange(len(stretches.order)), stretches.groups)
    some = np.zeros(len(widest.starts), np.bool_)
    some[widest.numbers[stretches.ends < until]] = True
    places = np.flatnonzero(some[widest.numbers])
    before = np.cumsum(sizes[stretches.order[places]]) // AT_ONCE
    begins = np.flatnonzero(np.diff(widest.numbers[places], prepend=-1))
    cuts = begins[np.flatnonzero(np.diff(before[begins], prepend=0))]
    yield from np.split(places, cuts[cuts > 0])


def _wanted(
    stretches: SessionStretches, places: Numbers, fragments: npt.NDArray[np.int32], kinds: _Kinds
) -> _WantedStretches:
    """Return some stretches by kind of query, and the sessions of these."""
    own = fragments[stretches.order[places]].tolist()
    by_place = [kinds.of_fragments[number] for number in own]
    chosen = np.repeat(places, list(map(len, by_place)))
    of_kinds = np.concatenate(by_place)
    by_kind = np.argsort(of_kinds, kind="stable")  # and in a kind in the order of stretches
    groups = stretches.groups[chosen[by_kind]]
    together = of_kinds[by_kind] * (int(groups.max()) + 1) + groups
    sessions = stretches.sessions(chosen[by_kind], together)
    return _WantedStretches(stretches.order[chosen], of_kinds, by_kind, sessions, kinds)


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
