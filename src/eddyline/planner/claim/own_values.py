"""Bind columns of lookup tables: what was asked for stands in the join, the row keeps its own.

A source may spell a key in another way than it was asked for. Where a query has one way to the
rows of a table, an answer belongs to what was asked for, whatever it says of itself: then the bind
column of the block's relation holds what was asked for, and a further column the row's own value,
for all that the query says of it but equalities of columns. Where there are several ways, or a
scan, a row that one of them spells otherwise would be found by some routes and not by others: there
rows count by their own values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from eddyline.blocks.lookup_table import BlockLookup
from eddyline.engine.join_graph import JoinGraph
from eddyline.engine.join_query import JoinQuery, JoinRelation
from eddyline.errors import NotExecutableError
from eddyline.expressions import (
    Argument,
    Comparison,
    ComparisonOperator,
    Expression,
    with_arguments,
)


@dataclass(frozen=True, slots=True)
class LookedUpQuery:
    """A query with its lookups, and the names of each relation's columns."""

    query: JoinQuery
    lookups: tuple[BlockLookup, ...]
    column_names: tuple[tuple[str, ...], ...]


def looked_up_query(
    query: JoinQuery, lookups: Sequence[BlockLookup], column_names: Sequence[tuple[str, ...]]
) -> LookedUpQuery:
    """Return a query with the lookups that it needs, and what its bind columns hold."""
    given = LookedUpQuery(query, tuple(lookups), tuple(column_names))
    return with_own_values(with_bound_ways(given)) if lookups else given


def with_bound_ways(given: LookedUpQuery) -> LookedUpQuery:
    """Return a query without the lookups that nothing ever binds, where others are bound.

    A table that can be looked up in several ways has one, where the query has values for one only.
    """
    query = given.query
    try:
        graph = JoinGraph(query)
    except NotExecutableError:
        return given  # what is to run it says why it cannot
    others = (1 << len(query.relations)) - 1
    relations: list[JoinRelation] = []
    lookups: list[BlockLookup] = []
    left = iter(given.lookups)
    for r, relation in enumerate(query.relations):
        own = [next(left) for _ in relation.lookups]
        bound = [graph.binds(others & ~(1 << r), r, lookup) for lookup in relation.lookups]
        if all(bound) or not any(bound):
            relations.append(relation)
            lookups += own
            continue
        pairs = zip(relation.lookups, own, bound, strict=True)
        kept = [(lookup, asked) for lookup, asked, binds in pairs if binds]
        one = len(kept) + relation.scan == 1
        ways = tuple(lookup for lookup, _ in kept)
        relations.append(replace(relation, lookups=ways, key=() if one else relation.key))
        lookups += [asked for _, asked in kept]
    return replace(given, query=replace(query, relations=tuple(relations)), lookups=tuple(lookups))


def with_own_values(given: LookedUpQuery) -> LookedUpQuery:
    """Return a query in which bind columns hold what was asked for, where there is one way."""
    query = given.query
    places = _own_places(query)
    relations = list(query.relations)
    names = [list(of_relation) for of_relation in given.column_names]
    lookups = list(given.lookups)
    for number, (r, lookup) in enumerate(query.lookups):
        if query.relations[r].access_methods > 1:
            continue
        own = [column for column in lookup.bind if (r, column) in places]
        types = query.relations[r].types
        relations[r] = replace(relations[r], types=(*types, *(types[column] for column in own)))
        names[r] += [names[r][column] for column in own]
        columns = lookups[number].columns
        lookups[number] = replace(
            lookups[number],
            columns=(*columns, *(columns[column] for column in own)),
            asked=lookup.bind,
        )
    wider = JoinQuery(tuple(relations))

    def in_join(column: Argument) -> Argument:
        return wider.column(*query.place_of(column.index))

    def own_value(column: Argument) -> Argument:
        place = query.place_of(column.index)
        return wider.column(*places.get(place, place))

    return LookedUpQuery(
        replace(
            query,
            relations=tuple(relations),
            predicates=tuple(
                with_arguments(predicate, in_join if _equates(predicate) else own_value)
                for predicate in query.predicates
            ),
            outputs=tuple(with_arguments(output, own_value) for output in query.outputs),
            column_names=tuple(chain.from_iterable(names)) if query.column_names else (),
        ),
        tuple(lookups),
        tuple(map(tuple, names)),
    )


def _own_places(query: JoinQuery) -> dict[tuple[int, int], tuple[int, int]]:
    """Return where the own values of bind columns stand, by relation and column: as far as needed.

    That is after the other columns of their relation, in the order in which they are bound.
    """
    said = (
        *query.outputs,
        *(predicate for predicate in query.predicates if not _equates(predicate)),
    )
    wanted = {
        query.place_of(node.index)
        for expression in said
        for node in expression.walk()
        if isinstance(node, Argument)
    }
    places: dict[tuple[int, int], tuple[int, int]] = {}
    for r, lookup in query.lookups:
        if query.relations[r].access_methods == 1:
            own = [column for column in lookup.bind if (r, column) in wanted]
            first = len(query.relations[r].types)
            places.update({(r, column): (r, first + n) for n, column in enumerate(own)})
    return places


def _equates(predicate: Expression) -> bool:
    return (
        isinstance(predicate, Comparison)
        and predicate.operator is ComparisonOperator.EQUAL
        and isinstance(predicate.left, Argument)
        and isinstance(predicate.right, Argument)
    )


def in_join(query: JoinQuery, lookups: Sequence[BlockLookup], column: Argument) -> Argument:
    """Return the column that stands in the join for one with the own values of another."""
    r, place = query.place_of(column.index)
    for (relation, _), lookup in zip(query.lookups, lookups, strict=True):
        if relation == r and lookup.asked and place not in lookup.asked:
            for asked in lookup.asked:
                if lookup.columns[asked] == lookup.columns[place]:
                    return query.column(r, asked)
    return column
