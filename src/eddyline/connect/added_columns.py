"""Filters on columns that functions made further down: one block decides them, and makes these.

A chain of ``withColumn`` and ``filter`` is read from its lowest end: each condition is told in
terms of what the chain stands on, with each added column in it replaced by what makes it. The block
stands at that end as a column of its own, and the columns of the chain take their values from
there, so no function is called once more for them; at the top of the chain the block's own column
is dropped again.

Spark pushes a filter below the column that it is on, and makes that twice: the block, too. So no
filter drops the rows that the block rejects, but a generator, which makes no row of them. Filters
on other columns, wherever they stand above, Spark pushes below it as ever.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql.connect.plan import LogicalPlan

from eddyline.connect.filter_runs import FilterClaim, FilterConjunct, FilterRun
from eddyline.connect.messages import (
    Expression,
    Relation,
    aliased,
    attribute,
    called,
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
    operands,
    python_functions,
)
from eddyline.connect.push_down import GENERATORS
from eddyline.connect.sent_functions import python_call
from eddyline.tasks.filter_task import KEEP

COLUMN: Final = "__eddyline_block__"
"""The column of a block, which nobody sees above its chain."""

LARGEST: Final = 1 << 20
"""Bytes of a condition in terms of what a chain stands on: ``b = a + a``, ``c = b + b``, … double.
"""

_NAME: Final = re.compile(r"[^\W\d]\w*")


class _UnclearError(Exception):
    """What an expression says of the columns below is not plain."""


@dataclass(frozen=True, slots=True)
class _Columns:
    """What the added columns below some place are ``made`` of, by name.

    ``of_node`` is the same as of each relation of the chain below, by its number.
    """

    made: Mapping[str, Expression]
    of_node: Mapping[int, Mapping[str, Expression]]

    def told(self, expression: Expression) -> Expression:
        """Return an expression with each added column replaced; _UnclearError."""
        copy = copied(expression)
        looks = [
            one
            for one in everything(copy)
            if isinstance(one, Expression) and one.HasField("unresolved_attribute")
        ]
        for look in looks:
            self._tell(look)
            if copy.ByteSize() > LARGEST:
                raise _UnclearError
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
        yield from reversed(list(_calls_at(self.told)))

    def rewrite(self, outputs: Mapping[bytes, str]) -> None:
        """Take the values of calls, by what they say, from fields of the block."""
        pending = [self.expression]
        while pending:
            one = pending.pop()
            called = python_call(one) is not None
            output = outputs.get(key_of(self.columns.told(one))) if called else None
            if output is None:
                pending.extend(operands(one))
            else:
                one.CopyFrom(field_of(attribute(COLUMN), output))


def _calls_at(expression: Expression) -> Iterator[Expression]:
    pending = [expression]
    while pending:
        one = pending.pop()
        if python_call(one) is not None:
            yield one
        pending.extend(operands(one))


@dataclass(frozen=True, slots=True)
class AddedColumns:
    """A chain of filters and added columns, the topmost first.

    ``conditions`` are told in terms of what it stands on, the lowest first; ``written`` has each as
    it stands in its filter.
    """

    nodes: tuple[Relation, ...]
    conditions: tuple[FilterConjunct, ...]
    written: tuple[Expression, ...]
    columns: tuple[_AddedColumn, ...]

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
        """The calls in added columns, told; each once."""
        found = {key_of(call): call for column in self.columns for call in column.calls()}
        return list(found.values())

    @property
    def needed(self) -> bool:
        """Whether a condition depends on a function only because of an added column."""
        pairs = zip(self.conditions, self.written, strict=True)
        return any(told.dependent and not has_python(written) for told, written in pairs)

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
        for column in self.columns:
            column.rewrite(claim.outputs)
        deciding, top = _deciding(self.base, block), self.nodes[0]
        self.base.CopyFrom(deciding)
        dropping = _new_relation()
        dropping.drop.input.CopyFrom(top)
        dropping.drop.column_names.append(COLUMN)
        top.CopyFrom(dropping)
        found = [top]
        for _ in range(len(self.nodes) + 2):  # the one of the block, and the one on top
            found.append(below(found[-1]))
        return found


def _deciding(base: Relation, block: Expression) -> Relation:
    """Return the rows of a relation that a block keeps, with a column for the block."""
    made = _new_relation()
    made.project.input.CopyFrom(base)
    made.project.expressions.add().unresolved_star.SetInParent()
    kept = called("when", field_of(block, KEEP), called("array", block))
    made.project.expressions.append(aliased(called("explode", kept), COLUMN))
    return made


def below(node: Relation) -> Relation:
    """Return the one relation right below one that has a single one."""
    found: Relation = getattr(node, str(node.WhichOneof("rel_type"))).input
    return found


def _new_relation() -> Relation:
    made = Relation()
    made.common.plan_id = LogicalPlan._fresh_plan_id()
    return made


# ---------------------------------------------------------------- reading


def added_columns(top: Relation, is_cached: Callable[[Relation], bool]) -> AddedColumns | None:
    """Return the chain of which a filter is the topmost; None where no condition needs one.

    It ends above what Spark ``is_cached``, and above the first relation in which something is not
    plain: what that filters is filtered before the block asks a function. O(relations x columns).
    """
    nodes = _nodes(top, is_cached)
    while nodes:
        try:
            chain = _read(nodes)
        except _UnclearError:
            nodes.pop()
            continue
        return chain if chain.needed else None
    return None


def _nodes(top: Relation, is_cached: Callable[[Relation], bool]) -> list[Relation]:
    nodes: list[Relation] = []
    node = top
    while _is_link(node) and not (nodes and is_cached(node)):
        nodes.append(node)
        node = below(node)
    return nodes


def _is_link(node: Relation) -> bool:
    if node.HasField("filter"):
        return _is_clear(node.filter.condition)
    return node.HasField("with_columns") and all(
        len(alias.name) == 1 and _NAME.fullmatch(alias.name[0]) and _is_clear(alias.expr)
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
    columns = _Columns({}, {})
    added: list[_AddedColumn] = []
    told: list[tuple[int, Expression]] = []
    written: list[Expression] = []
    for level, node in enumerate(reversed(nodes)):
        made = columns.made
        if node.HasField("filter"):
            for one in conjuncts(node.filter.condition):
                written.append(copied(one))
                told.append((level, columns.told(one)))
        else:
            aliases = node.with_columns.aliases
            of_node = [_AddedColumn(one.expr, columns.told(one.expr), columns) for one in aliases]
            added.extend(of_node)
            names = [alias.name[0] for alias in aliases]
            made = {**made, **{name: one.told for name, one in zip(names, of_node, strict=True)}}
            if len({name.lower() for name in made}) < len(made):
                raise _UnclearError  # Spark may take them for one
        columns = _Columns(made, {**columns.of_node, node.common.plan_id: made})
    lowest = min((level for level, one in told if has_python(one)), default=0)
    conditions = tuple(FilterConjunct(level, one, level > lowest) for level, one in told)
    return AddedColumns(tuple(nodes), conditions, tuple(written), tuple(added))
