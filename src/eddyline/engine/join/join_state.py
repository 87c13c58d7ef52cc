"""What a join eddy holds between two arrivals, apart from how it routes."""

from __future__ import annotations

from dataclasses import dataclass

from eddyline.engine.join_graph import JoinGraph
from eddyline.engine.modules.join_selection import SelectionState
from eddyline.engine.modules.stem_state import SteMState
from eddyline.engine.relation import RelationState
from eddyline.engine.timestamps import Ticks


@dataclass(frozen=True, slots=True)
class JoinState:
    """The rows, the SteMs over them and what predicates have said of them, by number.

    Rows that several relations share are passing and built at once.

    Plain data: it can be copied and pickled, in one piece, since relations of a self-join
    share their rows and everything points into these. Errors held of rows are part of it, so
    that a pickle needs exceptions that can be pickled. What the eddy has learned of costs is
    not: see :class:`~eddyline.engine.eddy.Learned`. Nor are statistics of lookups, calls,
    predicates and results, which begin anew.
    """

    built: tuple[RelationState, ...]
    passing: tuple[RelationState, ...]
    ticks: Ticks
    stems: tuple[SteMState, ...]
    selections: tuple[SelectionState, ...]
    read: list[int]
    """Rows of each relation that came by scan."""

    @classmethod
    def of(cls, graph: JoinGraph) -> JoinState:
        """Return the state of a join that has read nothing."""
        query = graph.query
        numbers = range(len(query.relations))
        own = [RelationState() for _ in numbers]
        built = tuple(own[query.store_of(r)] for r in numbers)
        passing = tuple(built[r] if query.shares_rows(r) else RelationState() for r in numbers)
        stored, passed = [part.store for part in built], [part.store for part in passing]
        return cls(
            built,
            passing,
            Ticks(),
            tuple(SteMState(query, r, stored[r]) for r in numbers),
            tuple(SelectionState.of(mask, stored, passed) for mask in graph.masks),
            [0] * len(numbers),
        )

    def fits(self, graph: JoinGraph) -> bool:
        """Tell whether it can be that of a query: of as many relations, lookups and predicates."""
        query = graph.query
        asked = [set[int]() for _ in query.relations]
        for number, (relation, _) in enumerate(query.lookups):
            asked[relation].add(number)
        return (
            [set(stem.answers) for stem in self.stems] == asked
            and len(self.selections) == len(graph.masks)
            and all(
                (selection.built is None) == bool(mask & (mask - 1))
                for selection, mask in zip(self.selections, graph.masks, strict=True)
            )
        )
