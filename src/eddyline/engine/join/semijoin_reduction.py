"""Rows that are not worth building, as a complete SteM shows: semi-join reduction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eddyline.engine.batch import TupleBatch
from eddyline.engine.join_graph import JoinGraph
from eddyline.engine.modules.stem import SteM

TRIAL = 4_096
"""Rows of a relation that are looked up in a complete SteM to learn what that drops."""

WORTH = 0.8
"""Part of the rows that may be left for a SteM to be asked on.

Asking costs a probe without its matches, a tenth of what building a row and finding it again
costs. A chain of four tables with filters at both ends takes 0.75 times as long with it.
"""


class SemijoinReduction:
    """Drops rows before they are built for which a complete SteM has no match.

    Such a row is part of no result, since the predicates that lead to that SteM hold in
    every result and all its rows are known. So BuildFirst, which is relaxed for a relation
    with only a scan (Raman, Deshpande and Hellerstein, 2003, Section 3.5), is not needed
    for it. What it spares: the row's place in a SteM, and all tuples that would be joined
    with it before they fail.
    """

    def __init__(self, graph: JoinGraph, stems: Sequence[SteM]) -> None:
        """Start with nothing learned."""
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
            found = stem.may_match(batch)
            pair = (relation, other)
            self._asked[pair] = self._asked.get(pair, 0) + len(batch)
            left = int(np.count_nonzero(found))
            self._left[pair] = self._left.get(pair, 0) + left
            if left < len(batch):
                batch = batch.keep(found, batch.signature)
        return batch

    def _is_worth(self, relation: int, other: int) -> bool:
        asked = self._asked.get((relation, other), 0)
        return asked < TRIAL or self._left[relation, other] < WORTH * asked
