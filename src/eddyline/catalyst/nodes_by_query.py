"""Nodes over the rows of several queries at once: each group of rows is of one query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from eddyline.catalyst.gateway import (
    EXPRESSIONS,
    fetched,
    in_python,
    instance_of,
    java_class,
    scala_seq,
    static,
    tree_pattern,
)
from eddyline.catalyst.handles import CatalystExpression, Plan
from eddyline.catalyst.plan_nodes import aggregated, grouping, partitioned

_MARK: Final = EXPRESSIONS + "KnownNullable"


def window_by(node: Plan, more: CatalystExpression, child: Plan) -> Plan:
    """Return a ``Window`` over another child, with partitions that also differ by ``more``."""
    partitions = [*partitioned(node), more]
    return _over(child, node, {1: scala_seq(part.java for part in partitions)})


def aggregate_by(node: Plan, more: Sequence[CatalystExpression], child: Plan) -> Plan:
    """Return an ``Aggregate`` over another child, with groups that also differ by ``more``.

    These attributes are among its outputs. What :class:`Analyst` has marked as an aggregate of
    distinct values is one again.
    """
    groups = [*grouping(node), *more]
    values = [_distinct_again(value.java) for value in aggregated(node)]
    values += [attribute.java for attribute in more]
    return _over(child, node, {0: scala_seq(g.java for g in groups), 1: scala_seq(values)})


def join_by(
    node: Plan, same: tuple[CatalystExpression, CatalystExpression], left: Plan, right: Plan
) -> Plan:
    """Return a ``Join`` of other plans, of rows in which two attributes are equal as well."""
    equal = java_class(EXPRESSIONS + "EqualTo")(same[0].java, same[1].java)
    given = node.java.condition()
    both = java_class(EXPRESSIONS + "And")
    asked = both(given.get(), equal) if given.isDefined() else equal
    changed = _with_fields(node.java, {3: java_class("scala.Some")(asked)})
    return Plan(changed.withNewChildren(scala_seq([left.java, right.java])))


def _over(child: Plan, node: Plan, fields: Mapping[int, Any]) -> Plan:
    changed = _with_fields(node.java, fields)
    return Plan(changed.withNewChildren(scala_seq([child.java])))


def _with_fields(java: Any, fields: Mapping[int, Any]) -> Any:  # noqa: ANN401  # Py4J has no types
    # An array that is changed in place: at once, not later.
    every = fetched(java.productIterator().toArray(static("scala.reflect.ClassTag", "Any")()))
    for position, value in fields.items():
        every[position] = value
    return java.makeCopy(every)


def _distinct_again(java: Any) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return an expression without the marks of ``DistinctMarks``."""
    if not java.containsPattern(tree_pattern("AGGREGATE_EXPRESSION")):
        return java
    if not instance_of(java, EXPRESSIONS + "aggregate.AggregateExpression"):
        children = map(_distinct_again, in_python(java.children()))
        return java.withNewChildren(scala_seq(children))
    function = java.aggregateFunction()
    arguments = in_python(function.children())
    if not arguments or not all(instance_of(argument, _MARK) for argument in arguments):
        return java
    whole = function.withNewChildren(scala_seq(argument.child() for argument in arguments))
    return _with_fields(java, {0: whole, 2: True})
