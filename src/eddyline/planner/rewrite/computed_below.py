"""Passes on what a function has given below, where the plan calls it again with the same arguments.

Spark does so where a select list names the call that a filter is about, or the key of a join below,
or what a window adds up: each evaluates it for itself, though the value is there. It is passed on
through nodes that have the columns of what is below in their output, row by row as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from eddyline import catalyst
from eddyline.catalyst import Plan
from eddyline.planner.read.chains import (
    EvaluationLink,
    FilterLink,
    Link,
    ProjectLink,
    Tree,
    read_link,
)


@dataclass(frozen=True, slots=True)
class Side:
    """A way into one child of a join, which has these attributes in its output, by number.

    What the other child has is not to be had there, even if an attribute further down has the same
    number, as in a join of a table with itself.
    """

    output: frozenset[int]


Path: TypeAlias = Sequence["Link | Side"]
"""What is met on a way down a plan, from the top."""


def value_below(function: Tree, paths: Sequence[Path]) -> Tree | None:
    """Return the attribute that holds a function's values already, somewhere below."""
    found = (_value_on(function, path) for path in paths)
    return next((value for value in found if value is not None), None)


def _value_on(function: Tree, path: Path) -> Tree | None:
    evaluated = (each for link in path for each, _ in _evaluated(link))
    if not any(_named_alike(each, function) for each in evaluated):
        return None
    for link in path:
        if isinstance(link, Side):
            if any(number not in link.output for number, _ in function.attributes()):
                return None
            continue
        for each, result in _evaluated(link):
            if _same(each, function):
                return result
        if isinstance(link, ProjectLink):
            function = _below(function, link)
    return None


_LINKS: Final = frozenset({"Filter", "Project", "ArrowEvalPython", "BatchEvalPython"})
_PASSING: Final = frozenset({"Sort", "Window"})
_LEFT_ROWS: Final = frozenset({"LEFT OUTER", "LEFT SEMI", "LEFT ANTI"})


def paths_from(plan: Plan) -> list[Path]:
    """Return the ways on which a value may have been computed, before anything is rewritten.

    Not below a limit: what is there was computed for more rows. Nor on the side of an outer join
    where rows may be missing: a function of NULLs may give something else than NULL.
    """
    links: list[Link | Side] = []
    while True:
        link, deterministic = read_link(plan)
        if link is None:
            break
        if not deterministic or not isinstance(link, EvaluationLink | FilterLink | ProjectLink):
            return [links]
        links.append(link)
        (plan,) = catalyst.children(plan)
    sides = _passed_on(plan)
    if len(catalyst.children(plan)) == 1:
        return [[*links, *path] for side in sides for path in paths_from(side)] or [links]
    paths: list[Path] = [
        [*links, Side(frozenset(catalyst.output_numbers(side))), *path]
        for side in sides
        for path in paths_from(side)
    ]
    return paths or [links]


def _passed_on(plan: Plan) -> list[Plan]:
    """Return the children with functions whose columns a node gives out as they are.

    Not of a stream: a join keeps them as its state.
    """
    name = catalyst.class_name(plan).rpartition(".")[2]
    if name not in _PASSING and name != "Join":
        return []
    children = catalyst.children(plan)
    if name == "Join":
        kind = catalyst.join_type(plan)
        if kind in _LEFT_ROWS:
            children = children[:1]
        elif kind == "RIGHT OUTER":
            children = children[1:]
        elif kind not in {"INNER", "CROSS"}:
            return []
    calling = [child for child in children if catalyst.has_python_function(child)]
    return calling if calling and not catalyst.is_streaming(plan) else []


def _evaluated(link: Link | Side) -> Iterable[tuple[Tree, Tree]]:
    """Return the functions that a link evaluates, each with the attribute that it gives."""
    if not isinstance(link, EvaluationLink):
        return ()
    return zip(link.functions, link.results, strict=True)


def _below(function: Tree, project: ProjectLink) -> Tree:
    """Return a function in terms of what is below a projection."""
    items = {item.identity: item for item in project.items if item.name == "Alias"}
    meant = [
        (reference.handle, items[reference.identity].children[0].handle)
        for reference in _references(function)
        if reference.identity in items
    ]
    return Tree.of(catalyst.in_terms_of(function.handle, meant)) if meant else function


def _references(tree: Tree) -> Iterator[Tree]:
    if tree.name == "AttributeReference":
        yield tree
    for child in tree.children:
        yield from _references(child)


def _same(one: Tree, other: Tree) -> bool:
    # What was read tells most of them apart; the JVM is asked about the rest, one by one.
    if not _named_alike(one, other) or list(one.attributes()) != list(other.attributes()):
        return False
    return catalyst.same_value(one.handle, other.handle)


def _named_alike(one: Tree, other: Tree) -> bool:
    return one.node.fields["name"] == other.node.fields["name"]


def carrying(value: Tree, plan: Plan) -> Plan | None:
    """Return a plan with an attribute that is below it in its output; None if that cannot be."""
    if value.identity[0] in catalyst.output_numbers(plan):
        return plan
    name = catalyst.class_name(plan).rpartition(".")[2]
    children = catalyst.children(plan)
    ways = [
        (child, below)
        for child in (children if name in _LINKS else _passed_on(plan))
        if (below := carrying(value, child)) is not None
    ]
    if len(ways) != 1:  # none, or on both sides of a join
        return None
    ((found, below),) = ways
    if name == "Project":
        return catalyst.project_over(plan, below, [value.handle])
    return catalyst.with_children(plan, [below if child is found else child for child in children])
