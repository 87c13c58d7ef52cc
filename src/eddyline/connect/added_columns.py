"""Filters whose functions make columns, too: one block decides them, and makes these.

A chain of ``withColumn`` and ``filter`` is read from its lowest end: each condition is told in
terms of what the chain stands on, with each added column in it replaced by what makes it. The block
stands at that end as a column of its own, and the columns of the chain take their values from
there, so no function is called once more for them. So does a select list, or an aggregate, right
above the chain. At its top the block's own column is dropped again.

Spark pushes a filter below the column that it is on, and makes that twice: the block, too. So no
filter drops the rows that the block rejects, but a generator, which makes no row of them. Filters
on other columns, wherever they stand above, Spark pushes below it as ever.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql.connect import proto
from pyspark.sql.connect.plan import LogicalPlan
from pyspark.sql.types import StructField

from eddyline.chance import looks_non_deterministic
from eddyline.connect.filter_runs import FilterClaim, FilterConjunct, FilterRun
from eddyline.connect.messages import (
    Expression,
    Relation,
    aliased,
    attribute,
    called,
    columns_in,
    conjunction,
    conjuncts,
    copied,
    everything,
    field_of,
    has_ours,
    has_python,
    is_plain,
    key_of,
    named,
    python_functions,
)
from eddyline.connect.push_down import GENERATORS
from eddyline.connect.select_lists import calls_by_group, has_nested_groups
from eddyline.connect.sent_functions import calls_at, replace_calls
from eddyline.tasks.filter_task import KEEP

COLUMN: Final = "__eddyline_block__"
"""The column of a block, which nobody sees above its chain."""

LARGEST: Final = 500
"""Columns in an expression in terms of what a chain stands on: ``b = a + a``, ``c = b + b`` double.

256 of them, in as many calls, take half a second.
"""

NAME: Final = re.compile(r"[^\W\d]\w*")
"""A name of a column that stands for itself."""


class _UnclearError(Exception):
    """What an expression says of the columns below is not plain; or is without ``lowest`` nodes."""

    def __init__(self, lowest: int = 1) -> None:
        super().__init__()
        self.lowest: Final = max(1, lowest)


@dataclass(frozen=True, slots=True)
class _Columns:
    """What the added columns below some place are ``made`` of, by name.

    ``of_node`` is the same as of each relation of the chain below, by its number; ``sizes`` are how
    many columns each of the made ones looks at.
    """

    made: Mapping[str, Expression]
    of_node: Mapping[int, Mapping[str, Expression]]
    sizes: Mapping[str, int]

    def told(self, expression: Expression) -> Expression:
        """Return an expression with each added column replaced; _UnclearError."""
        copy = copied(expression)
        left = LARGEST
        for look in columns_in(copy):
            left -= self.sizes.get(look.unresolved_attribute.unparsed_identifier, 0)
            if left < 0:
                raise _UnclearError(len(self.of_node))
            self._tell(look)
        return copy

    def _tell(self, look: Expression) -> None:
        looked_at = look.unresolved_attribute
        name, making = looked_at.unparsed_identifier, None
        if looked_at.HasField("plan_id"):
            making = self.of_node.get(looked_at.plan_id, {}).get(name)
        else:
            making = self.made.get(name)
        if making is not self.made.get(name) or looked_at.is_metadata_column:
            raise _UnclearError
        if making is not None:
            look.CopyFrom(making)
            return
        # It may be a field of an added column, or one whose letters are of another size.
        words = {word.lower() for word in re.findall(r"\w+", name)}
        if words & {added.lower() for added in self.made}:
            raise _UnclearError
        if looked_at.plan_id in self.of_node:
            looked_at.ClearField("plan_id")  # that relation is above what the chain stands on


@dataclass(frozen=True, slots=True)
class _AddedColumn:
    """What makes a column, in its place and ``told`` in terms of what the chain stands on."""

    expression: Expression
    told: Expression
    columns: _Columns

    def calls(self) -> Iterator[Expression]:
        """Yield the calls in it, told, those that contain others after these."""
        yield from reversed([one for one, _ in calls_at(self.told)])

    def rewrite(self, outputs: Mapping[bytes, str]) -> None:
        """Take the values of calls, by what they say, from fields of the block."""
        known = {key: field_of(attribute(COLUMN), output) for key, output in outputs.items()}
        replace_calls(self.expression, lambda one: known.get(key_of(self.columns.told(one))))


@dataclass(frozen=True, slots=True)
class AddedColumns:
    """A chain of filters and added columns, the topmost first.

    ``conditions`` are told in terms of what it stands on, the lowest first; ``written`` has each as
    it stands in its filter. ``items`` are those of a select list or an aggregate above all these.
    """

    nodes: tuple[Relation, ...]
    conditions: tuple[FilterConjunct, ...]
    written: tuple[Expression, ...]
    columns: tuple[_AddedColumn, ...]
    items: tuple[_AddedColumn, ...] = ()

    @property
    def base(self) -> Relation:
        """What the chain stands on."""
        return below(self.nodes[-1])

    @property
    def run(self) -> FilterRun:
        """The conditions over Python functions, as if they were those of filters on that."""
        return FilterRun((), tuple(one for one in self.conditions if one.dependent))

    @property
    def others(self) -> list[Expression]:
        """What must be the same however often it is computed."""
        native = [one.expression for one in self.conditions if not one.dependent]
        return native + [column.told for column in self.columns]

    @property
    def calls(self) -> list[Expression]:
        """The calls in added columns and items, told; each once."""
        made = (*self.columns, *self.items)
        found = {key_of(call): call for column in made for call in column.calls()}
        return list(found.values())

    @property
    def needed(self) -> bool:
        """Whether a condition asks what makes a column, or what an item is made of."""
        pairs = zip(self.conditions, self.written, strict=True)
        if any(told.dependent and not has_python(written) for told, written in pairs):
            return True
        asked = {key_of(one) for told in self.conditions for one, _ in calls_at(told.expression)}
        return not asked.isdisjoint(map(key_of, self.calls))

    def unnamed(self, outputs: Mapping[bytes, str]) -> list[int]:
        """Return which items would have another name with ``outputs`` in their places."""
        return [
            n
            for n, item in enumerate(self.items)
            if not item.expression.HasField("alias")
            and any(key_of(call) in outputs for call in item.calls())
        ]

    def rewrite(self, claim: FilterClaim, block: Expression) -> list[Relation]:
        """Put a block in the place of the conditions it decides.

        Return what is there now, from the top to what the chain stands on: copies of it all but of
        the topmost relation, which is written anew.
        """
        taken = set(map(id, claim.taken))
        left: dict[int, list[Expression]] = {}
        for condition, written in zip(self.conditions, self.written, strict=True):
            if id(condition) not in taken:
                left.setdefault(condition.level, []).append(written)
        for level, node in enumerate(reversed(self.nodes)):
            if node.HasField("filter"):
                node.filter.condition.CopyFrom(conjunction(left.get(level, [])))
        for column in (*self.columns, *self.items):
            column.rewrite(claim.outputs)
        deciding, top = _deciding(self.base, block), self.nodes[0]
        self.base.CopyFrom(deciding)
        added = 1  # the one of the block
        if not self.items or any(one.expression.HasField("unresolved_star") for one in self.items):
            dropping = new_relation()
            dropping.drop.input.CopyFrom(top)
            dropping.drop.column_names.append(COLUMN)
            top.CopyFrom(dropping)
            added += 1
        found = [top]
        for _ in range(len(self.nodes) + added):
            found.append(below(found[-1]))
        return found


def fields_of_items(
    items: Sequence[Expression], groups: int, fields: Sequence[StructField]
) -> list[StructField | None] | None:
    """Return the column of each item, given all columns; None where that is not certain.

    What has none of its own is a star, or one of the first items, the ``groups``, if these are not
    shown.
    """
    stars = [n for n, item in enumerate(items) if item.HasField("unresolved_star")]
    more = len(fields) - len(items)
    if not stars and more == 0:
        return list(fields)
    if len(stars) == 1 and more >= -1:
        (n,) = stars
        return [*fields[:n], None, *fields[n + 1 + more :]]
    return [None] * groups + list(fields) if not stars and more == -groups else None


def called_like(expression: Expression, field: StructField) -> Expression:
    """Return an expression under the name of a column, and with what else is said of that."""
    made = aliased(expression, field.name)
    if field.metadata:
        made.alias.metadata = json.dumps(field.metadata)
    return made


def _deciding(base: Relation, block: Expression) -> Relation:
    """Return the rows of a relation that a block keeps, with a column for the block."""
    made = new_relation()
    made.project.input.CopyFrom(base)
    made.project.expressions.add().unresolved_star.SetInParent()
    kept = called("when", field_of(block, KEEP), called("array", block))
    made.project.expressions.append(aliased(called("explode", kept), COLUMN))
    return made


def below(node: Relation) -> Relation:
    """Return the one relation right below one that has a single one."""
    found: Relation = getattr(node, str(node.WhichOneof("rel_type"))).input
    return found


def new_relation() -> Relation:
    """Return an empty relation with a number of its own."""
    made = Relation()
    made.common.plan_id = LogicalPlan._fresh_plan_id()
    return made


# ---------------------------------------------------------------- reading


def added_columns(top: Relation, is_cached: Callable[[Relation], bool]) -> AddedColumns | None:
    """Return the chain of which a relation is the topmost; None where no condition needs one.

    It ends above what Spark ``is_cached``, and above the first relation in which something is not
    plain: what that filters is filtered before the block asks a function. O(relations x columns).
    """
    nodes = _nodes(top, is_cached)
    while nodes:
        try:
            chain = _read(nodes)
        except _UnclearError as unclear:
            del nodes[-unclear.lowest :]
            continue
        return chain if chain.needed else None
    return None


def _nodes(top: Relation, is_cached: Callable[[Relation], bool]) -> list[Relation]:
    nodes: list[Relation] = []
    node = top
    if items_of(top):
        items = items_of(top)
        if not all(map(is_clear_item, items)) or any(map(_has_chance, items)):
            return []
        if has_nested_groups(top) or calls_by_group(top):
            return []
        nodes.append(top)
        node = below(top)
    while _is_link(node) and not (nodes and is_cached(node)):
        nodes.append(node)
        node = below(node)
    return nodes


def items_of(node: Relation) -> list[Expression]:
    """Return what a select list, or an aggregate by groups, computes; none of other relations."""
    if node.HasField("project"):
        return list(node.project.expressions)
    aggregate = node.aggregate
    if aggregate.group_type != proto.Aggregate.GroupType.GROUP_TYPE_GROUPBY:
        return []
    return [*aggregate.grouping_expressions, *aggregate.aggregate_expressions]


def is_clear_item(item: Expression) -> bool:
    """Whether an item shows all that is in it, and looks at no column that it does not name.

    But for a whole star among those of a select list, and for ``count(*)``.
    """
    star = item.unresolved_star
    if item.HasField("unresolved_star"):
        return not star.HasField("unparsed_target") and not star.HasField("plan_id")
    copy = copied(item)
    for one in everything(copy):
        function = one.unresolved_function if isinstance(one, Expression) else None
        if function is not None and function.function_name == "count":
            stars = [each for each in function.arguments if each.HasField("unresolved_star")]
            if len(function.arguments) == len(stars) == 1:
                del function.arguments[:]
    return _is_clear(copy)


def _has_chance(item: Expression) -> bool:
    """Whether an item calls a function that may give something else each time."""
    return any(
        not call.concurrent and looks_non_deterministic(call.commands) is not None
        for _, call in calls_at(item)
    )


def _is_link(node: Relation) -> bool:
    if node.HasField("filter"):
        return _is_clear(node.filter.condition)
    return node.HasField("with_columns") and all(
        len(alias.name) == 1 and NAME.fullmatch(alias.name[0]) and _is_clear(alias.expr)
        for alias in node.with_columns.aliases
    )


def _is_clear(expression: Expression) -> bool:
    """Whether an expression shows all that is in it, gives one value, and is none of ours."""
    inside = (one for one in everything(expression) if isinstance(one, Expression))
    return (
        is_plain(expression, python=True)
        and not any(named(one)[0].lower() in GENERATORS for one in inside)
        and not has_ours(expression)
        and all(function.deterministic for function in python_functions(expression))
    )


def _read(nodes: Sequence[Relation]) -> AddedColumns:
    """Return a chain; _UnclearError where what it says of the columns below is not plain."""
    columns = _Columns({}, {}, {})
    added: list[_AddedColumn] = []
    told: list[tuple[int, Expression]] = []
    written: list[Expression] = []
    items: list[_AddedColumn] = []
    for level, node in enumerate(reversed(nodes)):
        made = columns.made
        if node.HasField("filter"):
            for one in conjuncts(node.filter.condition):
                written.append(copied(one))
                told.append((level, columns.told(one)))
        elif node.HasField("with_columns"):
            aliases = node.with_columns.aliases
            of_node = [_AddedColumn(one.expr, columns.told(one.expr), columns) for one in aliases]
            added.extend(of_node)
            names = [alias.name[0] for alias in aliases]
            made = {**made, **{name: one.told for name, one in zip(names, of_node, strict=True)}}
            if len({name.lower() for name in made}) < len(made):
                raise _UnclearError  # Spark may take them for one
        else:
            items = [_AddedColumn(one, columns.told(one), columns) for one in items_of(node)]
        sizes = {name: len(columns_in(one)) for name, one in made.items()}
        columns = _Columns(made, {**columns.of_node, node.common.plan_id: made}, sizes)
    lowest = min((level for level, one in told if has_python(one)), default=0)
    conditions = tuple(FilterConjunct(level, one, level > lowest) for level, one in told)
    return AddedColumns(tuple(nodes), conditions, tuple(written), tuple(added), tuple(items))
