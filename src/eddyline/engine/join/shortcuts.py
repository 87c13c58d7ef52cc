"""Which rows of a join need no SteM, and which tuples need not probe one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from eddyline.engine.batch import TupleBatch
from eddyline.engine.join.reading_order import Goal, ReadingOrder
from eddyline.engine.join_graph import JoinGraph
from eddyline.engine.join_routes import JoinRoutes
from eddyline.engine.modules.stem import SteM


class Shortcuts:
    """What a join may spare, by what its SteMs hold and what may still come."""

    def __init__(
        self,
        routes: JoinRoutes,
        stems: Sequence[SteM],
        shared: Collection[int],
        reading: ReadingOrder,
    ) -> None:
        """``shared`` are the relations whose rows another relation has as well."""
        self._reading = reading
        self._routes = routes
        self._stems = stems
        self._shared = shared

    def may_stream(self, relation: int) -> bool:
        """Tell whether rows need no SteM, as every row that they may meet is there already.

        Or is looked up for them: then they wait for it, and need not be found. But where rows
        are wanted soon, what is looked up for one is to find the others that wait for the same
        ("SteM_R holds the pending R probe tuples", Section 4.2).
        """
        soon = self._routes.partial_rows or self._reading.goal is Goal.INTERACTIVE
        return self.may_be_reduced(relation) and all(
            stem.complete or not (stem.description.scan or soon)
            for r, stem in enumerate(self._stems)
            if r != relation
        )

    def may_be_reduced(self, relation: int) -> bool:
        """Tell whether rows that have no match may stay out of the SteM."""
        return not self._routes.must_build_first(relation) and relation not in self._shared

    def empty(self) -> Iterator[int]:
        """Yield the scanned relations that have no row here yet."""
        for r, stem in enumerate(self._stems):
            if stem.description.scan and not stem.complete and not stem.state.rows:
                yield r

    def is_held_unbuilt(self, relation: int) -> bool:
        """Tell whether tuples that SteMs keep hold rows of a relation that were not built."""
        return any(
            batch.signature.spanned >> relation & 1 and not batch.signature.built >> relation & 1
            for stem in self._stems
            for batch in stem.state.waiting()
        )

    def nothing_to_probe(self, batch: TupleBatch) -> bool:
        """Tell whether some relation has no row older than a singleton.

        "The Eddy need only route to a SteM probe tuples with timestamp greater than this
        minimum timestamp" (Section 3.1): rows of that relation will find the tuple later.
        Not so where a lookup can bring them sooner, or where they rely on this tuple to
        supply others.
        """
        spanned, built = batch.signature.spanned, batch.signature.built
        waits = built == spanned and not self._routes.partial_rows
        suppliers = self._routes.graph.suppliers.values()
        supplies = any(spanned & of_one for of_one in suppliers)
        for r, stem in enumerate(self._stems):
            if spanned >> r & 1:
                continue
            comes = stem.description.scan and not stem.state.answers and not supplies
            later = comes and waits
            if (stem.complete or later) and not stem.older_than(batch).any():
                return True
        return False


TRIAL = 4_096
"""Rows of a relation that are looked up in a complete SteM to learn what that drops."""

WORTH = 0.8
"""A SteM is asked further while it leaves less than this part of the rows.

Asking costs a probe without its matches, a tenth of what building a row and finding it again
costs. A chain of four tables with filters at both ends takes 0.75 times as long with it.
"""


class SemijoinReduction:
    """Drops rows for which a complete SteM has no match, before they are built.

    Such a row is part of no result, since the predicates that lead to that SteM hold in
    every result and all its rows are known. So BuildFirst, which is relaxed for a relation
    with only a scan (Raman, Deshpande and Hellerstein, 2003, Section 3.5), is not needed
    for it. What it spares: the row's place in a SteM, and all tuples that would be joined
    with it before they fail.
    """

    def __init__(self, graph: JoinGraph, stems: Sequence[SteM]) -> None:
        self._graph = graph
        self._stems = tuple(stems)
        self._asked: dict[tuple[int, int], int] = {}
        self._left: dict[tuple[int, int], int] = {}

    def reduced(self, batch: TupleBatch, relation: int) -> TupleBatch:
        """Return the singletons of a batch that every complete neighbour has a match for."""
        for other, stem in enumerate(self._stems):
            if not len(batch):
                break
            if other == relation or not stem.complete:
                continue
            if not self._graph.keys(1 << relation, other) or not self._is_worth(relation, other):
                continue
            matches = stem.may_match(batch)
            pair = (relation, other)
            self._asked[pair] = self._asked.get(pair, 0) + len(batch)
            left = int(np.count_nonzero(matches))
            self._left[pair] = self._left.get(pair, 0) + left
            if left < len(batch):
                batch = batch.keep(matches, batch.signature)
        return batch

    def _is_worth(self, relation: int, other: int) -> bool:
        asked = self._asked.get((relation, other), 0)
        return asked < TRIAL or self._left[relation, other] < WORTH * asked
