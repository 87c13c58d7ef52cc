"""Queries that wait for an absence, or a presence, and how it is judged what did not come.

Stored rows wait with the queries that want them, and no mark says what has been matched. When
nothing can come any more that would follow a row, it probes for it, once for all queries that have
waited so long: their results are the tuples for which nothing was found, or something. See
``docs/decisions/0080-sequences-are-joins.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from eddyline.engine.batch import TupleBatch, as_array
from eddyline.engine.signature import Signature
from eddyline.standing.engine.lineage import DEAD, Lineages, LineageSets, alike
from eddyline.standing.engine.operators import alive
from eddyline.standing.engine.shared_query import Absence, Presence, SharedQuery
from eddyline.standing.engine.stems import StreamRows

JUDGED_TOGETHER: Final = 1 << 14
"""Rows that probe together for what must not be there; each may have many matches."""

Numbers = npt.NDArray[np.int64]


class WaitingRows(NamedTuple):
    """Rows of a stream, each with the queries that need not wait with it any longer."""

    stream: int
    rows: Numbers
    lineages: Lineages


class WaitingQueries:
    """The queries that wait for an absence, by what they wait with and for how long."""

    def __init__(self, sets: LineageSets) -> None:
        self._sets = sets
        self._absences: dict[int, Absence] = {}
        self._present: dict[int, set[int]] = {}
        self._whole: dict[int, set[int]] = {}
        self._waiting: dict[int, dict[int, set[int]]] = {}
        self._numbers: dict[object, int] = {}
        self._generation = -1

    def __len__(self) -> int:
        """Return how many they are."""
        return len(self._absences)

    def __contains__(self, query: int) -> bool:
        """Tell whether a query waits."""
        return query in self._absences

    def add(self, queries: Mapping[int, SharedQuery]) -> None:
        """Take those of further queries that wait for an absence."""
        for number, query in queries.items():
            absence = query.absence
            if absence is None:
                continue
            self._absences[number] = absence
            self._present.setdefault(query.present.streams, set()).add(number)
            self._whole.setdefault(query.shape.streams, set()).add(number)
            by_time = self._waiting.setdefault(absence.anchor, {})
            by_time.setdefault(absence.waits, set()).add(number)
        self._numbers.clear()

    def remove(self, queries: Collection[int]) -> None:
        """Forget those of some queries that wait."""
        for number in queries:
            absence = self._absences.pop(number, None)
            if absence is None:
                continue
            of_anchor = self._waiting[absence.anchor]
            for held in (self._present, self._whole, of_anchor):
                for key in [key for key, members in held.items() if number in members]:
                    held[key].discard(number)
                    if not held[key]:
                        del held[key]
            if not of_anchor:
                del self._waiting[absence.anchor]
        self._numbers.clear()

    def every(self) -> int:
        """Return the number of the set of all of them."""
        return self._number("every", self._absences)

    def for_presence(self) -> int | None:
        """Return the number of the set of those that wait for a row that fits; None for none."""
        waiting = [n for n, absence in self._absences.items() if isinstance(absence, Presence)]
        return self._number("presence", waiting) if waiting else None

    def of_results(self, spanned: int) -> int:
        """Return the number of the set of those whose results span some streams, a mask."""
        return self._number(("present", spanned), self._present.get(spanned, ()))

    def of_matches(self, spanned: int) -> int:
        """Return the number of the set of those that have a match with what spans some streams."""
        return self._number(("whole", spanned), self._whole.get(spanned, ()))

    def present(self) -> list[int]:
        """Return the streams that results are made of, as masks, each once."""
        return list(self._present)

    def known(
        self, streams: Sequence[StreamRows], since: int | None, until: int
    ) -> Iterator[WaitingRows]:
        """Yield rows with which queries wait no longer by the watermark ``until``.

        In microseconds since 1970. Those of which that was known by ``since`` are left out.
        """
        for anchor, by_time in self._waiting.items():
            times, places = self._waiting_at(streams[anchor])
            if not len(times):
                continue
            held = streams[anchor]
            own, waited = held.lineages, np.full(len(held.lineages), DEAD, np.int32)
            for waits, queries in by_time.items():
                # Known by a watermark that is after the time with what is waited for.
                stop = int(np.searchsorted(times, until - waits))
                start = 0 if since is None else int(np.searchsorted(times, since - waits))
                some = places[start:stop]
                if len(some):
                    number = self._number((anchor, waits), queries)
                    done = self._sets.within(own[some], number)
                    waited[some] = self._sets.either(waited[some], done)
            chosen = np.flatnonzero(waited != DEAD)
            for first in range(0, len(chosen), JUDGED_TOGETHER):
                part = chosen[first : first + JUDGED_TOGETHER]
                yield WaitingRows(anchor, part + held.built.store.first, waited[part])

    def next_known(self, streams: Sequence[StreamRows], watermark: int) -> int | None:
        """Return the watermark by which more is known than by this one; None for none."""
        known = []
        for anchor, by_time in self._waiting.items():
            times, _ = self._waiting_at(streams[anchor])
            for waits in by_time:
                place = int(np.searchsorted(times, watermark - waits))
                known += [int(times[place]) + waits + 1] if place < len(times) else []
        return min(known, default=None)

    def _waiting_at(self, held: StreamRows) -> tuple[Numbers, Numbers]:
        """Return the times of stored rows with which some query waits, ascending, and places."""
        if held.stream.time is None or not len(held.built.store):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        order = held.built.store.order(held.stream.time)
        wanted = self._sets.within(held.lineages, self.every()) != DEAD
        places = np.flatnonzero(wanted & order.valid)
        times = order.words[places]
        sorted_ = np.argsort(times, kind="stable")
        return times[sorted_], places[sorted_]

    def _number(self, key: object, queries: Collection[int]) -> int:
        if self._generation != self._sets.generation:
            self._numbers.clear()
            self._generation = self._sets.generation
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = self._sets.number(queries)
        return known


class Judgement:
    """What rows that waited have found: tuples that may be results, and those that speak against.

    A query that raises an error on a tuple has no result of it either.
    """

    def __init__(self, waiting: WaitingQueries, sets: LineageSets) -> None:
        self._waiting = waiting
        self._sets = sets
        self._results: dict[int, list[TupleBatch]] = {}
        self._against: dict[int, list[tuple[Numbers, Lineages]]] = {}
        self._failed: dict[int, list[tuple[Numbers, Lineages]]] = {}

    def take(self, batch: TupleBatch, lineages: Lineages) -> None:
        """Take tuples that are put out, to the queries that they are results or matches of."""
        spanned = batch.signature.spanned
        results = self._sets.within(lineages, self._waiting.of_results(spanned))
        for some in alive(batch, results, batch.signature):
            self._results.setdefault(spanned, []).append(some)
        matches = self._sets.within(lineages, self._waiting.of_matches(spanned))
        for some in alive(batch, matches, batch.signature):
            self._speaks_against(some, some.lineage, self._against)

    def undecided(self, query: int, batch: TupleBatch, position: int) -> None:
        """Take note that a query raises an error on a tuple."""
        number = self._sets.number([query])
        one = batch.at(np.array([position]), batch.signature)
        self._speaks_against(one, np.array([number], np.int32), self._failed)

    def _speaks_against(
        self,
        batch: TupleBatch,
        lineages: Lineages | None,
        among: dict[int, list[tuple[Numbers, Lineages]]],
    ) -> None:
        spanned = batch.signature.spanned
        for present in self._waiting.present():
            if present & ~spanned or lineages is None:
                continue
            own = self._sets.within(lineages, self._waiting.of_results(present))
            rows = np.column_stack([_rows(batch, present), own])[own != DEAD]
            if len(rows):  # of many matches one is as good as all
                distinct = np.unique(rows, axis=0)
                kept = distinct[:, :-1], distinct[:, -1].astype(np.int32)
                among.setdefault(present, []).append(kept)

    def deliver(self, to: Callable[[TupleBatch, Lineages], object]) -> None:
        """Hand over the tuples for which nothing was found, or what was, with their queries."""
        for present, batches in self._results.items():
            for batch in batches:
                lineages = self._decided(batch, present)
                for some in alive(batch, lineages, batch.signature):
                    if some.lineage is not None:
                        to(some, some.lineage)

    def _decided(self, batch: TupleBatch, present: int) -> Lineages:
        """Return the queries that tuples are results of."""
        lineages = batch.lineage
        if lineages is None:
            raise ValueError(f"tuples of {batch.signature} carry no lineage")
        lineages = self._without(lineages, batch, present, self._failed)
        left = self._without(lineages, batch, present, self._against)
        presence = self._waiting.for_presence()
        if presence is None:
            return left
        found = self._sets.within(self._sets.without(lineages, left), presence)
        nothing = self._sets.without(left, alike(presence, len(left)))
        return self._sets.either(found, nothing)

    def _without(
        self,
        lineages: Lineages,
        batch: TupleBatch,
        present: int,
        among: Mapping[int, list[tuple[Numbers, Lineages]]],
    ) -> Lineages:
        """Return lineages of tuples without what speaks against them."""
        own = _rows(batch, present)
        for rows, against in among.get(present, ()):
            both = np.concatenate([own, rows])
            _, numbers = np.unique(both, axis=0, return_inverse=True)
            of_own, of_rows = numbers.reshape(-1)[: len(own)], numbers.reshape(-1)[len(own) :]
            lineages = self._left(lineages, of_own, of_rows, against)
        return lineages

    def _left(
        self, lineages: Lineages, of_own: Numbers, of_rows: Numbers, against: Lineages
    ) -> Lineages:
        """Return lineages without what speaks against tuples of the same numbers.

        Takes as many rounds as one tuple has different sets that speak against it.
        """
        lost = np.full(int(max(of_own.max(initial=0), of_rows.max(initial=0))) + 1, DEAD, np.int32)
        while len(of_rows):
            _, firsts = np.unique(of_rows, return_index=True)
            lost[of_rows[firsts]] = self._sets.either(lost[of_rows[firsts]], against[firsts])
            left = np.ones(len(of_rows), np.bool_)
            left[firsts] = False
            of_rows, against = of_rows[left], against[left]
        return self._sets.without(lineages, lost[of_own])


def anchored(stream: int, streams: int, waiting: WaitingRows, tick: int) -> TupleBatch:
    """Return rows that have waited as tuples which probe for everything that is stored."""
    components: list[Numbers | None] = [None] * streams
    components[stream] = waiting.rows
    return TupleBatch(Signature(1 << stream, 1 << stream), tuple(components), tick, None, None)


def _rows(batch: TupleBatch, streams: int) -> Numbers:
    """Return the numbers of the components of some streams, a row a tuple."""
    columns = [
        as_array(rows)
        for stream, rows in enumerate(batch.rows)
        if streams >> stream & 1 and rows is not None
    ]
    return np.column_stack(columns)
