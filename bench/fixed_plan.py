"""A static plan of symmetric hash joins: the engine's SteMs in a loop, and no eddy.

What an eddy costs is measured against it, so it is given everything that the eddy has: the
same SteMs with the same kernels, the same batches of rows, outputs made in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

import numpy as np
import numpy.typing as npt

from eddyline.engine.batch import TupleBatch
from eddyline.engine.clock import Clock
from eddyline.engine.components import ComponentStores
from eddyline.engine.join.join_results import Joined
from eddyline.engine.join_graph import JoinGraph
from eddyline.engine.join_query import JoinQuery
from eddyline.engine.join_routes import JoinRoutes
from eddyline.engine.modules.scan_access import Arrival
from eddyline.engine.modules.stem import SteM
from eddyline.engine.relation import Relation
from eddyline.engine.signature import Signature
from eddyline.engine.timestamps import Ticks
from eddyline.expressions import evaluate


class FixedPlan:
    """Joins scanned relations by equalities alone, each probing the others in a fixed order."""

    def __init__(self, query: JoinQuery, orders: Sequence[Sequence[int]], clock: Clock) -> None:
        """Take for every relation the relations that its rows probe, first to last."""
        numbers = range(len(query.relations))
        self._query = query
        self._orders = orders
        self._passing = [Relation((), query.outputs, clock) for _ in numbers]
        built = [Relation((), query.outputs, clock) for _ in numbers]
        self._components = ComponentStores(query, built, self._passing)
        routes = JoinRoutes(JoinGraph(query))
        ticks = Ticks()
        self._stems = [SteM(r, routes, self._components, ticks) for r in numbers]

    def run(self, pieces: Sequence[Sequence[Arrival]]) -> Iterator[Joined]:
        """Read all relations at one rate, a piece of each in turn, and yield joined rows."""
        for arrivals in zip_longest(*pieces):
            for relation, arrival in enumerate(arrivals):
                if arrival is not None:
                    yield from self._push(relation, arrival)

    def load(self, relation: int, pieces: Sequence[Arrival]) -> None:
        """Build all rows of a relation, whose SteM is an index from then on."""
        for arrival in pieces:
            self._stems[relation].process(self._came(relation, arrival))
        self._stems[relation].end()

    def stream(self, relation: int, arrival: Arrival) -> Iterator[Joined]:
        """Let rows of a relation probe the others, which are loaded; yield joined rows."""
        yield from self._joined(relation, [self._came(relation, arrival)])

    def _push(self, relation: int, arrival: Arrival) -> Iterator[Joined]:
        built = self._stems[relation].process(self._came(relation, arrival))
        yield from self._joined(relation, built)

    def _came(self, relation: int, arrival: Arrival) -> TupleBatch:
        rows: list[range | npt.NDArray[np.int64] | None] = [None] * len(self._stems)
        rows[relation] = self._passing[relation].load(arrival.columns, arrival.rows)
        return TupleBatch(Signature(1 << relation), tuple(rows))

    def _joined(self, relation: int, tuples: Sequence[TupleBatch]) -> Iterator[Joined]:
        for other in self._orders[relation]:
            tuples = [joined for batch in tuples for joined in self._stems[other].process(batch)]
        for batch in tuples:
            scope = self._components.scope(batch)
            outputs = tuple(evaluate(output, scope).values for output in self._query.outputs)
            yield Joined(outputs, len(batch))
