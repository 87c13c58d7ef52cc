"""Functions of which only the value is wanted, as in select lists and aggregates: they remember.

Each goes into a block of its own, which calls it once for each distinct tuple of arguments in a
worker, where that pays. A column without an alias is called after the function that makes it, so
there the block keeps that name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from eddyline.blocks.decline import DeclinedError, DeclineReason
from eddyline.blocks.filter_block import CALLED_ONCE, FilterBlock, SessionSettings, identified
from eddyline.chance import looks_non_deterministic
from eddyline.connect.conditions import ConditionReader
from eddyline.connect.messages import (
    Expression,
    Holders,
    Relation,
    columns_in,
    has_python,
    is_ours,
    key_of,
    operands,
    parts,
    python_holders,
    text_of,
)
from eddyline.connect.sent_functions import PythonCall, calls_at, python_call
from eddyline.engine.filter.filter_eddy import ALL_ROWS
from eddyline.forgetful_mark import FORGETFUL


@dataclass(frozen=True, slots=True)
class WantedValue:
    """A call in a select list; ``expression`` is where it stands, to be written anew in place.

    A ``named`` one makes a column that has a name whatever the function is called.
    """

    expression: Expression
    call: PythonCall
    named: bool


def wanted_values(node: Relation) -> list[WantedValue]:
    """Return the calls of a relation that may remember; none of another kind of relation.

    Equal calls stay equal: Spark must know what it groups by again in what it makes of groups.
    """
    if has_nested_groups(node):
        return []
    found = [value for top, named in _tops(node) for value in values_in(top, named=named)]
    keys = [key_of(value.expression) for value in found]
    unnamed = {key for key, value in zip(keys, found, strict=True) if not value.named}
    values = [
        replace(value, named=key not in unnamed) for key, value in zip(keys, found, strict=True)
    ]
    return [value for value in values if value.named or len(value.call.nest) == 1]


def has_nested_groups(node: Relation) -> bool:
    """Whether a relation groups by a call that is called once more inside of a nest there.

    Neither may be written anew without the other.
    """
    groups = {
        key_of(one) for top in node.aggregate.grouping_expressions for one, _ in calls_at(top)
    }
    tops = [*node.aggregate.grouping_expressions, *node.aggregate.aggregate_expressions]
    return any(
        key_of(inner) in groups
        for top in tops
        for _, call in calls_at(top)
        for function in call.nest[:-1]
        for inner in function.arguments
    )


def calls_by_group(node: Relation) -> bool:
    """Whether an aggregate may call a function once for each group, of what it groups by.

    As ``groupBy("k").agg(f("k"))`` does, where the value of a row would be none of a group. What
    it calls inside of an aggregate function looks the same here: messages do not tell these.
    """
    groups = node.aggregate.grouping_expressions
    grouped = {key_of(one) for top in groups for one, _ in calls_at(top)}
    by_place = any(not columns_in(top) for top in groups)
    names = {name for top in groups for column in columns_in(top) for name in _names(column)}
    return any(
        by_place or not any(map(names.isdisjoint, map(_names, columns_in(one))))
        for top in node.aggregate.aggregate_expressions
        for one, _ in calls_at(top)
        if key_of(one) not in grouped
    )


def _names(column: Expression) -> set[str]:
    """Return the names in a column's: its own, and those of what it may be a field of."""
    written = column.unresolved_attribute.unparsed_identifier.lower()
    return set(written.replace("`", "").split("."))


def values_in(top: Expression, *, named: bool) -> Iterator[WantedValue]:
    """Yield the calls in an expression that may remember; ``named`` ones have a name anyhow."""
    found = _in(top, python_holders(top), named=named)
    return (value for value in found if not value.call.concurrent)


def asked_values(node: Relation) -> list[WantedValue]:
    """Return the calls of concurrent functions of a relation that are in no others of these.

    Without those that would give a column another name than it has.
    """
    found = []
    pending = _tops(node)[::-1]
    while pending:
        one, named = pending.pop()
        call = python_call(one)
        if call is None or not call.concurrent:
            pending.extend((below, named) for below in operands(one))
        elif named or not any(map(has_python, call.values)):
            found.append(WantedValue(one, call, named))
    return found


def _tops(node: Relation) -> list[tuple[Expression, bool]]:
    """Return the expressions that a relation computes, and whether each has a name of its own."""
    if node.HasField("project"):
        return [(one, one.HasField("alias")) for one in node.project.expressions]
    if node.HasField("with_columns"):
        return [(alias.expr, True) for alias in node.with_columns.aliases]
    if node.HasField("aggregate") and not node.aggregate.HasField("pivot"):
        lists = (node.aggregate.grouping_expressions, node.aggregate.aggregate_expressions)
        tops = [(one, one.HasField("alias")) for several in lists for one in several]
        # Those of grouping sets are no columns: the same stand among what it groups by.
        sets = node.aggregate.grouping_sets
        return tops + [(one, True) for each in sets for one in each.grouping_set]
    return []


def _in(top: Expression, python: Holders, *, named: bool) -> Iterator[WantedValue]:
    """Yield the outermost calls below an expression whose arguments hold no function themselves."""
    if top not in python:
        return
    call = python_call(top)
    if call is not None and any(map(is_ours, call.nest)):
        return
    if call is None:
        for below in _operands(top):
            yield from _in(below, python, named=named)
    elif any(value in python for value in call.values):
        for value in call.values:
            yield from _in(value, python, named=named)
    elif call.kind in CALLED_ONCE and call.values:
        yield WantedValue(top, call, named)


def _operands(expression: Expression) -> Iterator[Expression]:
    """Yield the expressions right below one that is no Python function."""
    pending = list(parts(expression))
    while pending:
        one = pending.pop()
        if isinstance(one, Expression):
            yield one
        elif not isinstance(one, Relation | Expression.Window):
            pending.extend(parts(one))


def remembering(
    value: WantedValue, types: dict[bytes, str], settings: SessionSettings, *, spared: bool = False
) -> tuple[FilterBlock, list[Expression]] | None:
    """Return the block of a call, and its arguments; None where that stays as it is.

    A function that forgets does, and one whose column would have another name. The block may be
    ``spared`` rows for which plain Spark calls the function. Raises
    :class:`DeclinedError` where that could not be exactly what Spark computes.
    """
    mark = FORGETFUL.encode()
    if any(mark in command for command in value.call.commands):
        return None
    chance = looks_non_deterministic(value.call.commands)
    if chance is not None:
        detail = f"{value.call.name} {chance}"
        raise DeclinedError(DeclineReason.CALLED_FOR_EVERY_ROW, detail, text_of(value.expression))
    block, arguments = asking(value, types, settings)
    same_name = value.named or (
        len(arguments) == len(value.call.values) and not any(value.call.keywords)
    )
    return (identified(replace(block, spared=spared)), arguments) if same_name else None


def asking(
    value: WantedValue, types: dict[bytes, str], settings: SessionSettings
) -> tuple[FilterBlock, list[Expression]]:
    """Return the block of one value, and its arguments; DeclinedError likewise."""
    conditions = ConditionReader(types, settings, ansi=True)
    made = conditions.value(value.expression)
    names = tuple(map(text_of, conditions.arguments))
    functions = tuple(conditions.functions)
    block = FilterBlock("", ALL_ROWS, (), functions, (made,), settings, names)
    return identified(block), conditions.arguments
