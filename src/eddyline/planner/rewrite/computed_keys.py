"""Keys of lookups that Spark can compute before the lookup.

``ON w.k = g.k + 1`` gives a value for ``k`` as soon as there is a row of g: here the other side of
the join gets a column with that value, and the join is by two columns. Spark computes the value for
the very rows for which it would have computed the key of its own join, and fails for the same ones.
``WHERE k = (SELECT max(k) FROM …)`` becomes a join with one row, which has the value.

Where Spark casts the lookup table's column, as an int column compared with a bigint, the value is
brought to the column's type instead, and is NULL where no value of that type is equal to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from eddyline import catalyst
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.planner.read.chains import Tree
from eddyline.planner.read.lookup_leaves import lookup_leaves
from eddyline.planner.rewrite.replaced import over_lookups

_WHOLE: Final = ('"byte"', '"short"', '"integer"', '"long"')
"""Types of whole numbers, the narrower first: each value has one of its own in all wider ones."""

_LEFT, _RIGHT = 0, 1
_COMPUTED_ON: Final = {
    "INNER": (_LEFT, _RIGHT),
    "CROSS": (_LEFT, _RIGHT),
    "LEFT OUTER": (_LEFT,),
    "RIGHT OUTER": (_RIGHT,),
    "LEFT SEMI": (_LEFT, _RIGHT),
    "LEFT ANTI": (_LEFT,),
    "EXISTENCE": (_LEFT,),
}
"""Sides of a join that may give values for the lookups on the other, by its type."""


@dataclass(frozen=True)
class _Equality:
    """A conjunct that sets a column of one side equal to a value of another."""

    column: CatalystExpression
    value: CatalystExpression


def with_computed_keys(plan: Plan) -> Plan:
    """Return a plan in which keys of lookups are compared to columns; itself if they are."""
    return over_lookups(plan, _with_columns_for_keys)


def _with_columns_for_keys(plan: Plan) -> Plan:
    kind = catalyst.class_name(plan).rpartition(".")[2]
    if kind == "Join":
        return _joined_by_columns(plan)
    return _joined_with_values(plan) if kind == "Filter" else plan


def _joined_by_columns(join: Plan) -> Plan:
    """Return a join that has columns for computed keys; itself where it has none."""
    condition = catalyst.join_condition(join)
    sides = list(catalyst.children(join))
    if condition is None or not catalyst.is_deterministic(condition):
        return join
    terms = list(Tree.of(condition).terms("And"))
    conditions = [term.handle for term in terms]
    numbers = [frozenset(catalyst.output_numbers(side)) for side in sides]
    for side in _COMPUTED_ON.get(catalyst.join_type(join), ()):
        if next(lookup_leaves(sides[1 - side]), None) is None:
            continue
        for place, term in enumerate(terms):
            equality = _computed(term, numbers[side], numbers[1 - side])
            if equality is not None:
                value = catalyst.named(equality.value, "key")
                sides[side] = catalyst.output_and_more(sides[side], sides[side], [value])
                column = catalyst.outputs(sides[side])[-1]
                conditions[place] = catalyst.equal(equality.column, column)
    if all(one is other for one, other in zip(catalyst.children(join), sides, strict=True)):
        return join
    over = catalyst.with_children(join, sides)
    by_columns = catalyst.joined_on(over, catalyst.conjunction(conditions))
    return catalyst.projected_like(join, by_columns)


def _joined_with_values(plan: Plan) -> Plan:
    """Return a filter by values that are the same for all rows as a join with a row of these."""
    (child,) = catalyst.children(plan)
    condition = catalyst.condition(plan)
    if not catalyst.is_deterministic(condition):
        return plan
    rest: list[CatalystExpression] = []
    columns = frozenset(catalyst.output_numbers(child))
    below = child
    for term in Tree.of(condition).terms("And"):
        equality = _computed(term, frozenset(), columns)
        if equality is None:
            rest.append(term.handle)
            continue
        row = catalyst.one_row([catalyst.named(equality.value, "key")])
        (value,) = catalyst.outputs(row)
        below = catalyst.inner_join_of(below, row, catalyst.equal(equality.column, value))
    if below is child:
        return plan
    kept = catalyst.filtered(catalyst.conjunction(rest), below) if rest else below
    return catalyst.projected_like(plan, kept)


def _computed(term: Tree, given: frozenset[int], asked: frozenset[int]) -> _Equality | None:
    """Return an equality of a column that is ``asked`` for and of a value of columns ``given``.

    None where the value is a constant, or is a column as it is.
    """
    if term.name != "EqualTo":
        return None
    for column, value in (term.children, term.children[::-1]):
        used = {number for number, _ in value.attributes()}
        cast = column.name == "Cast"
        bare = column.children[0] if cast else column
        if bare.name != "AttributeReference" or bare.identity[0] not in asked:
            continue
        if not used <= given or bool(used) != bool(given) or value.name == "Literal":
            continue
        if not cast:
            plain = value.name == "AttributeReference"
            return None if plain else _Equality(column.handle, value.handle)
        if widens(bare, column):
            narrowed = catalyst.narrowed(value.handle, column.handle)
            return _Equality(bare.handle, narrowed)
    return None


def widens(column: Tree, cast: Tree) -> bool:
    """Whether different values of a column stay different where it is cast."""
    types: Sequence[str] = _WHOLE
    one, other = column.data_type, cast.data_type
    if one not in types:
        return False
    if other in types:
        return types.index(one) < types.index(other)
    return catalyst.always_casts(cast.handle) and other.startswith('"decimal')
