"""The modules of a query's lookups: inline where the source is called, else concurrent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from eddyline.engine.join.components import ComponentStores
from eddyline.engine.join.join_routes import JoinRoutes
from eddyline.engine.modules.concurrent_index_access import (
    ConcurrentIndexAccess,
    ConcurrentSource,
)
from eddyline.engine.modules.index_access import IndexAccess, Source
from eddyline.engine.modules.lookup_requests import LookupRequests
from eddyline.engine.modules.stem import SteM
from eddyline.query.join_query import JoinQuery

AnySource: TypeAlias = Source | ConcurrentSource

NO_LOOKUPS: Mapping[tuple[int, int], AnySource] = MappingProxyType({})


def lookup_modules(
    query: JoinQuery,
    routes: JoinRoutes,
    components: ComponentStores,
    stems: Sequence[SteM],
    sources: Mapping[tuple[int, int], AnySource],
) -> Iterator[IndexAccess | ConcurrentIndexAccess]:
    """Yield a module for each lookup of a query, in the order of their numbers.

    ``sources`` are what they ask, by number of relation and of the lookup among the relation's;
    ValueError where one is missing or too many.
    """
    places = [
        (r, number)
        for r, relation in enumerate(query.relations)
        for number in range(len(relation.lookups))
    ]
    if set(places) != set(sources):
        raise ValueError(
            f"lookups {sorted(places)} of the query need a source each; there are sources "
            f"for {sorted(sources)}"
        )
    for position, place in enumerate(places, routes.first_lookup):
        source = sources[place]
        requests = LookupRequests(position, routes, components, stems[place[0]])
        if isinstance(source, ConcurrentSource):
            yield ConcurrentIndexAccess(requests, source)
        else:
            yield IndexAccess(requests, source)
