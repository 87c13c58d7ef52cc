"""Puts rewritten children and subqueries into a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eddyline.spark.host import catalyst
from eddyline.spark.host.catalyst import Plan


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
    new_inner = [rewrite(each) for each in inner]
    if all(one is other for one, other in zip(inner, new_inner, strict=True)):
        return plan
    return catalyst.with_subqueries(plan, new_inner) or plan
