"""Calls functions above the sort and the limit that keep some of their rows.

The first ten of a million rows are found by columns that no function makes; what a function makes
of these rows is then wanted ten times, while Spark calls it below the sort, for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from eddyline import catalyst
from eddyline.catalyst import Plan
from eddyline.planner.read.chains import EvaluationLink, ProjectLink, read_link
from eddyline.planner.rewrite.replaced import replaced

_COMPUTING: Final = frozenset({"Project", "ArrowEvalPython", "BatchEvalPython"})
"""Nodes that have the rows that are below them."""


def with_functions_after_limits(plan: Plan) -> Plan:
    """Return a plan that calls functions for the rows that limits keep; the same if it may not."""
    if not catalyst.has_limit(plan) or not catalyst.has_python_function(plan):
        return plan
    children = catalyst.children(plan)
    if is_limit(plan) and (later := _called_later(plan)) is not None:
        return later
    new = [with_functions_after_limits(child) for child in children]
    return replaced(plan, children, new, with_functions_after_limits)


def is_limit(plan: Plan) -> bool:
    """Whether a node keeps only so many of all rows."""
    return catalyst.class_name(plan).endswith(".GlobalLimit")


def keeps_few(plan: Plan) -> bool:
    """Whether a node keeps only so many rows, of all or of each task's."""
    return is_limit(plan) or catalyst.class_name(plan).endswith(".LocalLimit")


def over_kept(plan: Plan) -> bool:
    """Whether what is computed over a plan is computed for rows that a limit has kept."""
    while not keeps_few(plan):
        if catalyst.class_name(plan).rpartition(".")[2] not in _COMPUTING:
            return False
        (plan,) = catalyst.children(plan)
    return True


def _called_later(limit: Plan) -> Plan | None:
    """Return the functions below a limit and a sort over these; None where that is not the same.

    They are looked for right below the sort, under a projection, and must not make what is sorted
    by. What the projection makes of other columns stays below, with all that is passed on.
    """
    offset = _only_children(limit, "Offset")  # it leaves out the first rows
    top = [limit, *offset]
    nodes = _only_children(top[-1], "LocalLimit", "Sort", "Project")
    if len(nodes) != 3:  # noqa: PLR2004 - those nodes
        return None
    above = [*top, *nodes]
    *kept, projection = above
    project, deterministic = read_link(projection)
    (below,) = catalyst.children(projection)
    evaluation, same = read_link(below)
    if not isinstance(project, ProjectLink) or not isinstance(evaluation, EvaluationLink):
        return None
    if not deterministic or not same:
        return None
    made = {result.identity for result in evaluation.results}
    wanted = [item for item in project.items if not made.isdisjoint(item.attributes())]
    sort = kept[-1]
    if not wanted or catalyst.refers_to(sort, [item.handle for item in wanted]):
        return None
    others = [item for item in project.items if made.isdisjoint(item.attributes())]
    (base,) = catalyst.children(below)
    named = {item.identity for item in others}
    of_others = {number for number, _ in named}
    columns = zip(catalyst.output_numbers(base), catalyst.outputs(base), strict=True)
    passed = [attribute for number, attribute in columns if number not in of_others]
    rows = catalyst.projected([*(item.handle for item in others), *passed], base)
    for node in reversed(kept):
        rows = catalyst.with_children(node, [rows])
    rows = catalyst.evaluation_of(below, range(len(evaluation.functions)), rows)
    items = [
        catalyst.attribute_of(item.handle) if item.identity in named else item.handle
        for item in project.items
    ]
    return catalyst.projected(items, rows)


def _only_children(plan: Plan, *names: str) -> Sequence[Plan]:
    """Return the nodes below a plan that have these names, from the top; as far as they do."""
    nodes: list[Plan] = []
    for name in names:
        children = catalyst.children(plan)
        if len(children) != 1 or not catalyst.class_name(children[0]).endswith(f".{name}"):
            break
        (plan,) = children
        nodes.append(plan)
    return nodes
