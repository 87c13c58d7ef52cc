"""Which results of Python functions a plan needs, and for which rows.

Spark evaluates a function in a node of its own, for all rows; what stands above looks at the
result where a branch is taken, where a value is missing, where a FILTER clause keeps the row, or
nowhere. For each result all nodes above that could look at it are asked, up to where it is in the
output of the plan: there every row counts.

Only nodes whose use of a column is known are asked; at all others every row counts.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
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
from eddyline.planner.read.needs import (
    ALWAYS,
    NEVER,
    Condition,
    Need,
    any_of,
    conditions_of,
    needed_in,
    renamed,
    within,
    without,
)

MOST_IN_A_NEED: Final = 500
"""Conditions in what is needed of one value, from which on all rows count."""

_READ: Final = frozenset({"Aggregate", "Filter", "Join", "Sort"})
"""Nodes whose use of a column is read, beside projections and evaluations."""

_PASS: Final = frozenset(
    {
        "GlobalLimit",
        "LocalLimit",
        "Offset",
        "RebalancePartitions",
        "Repartition",
        "RepartitionByExpression",
        "Window",
    }
)
"""Nodes that pass columns on, and look at those that they name."""

_OF_ONE_SIDE: Final = frozenset({"LEFT SEMI", "LEFT ANTI", "EXISTENCE"})
"""Joins whose output has no column of the second child."""


class NeededResults:
    """What is needed of the results of a plan's functions, found out when it is asked for.

    O(nodes above an evaluation x their expressions) for each result.
    """

    def __init__(self, plan: Plan, twins: frozenset[Plan] = frozenset()) -> None:
        """Look where functions are evaluated.

        All rows of ``twins``, sides that stand in the plan twice, are needed: see
        :mod:`eddyline.planner.read.twins`.
        """
        self._twins = twins
        self._ways: dict[ExpressionId, _Above | None] = {}
        self._needs: dict[ExpressionId, Need] = {}
        self._subqueries = False  # whether functions are called in one
        self._look_at(plan, None)

    def of(self, result: ExpressionId) -> Need:
        """Return what is needed of a result.

        The conditions are in terms of the output of the node that evaluates the function.
        """
        if result not in self._needs:
            need = ALWAYS
            with contextlib.suppress(RecursionError):  # too deep a nest: all rows count
                if result in self._ways:
                    need = without(_needed_above(result, self._ways[result]), self._may_be_asked)
            self._needs[result] = need
        return self._needs[result]

    def any(self) -> bool:
        """Whether there is a result that not all rows need."""
        return any(self.of(result) is not ALWAYS for result in self._ways)

    def _look_at(self, plan: Plan, above: _Above | None) -> None:
        if not catalyst.has_python_function(plan):
            return
        node = _Node(plan)
        if isinstance(node.link, EvaluationLink):
            for result in node.link.results:
                if result.identity in self._ways:  # several nodes seem to give it
                    self._needs[result.identity] = ALWAYS
                self._ways[result.identity] = above
        for position, child in enumerate(catalyst.children(plan)):
            way = None if child in self._twins else _Above(node, position, above)
            self._look_at(child, way)
        for subquery in catalyst.subqueries(plan):
            self._subqueries |= catalyst.has_python_function(subquery)
            self._look_at(subquery, None)

    def _may_be_asked(self, condition: Condition) -> bool:
        """Whether a condition gives the same answer wherever it is asked, and calls nothing.

        A subquery in it would be computed once more, with all functions.
        """
        if self._subqueries and catalyst.holds_function(condition.handle):
            return False
        return catalyst.is_deterministic(condition.handle)


@dataclass(frozen=True, eq=False)
class _Node:
    """A node of the plan; what it says is read when it is asked for."""

    plan: Plan

    @cached_property
    def name(self) -> str:
        return catalyst.class_name(self.plan).rpartition(".")[2]

    @cached_property
    def link(self) -> Link | None:
        link, _ = read_link(self.plan)
        return link

    @cached_property
    def expressions(self) -> Sequence[Tree]:
        """The expressions of a node that is neither a projection nor an evaluation."""
        if isinstance(self.link, FilterLink):
            root = self.link.conjuncts[0]
            while root.parent is not None:
                root = root.parent
            return (root,)
        if self.name == "Join":
            condition = catalyst.join_condition(self.plan)
            return () if condition is None else (Tree.of(condition),)
        return tuple(map(Tree.of, catalyst.own_expressions(self.plan)))

    @cached_property
    def users(self) -> Mapping[ExpressionId, Sequence[Tree]]:
        """The entries of a projection by the attributes that they look at."""
        users: dict[ExpressionId, list[Tree]] = {}
        for item in self.link.items if isinstance(self.link, ProjectLink) else ():
            for identity in set(item.attributes()):
                users.setdefault(identity, []).append(item)
        return users

    @cached_property
    def aliases(self) -> Mapping[ExpressionId, Tree]:
        items = self.link.items if isinstance(self.link, ProjectLink) else ()
        return {item.identity: item for item in items if item.name == "Alias"}


@dataclass(frozen=True, eq=False)
class _Above:
    """The way up from a node: the node above it, and which child of that it is."""

    node: _Node
    child: int
    above: _Above | None
    known: dict[ExpressionId, Need] = field(default_factory=dict)  # by what comes out below it

    def is_of_child(self, condition: Condition) -> bool:
        """Whether a condition looks at nothing but columns of the child."""
        numbers = catalyst.output_numbers(catalyst.children(self.node.plan)[self.child])
        return {number for number, _ in condition.attributes}.issubset(numbers)


def _needed_above(wanted: ExpressionId, way: _Above | None) -> Need:
    """Return what is needed of an attribute that comes out of the node below a way.

    The conditions are in terms of what comes out there. Each column is looked at once on each
    way, and where many conditions come together all rows count: both could grow with two to the
    power of the nodes.
    """
    if way is None:
        return ALWAYS
    if wanted not in way.known:
        need = _of_node(wanted, way)
        several = itertools.islice(conditions_of(need), MOST_IN_A_NEED)
        way.known[wanted] = ALWAYS if sum(1 for _ in several) == MOST_IN_A_NEED else need
    return way.known[wanted]


def _of_node(wanted: ExpressionId, way: _Above) -> Need:
    node = way.node
    if isinstance(node.link, ProjectLink):
        return _of_project(wanted, way)
    if isinstance(node.link, EvaluationLink):
        return _of_evaluation(wanted, node.link, way)
    need = ALWAYS
    if node.name in _READ:
        need = any_of(needed_in(tree, wanted) for tree in node.expressions)
    elif node.name in _PASS and wanted[0] not in catalyst.reference_numbers(node.plan):
        need = NEVER
    if node.name != "Aggregate" and need is not ALWAYS and not _is_left_out(way):
        # Conditions from above are asked here about rows that are dropped on the way up to them.
        passed = without(_needed_above(wanted, way.above), lambda condition: condition.sure)
        need = any_of([need, passed])
    return without(need, way.is_of_child) if node.name == "Join" else need


def _is_left_out(way: _Above) -> bool:
    """Whether the columns of a child are not in the output of a join."""
    return (
        way.node.name == "Join"
        and way.child == 1
        and catalyst.join_type(way.node.plan) in _OF_ONE_SIDE
    )


def _of_project(wanted: ExpressionId, way: _Above) -> Need:
    needs: list[Need] = []
    for item in way.node.users.get(wanted, ()):
        above = renamed(_needed_above(item.identity, way.above), way.node.aliases)
        needs.append(within(above, needed_in(item, wanted)))
        if needs[-1] is ALWAYS:
            break
    return any_of(needs)


def _of_evaluation(wanted: ExpressionId, link: EvaluationLink, way: _Above) -> Need:
    """Return what the functions called in a node, and all above it, need of an attribute."""
    made = {result.identity for result in link.results}

    def is_known(condition: Condition) -> bool:
        return condition.attributes.isdisjoint(made)

    needs = [without(_needed_above(wanted, way.above), is_known)]
    for function, result in zip(link.functions, link.results, strict=True):
        own = needed_in(function, wanted)
        if own is not NEVER and catalyst.is_deterministic(function.handle):
            own = within(without(_needed_above(result.identity, way.above), is_known), own)
        needs.append(own)
    return any_of(needs)
