"""How a SteM finds the rows that match a tuple: by hash, by order, or by pairing it with all.

Raman, Deshpande and Hellerstein (2003, Section 2.1.4): "one main-memory index (hash table or
binary tree) on each column of T that is involved in a join predicate".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from eddyline.engine.batch import TupleBatch
from eddyline.engine.components import ComponentStores
from eddyline.engine.join_graph import JoinGraph, Key, Place, RangeEdge
from eddyline.engine.signature import Signature
from eddyline.engine.storage.hash_index import HashIndex, confirmed
from eddyline.engine.storage.indexed_store import IndexedStore
from eddyline.engine.storage.key_words import KeyColumn
from eddyline.engine.storage.ordered_index import GREATEST_WORD, LEAST_WORD, KeyRange
from eddyline.engine.storage.slots import Matches, Probing, all_valid, words_of
from eddyline.expressions import ComparisonOperator

MOST_MATCHES = 1 << 18
"""Matches after which a probe hands the tuples not yet probed back to the eddy.

So the intermediate result of a join with a large fan-out is worked off piece by piece:
a quarter of a million tuples over three relations take 6 MB.
"""

FIRST_PAIRS = 1 << 16
"""Pairs that a probe without an index makes at a time."""


class MatchFinder:
    """Finds matches among the stored rows of one relation; indexes are made on first use.

    Where a tuple brings values for columns that are equal in every result, a hash index over
    these columns finds its matches; else an ordered index answers a range predicate; else it
    is paired with every row, and the predicates are left to their modules.
    """

    def __init__(self, relation: int, graph: JoinGraph, components: ComponentStores) -> None:
        self._relation = relation
        self._graph = graph
        self._components = components
        self._types = graph.query.relations[relation].types

    @property
    def _store(self) -> IndexedStore:
        return self._components.built[self._relation].store

    def may_match(
        self, batch: TupleBatch, dead: npt.NDArray[np.bool_] | None
    ) -> npt.NDArray[np.bool_]:
        """Return which tuples may have a match among all rows: certain but for text keys."""
        keys = self._graph.keys(batch.signature.spanned, self._relation)
        index = self._hash_index(keys)
        return index.exists(self._probing_columns(batch, keys)[0], dead)

    def matches(
        self,
        batch: TupleBatch,
        low: npt.NDArray[np.int64],
        high: npt.NDArray[np.int64],
        dead: npt.NDArray[np.bool_] | None,
    ) -> tuple[Matches, int]:
        """Return the matches of tuples, and how many tuples were probed.

        ``low`` and ``high`` bound the places of the rows that count, one for all tuples or one
        a tuple; ``dead`` flags those that do not count, by place.
        """
        spanned = batch.signature.spanned
        keys = self._graph.keys(spanned, self._relation)
        if keys:
            probing, columns, places = self._probing_columns(batch, keys)
            index = self._hash_index(keys)
            candidates, probed = index.probe(probing, low, high, dead, MOST_MATCHES)
            return confirmed(candidates, columns, places, self._stored_keys(keys)), probed
        edges = self._graph.best_ranges(spanned, self._relation)
        if edges:
            column = edges[0].seen_from(self._relation)[2]
            index_of = self._store.ordered_index(column)
            ranges = self._ranges(batch, edges)
            return index_of.probe(ranges, low, high, dead, MOST_MATCHES)
        return self._all_pairs(len(batch), low, high, dead)

    def _hash_index(self, keys: tuple[Key, ...]) -> HashIndex:
        columns = tuple(key.stored for key in keys)
        types = [self._types[column] for column in columns]
        return self._store.hash_index(columns, types)

    def _stored_keys(self, keys: tuple[Key, ...]) -> list[KeyColumn]:
        types = self._types
        return [self._store.key(key.stored, types[key.stored]) for key in keys]

    def _probing_columns(
        self, batch: TupleBatch, keys: tuple[Key, ...]
    ) -> tuple[Probing, list[KeyColumn], list[npt.NDArray[np.int64]]]:
        """Return the keys that tuples bring, and for each its column and the tuples' places."""
        columns = [self._key_column(batch.signature, key.probing) for key in keys]
        of_relation = {
            key.probing.relation: self._components.places(batch, key.probing.relation)
            for key in keys
        }
        places = [of_relation[key.probing.relation] for key in keys]
        if len(of_relation) == 1:
            return Probing(words_of(columns), all_valid(columns), places[0]), columns, places
        # Columns of several relations: one row number does not point into all of them.
        words: list[npt.NDArray[np.int64]] = []
        valid: npt.NDArray[np.bool_] | None = None
        for column, at in zip(columns, places, strict=True):
            words += [word[at] for word in column.words]
            if column.valid is not None:
                valid = column.valid[at] if valid is None else valid & column.valid[at]
        rows = np.arange(len(batch), dtype=np.int64)
        return Probing(tuple(words), valid, rows), columns, places

    def _key_column(self, signature: Signature, place: Place) -> KeyColumn:
        store = self._components.of(signature, place.relation).store
        types = self._graph.query.relations[place.relation].types
        return store.key(place.column, types[place.column])

    def _ranges(self, batch: TupleBatch, edges: Sequence[RangeEdge]) -> KeyRange:
        """Return the words between which a stored row's must lie, for each tuple."""
        least = np.full(len(batch), LEAST_WORD)
        greatest = np.full(len(batch), GREATEST_WORD)
        never = np.zeros(len(batch), np.bool_)
        for edge in edges:
            probing, operator, _ = edge.seen_from(self._relation)
            store = self._components.of(batch.signature, probing.relation).store
            order = store.order(probing.column)
            at = self._components.places(batch, probing.relation)
            words = order.words[at]
            never |= ~order.valid[at]
            if operator is ComparisonOperator.LESS:  # the tuple's value is less than the row's
                never |= words == GREATEST_WORD
                least = np.maximum(least, np.where(words == GREATEST_WORD, words, words + 1))
            elif operator is ComparisonOperator.LESS_OR_EQUAL:
                least = np.maximum(least, words)
            elif operator is ComparisonOperator.GREATER:
                never |= words == LEAST_WORD
                greatest = np.minimum(greatest, np.where(words == LEAST_WORD, words, words - 1))
            else:
                greatest = np.minimum(greatest, words)
        least[never], greatest[never] = GREATEST_WORD, LEAST_WORD
        return KeyRange(least, greatest)

    @staticmethod
    def _all_pairs(
        tuples: int,
        low: npt.NDArray[np.int64],
        high: npt.NDArray[np.int64],
        dead: npt.NDArray[np.bool_] | None,
    ) -> tuple[Matches, int]:
        """Pair as many tuples with all rows as make a block of a good size, one at least."""
        sizes = np.broadcast_to(np.maximum(high - low, 0), (tuples,))
        probed = int(np.searchsorted(np.cumsum(sizes), FIRST_PAIRS, side="right"))
        probed = min(max(probed, 1), tuples)
        sizes = sizes[:probed]
        positions = np.repeat(np.arange(probed, dtype=np.int64), sizes)
        starts = np.repeat(np.broadcast_to(low, (tuples,))[:probed], sizes)
        within = np.arange(len(positions)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        places = starts + within
        if dead is not None:
            alive = ~dead[places]
            positions, places = positions[alive], places[alive]
        return Matches(positions, places), probed
