"""SteMs that many queries share: stored rows keep the lineage that they were built with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.batch import TupleBatch, as_array
from eddyline.engine.clock import Clock
from eddyline.engine.join_graph import Key
from eddyline.engine.relation import Relation, RelationState
from eddyline.engine.storage.hash_index import HashIndex, confirmed
from eddyline.engine.storage.key_words import KeyColumn
from eddyline.engine.storage.row_store import RowAttribute
from eddyline.engine.storage.slots import Lineage, Matches, Probing, all_valid, words_of
from eddyline.engine.timestamps import HighWaterMarks
from eddyline.expressions import Expression
from eddyline.expressions.vector import Function
from eddyline.standing.engine.lineage import DEAD, Lineages, LineageSets
from eddyline.standing.engine.shared_query import Stream

MOST_MATCHES = 1 << 15
"""Matches that are looked at together, half a megabyte: most of them may be nobody's."""


class StreamRows:
    """The rows of a stream: those that are passing, and those in its SteM with their lineage."""

    def __init__(self, stream: Stream, clock: Clock, functions: tuple[Function, ...] = ()) -> None:
        self.stream = stream
        self.width = len(stream.types)
        """Columns of stored rows."""
        self.passing = Relation(functions, (), clock)
        self.marks = HighWaterMarks()
        self._functions, self._clock = functions, clock
        self._uses: tuple[Expression, ...] = ()
        self.built: Relation
        self._hold(Relation(functions, (), clock))

    @property
    def lineages(self) -> Lineages:
        """The lineage of each stored row."""
        return self._lineages.values

    @property
    def arrivals(self) -> npt.NDArray[np.int64]:
        """For each stored row the number that it came in by."""
        return self._arrivals.values

    def of(self, batch: TupleBatch) -> Relation:
        """Return where the rows of tuples of this stream are."""
        return self.built if batch.signature.built else self.passing

    def build(
        self,
        rows: npt.NDArray[np.int64],
        lineages: Lineages,
        tick: int,
        further: Sequence[pa.Array] = (),
    ) -> range:
        """Store passing rows, with their lineage and ``further`` columns; return their numbers."""
        columns = [self.passing.column(c, rows) for c in range(len(self.stream.types))]
        numbers = self.built.append([*columns, *further], len(rows))
        first = self.built.store.first
        places = slice(numbers.start - first, numbers.stop - first)
        self.lineages[places] = lineages
        self.arrivals[places] = rows
        self.marks.built(tick, numbers.stop)
        return numbers

    def hold(self, columns: Sequence[pa.Array], rows: int, tick: int) -> None:
        """Store rows that no query wants yet."""
        numbers = self.built.append(columns, rows)
        self.marks.built(tick, numbers.stop)

    def settle(self) -> None:
        """Count all stored rows as older than what comes; only while no tuple is on its way."""
        tick, self.marks = self.marks.last, HighWaterMarks()
        self.marks.built(tick, self.built.store.stop)

    def compact(self) -> None:
        """Let stored rows go that no query wants any more; only while nothing is on its way.

        They go as soon as they are half of all. The others get new numbers.
        """
        if self.stream.static:
            return  # queries that come may want any of them
        kept = np.flatnonzero(self.lineages != DEAD)
        if 2 * len(kept) > len(self.lineages) or not len(self.lineages):
            return
        store, lineages, arrivals = self.built.store, self.lineages[kept], self.arrivals[kept]
        places = kept + store.first
        columns = [store.take(c, places) for c in range(self.width)] if len(kept) else []
        self._hold(Relation(self._functions, self._uses, self._clock))
        if len(kept):
            self.built.append(columns, len(kept))
            self.lineages[:] = lineages
            self.arrivals[:] = arrivals
        self.settle()

    def evaluate_with(self, functions: Sequence[Function], uses: Sequence[Expression]) -> None:
        """Call ``functions`` in ``uses`` from now on; only while no tuple is on its way."""
        self._functions, self._uses = tuple(functions), tuple(uses)
        passing = RelationState(self.passing.store)
        self.passing = Relation(self._functions, self._uses, self._clock, passing)
        built = RelationState(self.built.store)
        self.built = Relation(self._functions, self._uses, self._clock, built)

    def _hold(self, built: Relation) -> None:
        self.built = built
        self._lineages = RowAttribute(built.store, np.int32, default=DEAD)
        self._arrivals = RowAttribute(built.store, np.int64, default=-1)

    def index(self, keys: tuple[Key, ...]) -> tuple[HashIndex, list[KeyColumn]]:
        """Return the index over key columns, and these."""
        columns = tuple(key.stored for key in keys)
        types = [self.stream.types[column] for column in columns]
        return self.index_over(columns, types)

    def index_over(
        self, columns: tuple[int, ...], types: Sequence[pa.DataType]
    ) -> tuple[HashIndex, list[KeyColumn]]:
        """Return the index over columns of some types, and these."""
        store = self.built.store
        index = store.hash_index(columns, types)
        return index, [store.key(c, t) for c, t in zip(columns, types, strict=True)]


class Finder:
    """Finds stored rows of a stream for tuples that span others."""

    def __init__(self, streams: tuple[StreamRows, ...], stream: int, keys: tuple[Key, ...]) -> None:
        self._streams = streams
        self._stream = streams[stream]
        self._keys = keys

    def matches(
        self, batch: TupleBatch, lineages: Lineages, sets: LineageSets
    ) -> tuple[Matches, int]:
        """Return the matches of tuples with a lesser timestamp, and how many were probed.

        Most of those that have no query in common are left out.
        """
        index, stored = self._stream.index(self._keys)
        first = self._stream.built.store.first
        high = np.maximum(self._stream.marks.below(batch.timestamps) - first, 0)
        columns = [self._column(key) for key in self._keys]
        places = [self._places(batch, key.probing.relation) for key in self._keys]
        probing = self._probing(columns, places, lineages, sets)
        lineage = Lineage(lineages, self._stream.lineages, sets.spans)
        low = np.zeros(1, np.int64)
        candidates, probed = index.probe(probing, low, high, None, MOST_MATCHES, lineage)
        return confirmed(candidates, columns, places, stored[: len(columns)]), probed

    def _probing(
        self,
        columns: list[KeyColumn],
        places: list[npt.NDArray[np.int64]],
        lineages: Lineages,  # noqa: ARG002 - for stored rows that are of one query each
        sets: LineageSets,  # noqa: ARG002 - the same
    ) -> Probing:
        return probing_by(columns, places)

    def _column(self, key: Key) -> KeyColumn:
        stream = self._streams[key.probing.relation]
        column = key.probing.column
        return stream.built.store.key(column, stream.stream.types[column])

    def _places(self, batch: TupleBatch, stream: int) -> npt.NDArray[np.int64]:
        rows = batch.rows[stream]
        if rows is None:
            raise ValueError(f"{batch.signature} does not span stream {stream}")
        return as_array(rows) - self._streams[stream].built.store.first


def probing_by(
    columns: list[KeyColumn],
    places: list[npt.NDArray[np.int64]],
    further: Sequence[npt.NDArray[np.int64]] = (),
) -> Probing:
    """Return keys of the values at some places of columns, and of ``further`` words a tuple."""
    if len(columns) == 1 and not further:
        return Probing(words_of(columns), all_valid(columns), places[0])
    words: list[npt.NDArray[np.int64]] = []
    valid: npt.NDArray[np.bool_] | None = None
    for column, at in zip(columns, places, strict=True):
        words += [word[at] for word in column.words]
        if column.valid is not None:
            valid = column.valid[at] if valid is None else valid & column.valid[at]
    return Probing((*words, *further), valid, np.arange(len(places[0]), dtype=np.int64))
