"""The lookups of a join query as modules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from eddyline.engine.components import ComponentStores
from eddyline.engine.eddy import Eddy
from eddyline.engine.join_routes import JoinRoutes
from eddyline.engine.modules.concurrent_index_access import (
    ConcurrentIndexAccess,
    ConcurrentSource,
)
from eddyline.engine.modules.index_access import IndexAccess, LookupRequests, Source
from eddyline.engine.modules.stem import SteM

LookupSource: TypeAlias = Source | ConcurrentSource
"""What a lookup asks: a source that answers at once, or one that answers later."""

NO_LOOKUPS: Mapping[tuple[int, int], LookupSource] = MappingProxyType({})


def made_lookups(
    sources: Mapping[tuple[int, int], LookupSource],
    components: ComponentStores,
    routes: JoinRoutes,
    stems: Sequence[SteM],
) -> tuple[IndexAccess | ConcurrentIndexAccess, ...]:
    """Return the lookups of a query, in its order.

    ``sources`` are by number of relation, and of the lookup among the relation's; ValueError
    where one is missing or too many.
    """
    places = [
        (r, number)
        for r, relation in enumerate(components.query.relations)
        for number in range(len(relation.lookups))
    ]
    if set(places) != set(sources):
        raise ValueError(
            f"lookups {sorted(places)} of the query need a source each; there are sources "
            f"for {sorted(sources)}"
        )
    made: list[IndexAccess | ConcurrentIndexAccess] = []
    for position, place in enumerate(places, routes.first_lookup):
        source = sources[place]
        requests = LookupRequests(position, routes, components, stems[place[0]])
        made.append(
            ConcurrentIndexAccess(requests, source)
            if isinstance(source, ConcurrentSource)
            else IndexAccess(requests, source)
        )
    return tuple(made)


def let_rest(eddy: Eddy) -> None:
    """Let the lookups rest to which no tuple comes before there are answers.

    What waits for other relations' lookups, or for room, may still come to them.
    """
    if eddy.backlog:
        return
    later = {
        n: module for n, module in eddy.modules.items() if isinstance(module, ConcurrentIndexAccess)
    }
    away: dict[int, int] = {}
    for number, lookup in later.items():
        away[lookup.relation] = away.get(lookup.relation, 0) + eddy.away_at(number)
    for lookup in later.values():
        if away[lookup.relation] == eddy.away:
            lookup.rest()
