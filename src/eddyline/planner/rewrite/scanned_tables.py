"""Lookup tables that can be scanned as well, where they are to be scanned."""

from __future__ import annotations

from collections.abc import Callable

from eddyline import catalyst
from eddyline.catalyst import Plan
from eddyline.planner.rewrite.block_walk import TableOf


def scan_of(leaf: Plan) -> Plan:
    """Return the scan of a lookup table's leaf, with the leaf's columns."""
    (child,) = catalyst.children(leaf)
    pairs = zip(catalyst.outputs(leaf), catalyst.outputs(child), strict=True)
    return catalyst.projected([catalyst.attribute_like(one, other) for one, other in pairs], child)


def with_scans(
    plan: Plan, table_of: TableOf | None, choose: Callable[[Plan], Plan] | None = None
) -> Plan:
    """Return a plan with scans in place of lookup tables that have one.

    Its subqueries included. The same handle where there is none. What ``choose`` makes of a node
    over such tables comes first; it gives the same handle where they are to be scanned.
    """
    if table_of is None or not catalyst.has_python_function(plan):
        return plan
    table = table_of(plan)
    if table is not None:
        return scan_of(plan) if table.scan else plan
    if choose is not None:
        plan = choose(plan)
    children = catalyst.children(plan)
    new = [with_scans(child, table_of, choose) for child in children]
    if any(one is not other for one, other in zip(children, new, strict=True)):
        plan = catalyst.with_children(plan, new)
    if not catalyst.has_subquery(plan):
        return plan
    inner = catalyst.subqueries(plan)
    new_inner = [with_scans(subquery, table_of, choose) for subquery in inner]
    if all(one is other for one, other in zip(inner, new_inner, strict=True)):
        return plan
    return catalyst.with_subqueries(plan, new_inner) or plan
