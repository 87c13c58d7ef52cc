"""Semijoins as inner joins, where a lookup table is on the side whose rows they choose.

``k IN (SELECT …)`` over a lookup table gives the values that it is to be asked for, as an inner
join with the distinct ones does. Then they bind it, alone or beside what other joins say.
"""

from __future__ import annotations

from eddyline.spark.host import catalyst
from eddyline.spark.host.catalyst import Plan
from eddyline.spark.plan.chains import Tree
from eddyline.spark.plan.lookup_leaves import lookup_leaves
from eddyline.spark.plan.regions import Kept


def with_inner_joins(plan: Plan) -> Plan:
    """Return a plan with inner joins for semijoins that choose rows of lookup tables.

    The same handle where there is none. A semijoin by anything but equalities stays.
    """
    if next(lookup_leaves(plan), None) is None:
        return plan
    children = catalyst.children(plan)
    new = [with_inner_joins(child) for child in children]
    if any(one is not other for one, other in zip(children, new, strict=True)):
        plan = catalyst.with_children(plan, new)
    if catalyst.has_subquery(plan):
        inner = catalyst.subqueries(plan)
        new_inner = [with_inner_joins(each) for each in inner]
        if any(one is not other for one, other in zip(inner, new_inner, strict=True)):
            plan = catalyst.with_subqueries(plan, new_inner) or plan
    return _as_inner_join(plan) or plan


def _as_inner_join(plan: Plan) -> Plan | None:
    if not catalyst.class_name(plan).endswith(".Join") or catalyst.join_type(plan) != Kept.MATCHED:
        return None
    left, right = catalyst.children(plan)
    condition = catalyst.join_condition(plan)
    if condition is None or next(lookup_leaves(left), None) is None:
        return None
    keys = _keys(Tree.of(condition), frozenset(catalyst.output_numbers(right)))
    if not keys:
        return None
    distinct = catalyst.distinct(catalyst.projected([key.handle for key in keys], right))
    return catalyst.projected_like(plan, catalyst.inner_join(plan, left, distinct))


def _keys(condition: Tree, right: frozenset[int]) -> list[Tree]:
    """Return the columns of the right side, if all that is said of them is what they equal."""
    found: dict[tuple[int, str], Tree] = {}
    for conjunct in condition.terms("And"):
        sides = [{number for number, _ in each.attributes()} for each in conjunct.children]
        own = [numbers & right for numbers in sides]
        if not any(own):
            continue
        key = conjunct.children[0 if own[0] else -1]
        if conjunct.name != "EqualTo" or all(own) or key.name != "AttributeReference":
            return []
        found.setdefault(key.identity, key)
    return list(found.values())
