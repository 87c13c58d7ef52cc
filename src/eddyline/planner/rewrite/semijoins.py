"""Semijoins and antijoins, such that lookup tables can be asked below them.

Spark puts a semijoin or an antijoin below the joins beside it, where it may stand over a lookup
table that gets its values from these: there it is taken out again, and put above them. And
``k IN (SELECT …)`` over a lookup table may itself give the values that it is to be asked for:
then it becomes an inner join with the distinct ones, which binds it, alone or beside what other
joins say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from eddyline import catalyst
from eddyline.catalyst import Plan
from eddyline.planner.read.chains import Tree
from eddyline.planner.read.lookup_leaves import lookup_leaves
from eddyline.planner.read.regions import KeptSide
from eddyline.planner.rewrite.computed_keys import with_computed_keys
from eddyline.planner.rewrite.handed_down import with_keys_handed_down
from eddyline.planner.rewrite.replaced import over_lookups

_REDUCING: Final = frozenset({KeptSide.MATCHED.value, KeptSide.UNMATCHED.value})


def forms(plan: Plan) -> Iterator[Plan]:
    """Yield forms of a plan with the same rows, in one of which its lookup tables may be bound.

    First as they are, then with what their keys are compared to computed before they are asked,
    then with keys handed down to where they are asked for as well.
    """
    yield from _forms_by_semijoins(plan)
    computed = with_computed_keys(plan)
    if computed is not plan:
        yield from _forms_by_semijoins(computed)
    handed_down = with_keys_handed_down(computed)
    if handed_down is not computed:
        yield from _forms_by_semijoins(handed_down)


def _forms_by_semijoins(plan: Plan) -> Iterator[Plan]:
    """Yield forms of a plan by what is made of its semijoins and antijoins.

    First with inner joins for semijoins that choose rows of lookup tables by rows of other
    tables, then for all that do, then for none. Only the plan itself where there is no semijoin
    or antijoin.
    """
    if not catalyst.has_semijoin(plan):
        yield plan
        return
    above = _above_joins(plan)
    plain = _with_inner_joins(above, lambda right: next(lookup_leaves(right), None) is None)
    yield plain
    everything = _with_inner_joins(above, lambda _: True)
    if everything is not plain:
        yield everything
    if above is not plain:
        yield above


# -- above the joins beside them ---------------------------------------------------------


def _above_joins(plan: Plan) -> Plan:
    return over_lookups(plan, _with_reductions_above)


def _with_reductions_above(join: Plan) -> Plan:
    """Return an inner join with what reduces one of its sides above it."""
    if not _is_join(join) or catalyst.join_type(join) not in {"INNER", "CROSS"}:
        return join
    taken: list[Plan] = []
    sides = [_without_reductions(side, taken) for side in catalyst.children(join)]
    if not taken:
        return join
    reduced = catalyst.with_children(join, sides)
    for reduction in reversed(taken):
        _, right = catalyst.children(reduction)
        reduced = catalyst.with_children(reduction, [reduced, right])
    return catalyst.projected_like(join, reduced)


def _without_reductions(plan: Plan, taken: list[Plan]) -> Plan:
    """Return a side without what reduces it, with all columns that this needs above."""
    kind = catalyst.class_name(plan).rpartition(".")[2]
    if _is_join(plan) and catalyst.join_type(plan) in _REDUCING:
        left, _ = catalyst.children(plan)
        if next(lookup_leaves(left), None) is None:
            return plan
        taken.append(plan)
        return _without_reductions(left, taken)
    if kind not in {"Filter", "Project"} or not catalyst.read_node(plan).deterministic:
        return plan
    (child,) = catalyst.children(plan)
    below: list[Plan] = []
    freed = _without_reductions(child, below)
    if not below:
        return plan
    taken += below
    if kind == "Filter":
        return catalyst.with_children(plan, [freed])
    passed = frozenset(catalyst.output_numbers(plan))
    wanted = {number for reduction in below for number in _used(reduction)} - passed
    attributes = zip(catalyst.output_numbers(freed), catalyst.outputs(freed), strict=True)
    more = [attribute for number, attribute in attributes if number in wanted]
    return catalyst.project_over(plan, freed, more)


def _used(join: Plan) -> Iterator[int]:
    condition = catalyst.join_condition(join)
    for number, _ in () if condition is None else Tree.of(condition).attributes():
        yield number


# -- as inner joins ----------------------------------------------------------------------


def _with_inner_joins(plan: Plan, where: Callable[[Plan], bool]) -> Plan:
    return over_lookups(plan, partial(_as_inner_join, where=where))


def _as_inner_join(plan: Plan, where: Callable[[Plan], bool]) -> Plan:
    """Return a semijoin by equalities alone as an inner join, if ``where`` takes its right side."""
    if not _is_join(plan) or catalyst.join_type(plan) != KeptSide.MATCHED:
        return plan
    left, right = catalyst.children(plan)
    condition = catalyst.join_condition(plan)
    if condition is None or next(lookup_leaves(left), None) is None or not where(right):
        return plan
    keys = _keys(Tree.of(condition), frozenset(catalyst.output_numbers(right)))
    if not keys:
        return plan
    distinct = catalyst.distinct(catalyst.projected([key.handle for key in keys], right))
    return catalyst.projected_like(plan, catalyst.joined_as("inner", plan, left, distinct))


def _keys(condition: Tree, right: frozenset[int]) -> list[Tree]:
    """Return the columns of the right side, if all that is said of them is what they equal."""
    keys: dict[tuple[int, str], Tree] = {}
    for conjunct in condition.terms("And"):
        sides = [{number for number, _ in side.attributes()} for side in conjunct.children]
        own = [numbers & right for numbers in sides]
        if not any(own):
            continue
        key = conjunct.children[0 if own[0] else -1]
        if conjunct.name != "EqualTo" or all(own) or key.name != "AttributeReference":
            return []
        keys.setdefault(key.identity, key)
    return list(keys.values())


def _is_join(plan: Plan) -> bool:
    return catalyst.class_name(plan).endswith(".Join")
