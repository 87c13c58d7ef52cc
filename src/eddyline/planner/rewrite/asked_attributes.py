"""What nodes above ask of attributes: filters, whatever is derived from them, and functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from eddyline import catalyst
from eddyline.catalyst import Plan
from eddyline.planner.read.chains import (
    EvaluationLink,
    ExpressionId,
    FilterLink,
    Link,
    ProjectLink,
    Tree,
    read_link,
)
from eddyline.planner.read.twins import Twins

NONE: Final[frozenset[ExpressionId]] = frozenset()
"""No attributes."""

UNUSED: Final[Mapping[ExpressionId, int]] = Counter()
"""How often attributes are used where nobody knows."""


def filtered_by(plan: Plan) -> frozenset[ExpressionId]:
    """Return the attributes that Spark derives filters from, for what is below a node.

    A key of a join is not NULL, and an array that is exploded is not empty. Pushed through a
    projection, such a filter would call the function in the place of its result, and the
    projection would call it again.
    """
    name = catalyst.class_name(plan).rpartition(".")[2]
    if name == "Join":
        told = catalyst.join_condition(plan)
    else:
        told = catalyst.generator(plan) if name == "Generate" else None
    return NONE if told is None else frozenset(Tree.of(told).attributes())


_LET_THROUGH: Final = frozenset(
    {
        *("Aggregate", "Expand", "Generate", "Join", "Sort", "Window"),
        *("RebalancePartitions", "Repartition", "RepartitionByExpression"),
    }
)
"""Nodes that Spark pushes filters through where these are about columns of what is below."""


def asked_below(
    plan: Plan, link: Link | None, asked: frozenset[ExpressionId]
) -> list[frozenset[ExpressionId]]:
    """Return what filters above each child of a node are about; ``asked`` is so above the node.

    ``link`` is the node as one of a chain. Spark derives filters from what it has derived: that a
    key is not NULL is known below all joins that are between, once for each of them.
    """
    children = catalyst.children(plan)
    if isinstance(link, EvaluationLink):
        return [asked | of_functions(link, asked)]
    if isinstance(link, FilterLink):
        return [asked.union(*(term.attributes() for term in link.conjuncts))]
    if isinstance(link, ProjectLink):
        named = (item for item in link.items if item.name == "Alias" and item.identity in asked)
        return [asked.union(*(item.attributes() for item in named))]
    name = catalyst.class_name(plan).rpartition(".")[2]
    if name == "Union" and asked:
        outputs = catalyst.output_numbers(plan)
        wanted = {number for number, _ in asked}
        places = [place for place, number in enumerate(outputs) if number in wanted]
        return [
            frozenset(Tree.of(catalyst.outputs(child)[place]).identity for place in places)
            for child in children
        ]
    own = filtered_by(plan)
    return [own | asked if name in _LET_THROUGH else own] * len(children)


def asked_of_twins(plan: Plan, twins: Twins) -> frozenset[ExpressionId]:
    """Return the columns, of sides that stand twice, that filters in either place are about."""
    if not twins.pairs:
        return NONE
    sides = twins.sides
    by_side: dict[Plan, frozenset[ExpressionId]] = {}
    left = [(plan, NONE)]
    while left:
        node, asked = left.pop()
        if node in sides:
            by_side[node] = asked
        if catalyst.has_python_function(node):
            link, _ = read_link(node)
            left.extend(zip(catalyst.children(node), asked_below(node, link, asked), strict=True))
    return twins.columns_in_either(by_side)


def used_below(link: Link | None, used: Mapping[ExpressionId, int]) -> Mapping[ExpressionId, int]:
    """Return how often attributes are used by a link and above it.

    Nobody knows how often what stands above a chain uses one: once, if it may be at all.
    """
    uses: Counter[ExpressionId] = Counter()
    if isinstance(link, ProjectLink):
        for item in link.items:
            times = max(used.get(item.identity, 0), 1)
            for identity in item.attributes():
                uses[identity] += times
        return uses
    if isinstance(link, FilterLink):
        uses.update(identity for conjunct in link.conjuncts for identity in conjunct.attributes())
    elif isinstance(link, EvaluationLink):
        uses.update(identity for function in link.functions for identity in function.attributes())
    else:
        return UNUSED
    for identity in uses if used is UNUSED else used:
        uses[identity] += used.get(identity, 1)
    return uses


def of_functions(link: EvaluationLink, asked: frozenset[ExpressionId]) -> frozenset[ExpressionId]:
    """Return the arguments of those functions of a node that filters above it are about."""
    return frozenset(
        identity
        for index in link.indexes
        if link.results[index].identity in asked
        for identity in link.functions[index].attributes()
    )
