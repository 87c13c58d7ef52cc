"""Passes on what a function has given below, where the plan calls it again with the same arguments.

Spark does so where a select list names the call that a filter is about: each evaluates it for
itself, though the value is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

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


def value_below(function: Tree, links: Sequence[Link]) -> Tree | None:
    """Return the attribute that holds a function's values already, somewhere in a chain."""
    if not any(
        _named_alike(evaluated, function) for link in links for evaluated, _ in _evaluated(link)
    ):
        return None
    for link in links:
        for evaluated, result in _evaluated(link):
            if _same(evaluated, function):
                return result
        if isinstance(link, ProjectLink):
            function = _below(function, link)
    return None


def links_from(plan: Plan) -> Iterator[Link]:
    """Return what a chain consists of from a plan on down, before anything in it is rewritten."""
    while True:
        link, deterministic = read_link(plan)
        if not deterministic or not isinstance(link, EvaluationLink | FilterLink | ProjectLink):
            return
        yield link
        (plan,) = catalyst.children(plan)


def _evaluated(link: Link) -> Iterable[tuple[Tree, Tree]]:
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
    if name not in {"Filter", "Project", "ArrowEvalPython", "BatchEvalPython"}:
        return None
    (child,) = catalyst.children(plan)
    below = carrying(value, child)
    if below is None:
        return None
    if name == "Project":
        return catalyst.project_over(plan, below, [value.handle])
    return catalyst.with_children(plan, [below])
