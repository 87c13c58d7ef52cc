"""Windows of joins: how far apart two events may be, query by query."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.batch import TupleBatch, as_array
from eddyline.expressions import Argument, Expression
from eddyline.standing.engine.grouped_filter import GroupedFilter
from eddyline.standing.engine.key_space import NULL_WORD
from eddyline.standing.engine.lineage import Lineages, LineageSets
from eddyline.standing.engine.ranges import Box, Range
from eddyline.standing.engine.shared_query import NEVER, Absence, SharedQuery, TimeBound
from eddyline.standing.engine.stems import StreamRows

_DIFFERENCE = Argument(0, pa.int64())


class Windows:
    """The time bounds of all queries, as a grouped filter for each pair of streams.

    A window is part of the join: a probe asks for it before it makes a tuple. Queries with
    the same windows cost no more than one.
    """

    def __init__(self, static: Collection[int] = ()) -> None:
        """Rows of ``static`` streams come before all others."""
        self._static = frozenset(static)
        self._queries: dict[int, _Bounded] = {}
        self._widest: dict[int, int] | None = None
        self._filters: dict[tuple[int, int], GroupedFilter] = {}

    def add(self, queries: Mapping[int, SharedQuery]) -> None:
        """Take the windows of further queries."""
        known: dict[tuple[int, ...], _Bounded] = {}  # by identity: those of a template share it
        for number, query in queries.items():
            key = id(query.bounds), id(query.absence), *query.selections
            bounded = known.get(key)
            if bounded is None:
                streams = frozenset(query.selections)
                bounded = _Bounded(tuple(query.bounds), streams, _waiting(query.absence))
                known[key] = bounded
            self._queries[number] = bounded
        self._changed()

    def remove(self, queries: Collection[int]) -> None:
        """Forget the windows of queries."""
        for number in queries:
            del self._queries[number]
        self._changed()

    def widest(self, stream: int) -> int:
        """Return for how long after its own time a row of a stream may be wanted, at the most.

        In microseconds; :data:`~eddyline.standing.engine.shared_query.NEVER` where some query has
        no bound. A row at time t is wanted by rows of other streams up to t plus that, be it by way
        of third ones: where a comes at most 10 s after b, and b at most 10 s after c, a may come
        20 s after c. Where a query waits for an absence, until that is known.
        """
        if self._widest is None:
            self._widest = {}
            for bounds, streams, waiting in self._distinct():
                moving = streams - self._static
                kept = farthest(bounds, moving)
                if waiting is not None:
                    kept = kept_until_known(bounds, moving, *waiting)
                for one, most in kept.items():
                    self._widest[one] = max(self._widest.get(one, 0), most)
        return self._widest.get(stream, 0)

    def lineages(
        self,
        joined: TupleBatch,
        stream: int,
        streams: Sequence[StreamRows],
        sets: LineageSets,
    ) -> Lineages | None:
        """Return the lineage of tuples that have got a component of ``stream`` just now.

        None where no window says anything of them.
        """
        lineages = None
        for (early, late), filter_ in self._filters.items():
            if (
                stream not in {early, late}
                or joined.rows[early] is None
                or joined.rows[late] is None
            ):
                continue
            if lineages is None:
                lineages = joined.lineage
            words = _times(joined, late, streams)
            before = _times(joined, early, streams)
            unknown = (words == NULL_WORD) | (before == NULL_WORD)
            words = words - before
            words[unknown] = NULL_WORD
            within = filter_.lineages_of(words.reshape(-1, 1), sets)
            lineages = within if lineages is None else sets.common(lineages, within)
        return lineages

    def _distinct(self) -> Collection[_Bounded]:
        """Return the windows of queries with the streams that they read, each once."""
        return set(self._queries.values())

    def _changed(self) -> None:
        self._widest = None
        pairs = {(b.early, b.late) for query in self._distinct() for b in query.bounds}
        self._filters = {
            pair: GroupedFilter(
                {n: _boxes(query.bounds, pair) for n, query in self._queries.items()}
            )
            for pair in sorted(pairs)
        }


class _Bounded(NamedTuple):
    """The windows of a query, its streams, and what it waits for: an anchor, and how long."""

    bounds: tuple[TimeBound, ...]
    streams: frozenset[int]
    waiting: tuple[int, int] | None


def _waiting(absence: Absence | None) -> tuple[int, int] | None:
    return None if absence is None else (absence.anchor, absence.waits)


def farthest(bounds: Sequence[TimeBound], streams: frozenset[int]) -> dict[int, int]:
    """Return for each stream of a query how much later than its row any other's may be.

    In microseconds; :data:`~eddyline.standing.engine.shared_query.NEVER` where nothing bounds it.
    """
    most = _differences(bounds, streams)
    return {a: max(most[a, b] for b in streams) for a in streams}


def earliest(bounds: Sequence[TimeBound], streams: frozenset[int]) -> dict[int, int]:
    """Return for each stream of a query how much earlier than its row any other's may be."""
    most = _differences(bounds, streams)
    return {a: max(most[b, a] for b in streams) for a in streams}


def waits_for(
    bounds: Sequence[TimeBound], streams: frozenset[int], anchor: int, absent: int
) -> int:
    """Return for how long after a row of ``anchor`` one of ``absent`` may come; 0 at the least."""
    return max(_differences(bounds, streams)[anchor, absent], 0)


def kept_until_known(
    bounds: Sequence[TimeBound], streams: frozenset[int], anchor: int, waits: int
) -> dict[int, int]:
    """Return for each stream of a query for how long after its own time a row is wanted.

    Where an absence is known so long after a row of ``anchor``: until it is for the latest of
    these that the row may meet.
    """
    most = _differences(bounds, streams)
    return {one: min(max(most[one, anchor] + waits, 0), NEVER) for one in streams}


def _differences(
    bounds: Sequence[TimeBound], streams: frozenset[int]
) -> dict[tuple[int, int], int]:
    """Return by how much the second of two streams' rows may be later, at the most.

    The bounds are differences that are at most so much; the least upper bounds of all of them
    are shortest paths (Floyd and Warshall).
    """
    most = {(a, b): 0 if a == b else NEVER for a in streams for b in streams}
    for bound in bounds:
        if not streams >= {bound.early, bound.late}:
            continue
        pair, back = (bound.early, bound.late), (bound.late, bound.early)
        most[pair] = min(most[pair], bound.greatest)
        most[back] = min(most[back], -bound.least)
    for by in streams:
        for a in streams:
            for b in streams:
                if most[a, by] < NEVER and most[by, b] < NEVER:
                    most[a, b] = min(most[a, b], most[a, by] + most[by, b])
    return most


def _boxes(bounds: Sequence[TimeBound], pair: tuple[int, int]) -> tuple[Box, ...]:
    box: dict[Expression, Range] = {}
    for bound in bounds:
        if (bound.early, bound.late) == pair:
            range_ = Range((bound.least, 0), (bound.greatest, 0))
            met = range_.meet(box[_DIFFERENCE]) if box else range_
            if met is None:
                return ()
            box[_DIFFERENCE] = met
    return (box,)


def _times(batch: TupleBatch, stream: int, streams: Sequence[StreamRows]) -> npt.NDArray[np.int64]:
    rows, held = batch.rows[stream], streams[stream]
    if rows is None or held.stream.time is None:
        raise ValueError(f"stream {held.stream.name} has no time")
    order = held.built.store.order(held.stream.time)
    at = as_array(rows) - held.built.store.first
    words: npt.NDArray[np.int64] = order.words[at]
    words[~order.valid[at]] = NULL_WORD
    return words
