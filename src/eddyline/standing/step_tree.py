"""What stands above the aggregates of streams in a plan, which Spark makes of their groups.

See ``docs/decisions/0085-spark-goes-on-above-windows.md``, and for joins of aggregates
``docs/decisions/0088-aggregates-are-joined-by-window.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from eddyline import catalyst
from eddyline.blocks.decline import not_understood
from eddyline.catalyst import Plan
from eddyline.standing.existences import TableSide
from eddyline.standing.markers import PARAMETER
from eddyline.standing.plan_sources import PlanSources, name_of
from eddyline.standing.written_parameters import ParameterInsideError

CHAIN: Final = frozenset({"Filter", "Project", "ArrowEvalPython", "BatchEvalPython"})
"""Nodes that treat each row by itself."""

_STEPS: Final = CHAIN | {"Aggregate", "Window", "WindowGroupLimit"}

MOST_PARTS: Final = 8
"""Aggregates that a query joins: each outer join doubles the ways in which they may be missing."""


@dataclass(frozen=True)
class StepPart:
    """What one aggregate of streams puts out, with the filters right over it: a part by number."""

    plan: Plan
    number: int


@dataclass(frozen=True)
class StepTable:
    """Rows of tables: a plan, the leaves that stand for these with their names, and its text.

    ``names`` are those of its attributes in texts, by their numbers.
    """

    plan: Plan
    leaves: tuple[tuple[Plan, str], ...]
    text: str
    names: Mapping[int, str]


@dataclass(frozen=True)
class StepNode:
    """A node of a step, over others."""

    plan: Plan
    below: tuple[StepItem, ...]


StepItem: TypeAlias = "StepNode | StepPart | StepTable"


@dataclass(frozen=True)
class WindowStep:
    """The nodes of a plan above what aggregates of streams put out.

    ``parts`` are these parts of the plan by number: the whole of it where there are no such nodes.
    """

    top: StepItem
    parts: tuple[Plan, ...]

    def __bool__(self) -> bool:
        """Whether there is any node."""
        return isinstance(self.top, StepNode)

    @property
    def result(self) -> Plan:
        """The plan whose outputs are the query's."""
        return self.top.plan


def window_step(plan: Plan, sources: PlanSources) -> WindowStep:
    """Return what stands above the lowest aggregates of a plan, and the filters right over them.

    DeclinedError for a join of aggregates with events, and for too many of them;
    ParameterInsideError for a parameter about rows of tables.
    """
    parts: list[Plan] = []
    top = _item(plan, sources, parts)
    if len(parts) > MOST_PARTS:
        raise not_understood(
            f"a join of more than {MOST_PARTS} aggregates: write some of them as one, with "
            "count(*) FILTER (WHERE …), or join what several queries put out"
        )
    return WindowStep(top, tuple(parts))


def _item(plan: Plan, sources: PlanSources, parts: list[Plan]) -> StepItem:
    """Return a plan as a tree of nodes; its parts are added to ``parts``."""
    nodes: list[Plan] = []
    node = plan
    while name_of(node) in _STEPS:
        nodes.append(node)
        node = catalyst.children(node)[0]
    item: StepItem
    if name_of(node) == "Expand" and sources.has_groups(node):
        raise not_understood(
            "ROLLUP, CUBE or GROUPING SETS over the groups of a window: add a query for each"
        )
    if sources.joins_groups(node):
        sides = [_side(child, sources, parts) for child in catalyst.children(node)]
        item = StepNode(node, tuple(sides))
    else:
        first = _first_of_part(nodes)
        below = nodes[first] if first else plan
        nodes = nodes[:first]
        item = StepPart(below, len(parts))
        parts.append(below)
    for above in reversed(nodes):
        item = StepNode(above, (item,))
    return item


def _first_of_part(nodes: Sequence[Plan]) -> int:
    """Return which of nodes, from the top down, is the uppermost of the part that they end in."""
    names = list(map(name_of, nodes))
    first = max((n for n, name in enumerate(names) if name == "Aggregate"), default=0)
    while first and names[first - 1] in CHAIN:
        first -= 1
    return first


def _side(plan: Plan, sources: PlanSources, parts: list[Plan]) -> StepItem:
    if sources.has_groups(plan):
        return _item(plan, sources, parts)
    if not sources.of_tables(plan):
        raise not_understood(_WITH_EVENTS)
    side = TableSide(sources.table_of)
    text = side.text(plan)
    if side.functions:
        refusal = "a Python function or a :marker about a table that aggregates are joined with"
        if all(name.startswith(PARAMETER) for name in side.functions):
            markers = (name.removeprefix(PARAMETER) for name in side.functions)
            raise ParameterInsideError(refusal, frozenset(markers))
        raise not_understood(f"{refusal}: give the rows that are meant in tables=")
    return StepTable(plan, tuple(side.leaves), text, side.names)


_WITH_EVENTS: Final = (
    "a join of events with an aggregate, whose window is not over when they come: join aggregates "
    "of one window, as in ON a.window = b.window (for EXISTS and IN write a LEFT SEMI JOIN b ON …, "
    "for their opposites LEFT ANTI JOIN, or else Spark compares the events), or write one "
    "aggregate a query, and join what it puts out in the sink or in a further stream"
)
