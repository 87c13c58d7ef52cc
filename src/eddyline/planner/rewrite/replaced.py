"""Puts rewritten children and subqueries into a node, or into all nodes over lookup tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eddyline import catalyst
from eddyline.catalyst import Plan
from eddyline.planner.read.lookup_leaves import lookup_leaves


def replaced(
    plan: Plan,
    children: Sequence[Plan],
    new: Sequence[Plan],
    rewrite: Callable[[Plan], Plan],
) -> Plan:
    """Return a node over new children, with each subquery in it rewritten.

    The same handle where all are what they were.
    """
    subqueries = catalyst.has_subquery(plan)  # as it was: what is new below is rewritten already
    if any(one is not other for one, other in zip(children, new, strict=True)):
        plan = catalyst.with_children(plan, new)
    if not subqueries:
        return plan
    inner = catalyst.subqueries(plan)
    new_inner = [rewrite(subquery) for subquery in inner]
    if all(one is other for one, other in zip(inner, new_inner, strict=True)):
        return plan
    return catalyst.with_subqueries(plan, new_inner) or plan


def over_lookups(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """Change all nodes over lookup tables, the lower ones first; the same handle if none is."""
    if next(lookup_leaves(plan), None) is None:
        return plan
    children = catalyst.children(plan)
    new = [over_lookups(child, change) for child in children]
    if any(one is not other for one, other in zip(children, new, strict=True)):
        plan = catalyst.with_children(plan, new)
    if catalyst.has_subquery(plan):
        inner = catalyst.subqueries(plan)
        new_inner = [over_lookups(subquery, change) for subquery in inner]
        if any(one is not other for one, other in zip(inner, new_inner, strict=True)):
            plan = catalyst.with_subqueries(plan, new_inner) or plan
    return change(plan)
