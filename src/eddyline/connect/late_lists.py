"""Functions of a select list are called for the rows that a sort and a limit above it keep.

The first ten of a million rows are found by columns that no function makes, and Spark computes the
select list below the sort, for all of them. Here it stands above the limit. What it makes of other
columns without a function stays below, with all that is passed on.

Relations have numbers, by which columns above are told. So filters that keep all stand above the
select list with the numbers of the limit and the sort.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql.types import StructField

from eddyline.connect.added_columns import (
    NAME,
    below,
    called_like,
    fields_of_items,
    is_clear_item,
    new_relation,
)
from eddyline.connect.messages import (
    Expression,
    Relation,
    aliased,
    attribute,
    columns_in,
    copied,
    has_python,
    key_of,
    literal_true,
)

MOST_ROWS: Final = 10_000
"""Rows that a limit keeps at the most: one task has all of them, and that is one batch."""

_KEPT: Final = "__eddyline_{}__"
"""Columns of what is computed below the sort, which nobody sees above the select list."""


@dataclass(frozen=True, slots=True)
class LateList:
    """A select list, or added columns; ``nodes`` are the limit and the sort right above."""

    nodes: tuple[Relation, ...]
    making: Relation

    @property
    def items(self) -> list[Expression]:
        """What it computes."""
        return items_in(self.making)

    @property
    def computed(self) -> list[Expression]:
        """The items but stars, without names."""
        return [made for item in self.items if not _is_star(made := _without_name(item))]

    def rewrite(self, fields: Sequence[StructField]) -> Relation | None:
        """Put it above the limit, and return it; None where something is not certain.

        ``fields`` are all its columns.
        """
        names = [field.name for field in fields]
        of_items = self._fields_of_items(fields)
        own = ["" if field is None else field.name for field in of_items]
        keys = [self._key(one.child, names, own) for one in self.nodes[-1].sort.order]
        late, rows = _copy(self.making), _copy(below(self.making))
        kept = {n: item for n, item in enumerate(self.items) if _is_computed_by_spark(item)}
        if None in keys or not all(own[n] for n in kept):
            return None
        if kept:
            rows = _with_kept(rows, kept)
            _take_kept(late, {n: of_items[n] for n in kept})
        for node in reversed(self.nodes):
            above = _copy(node)
            above.common.plan_id = new_relation().common.plan_id
            for order, key in zip(above.sort.order, keys, strict=False):
                order.child.CopyFrom(key)
            below(above).CopyFrom(rows)
            rows = above
        below(late).CopyFrom(rows)
        shows_all = late.HasField("with_columns") or any(map(_is_star, self.items))
        hidden = [_KEPT.format(n) for n in kept] if shows_all else []
        self.nodes[0].CopyFrom(self._numbered(late, hidden))
        made = self.nodes[0]
        while made.common.plan_id != late.common.plan_id:
            made = below(made)
        return made

    def _fields_of_items(self, fields: Sequence[StructField]) -> Sequence[StructField | None]:
        aliases = self.making.with_columns.aliases
        if aliases:
            known = {field.name: field for field in fields}
            return [known.get(alias.name[0]) for alias in aliases]
        return fields_of_items(self.items, 0, fields) or [None] * len(self.items)

    def _key(self, key: Expression, names: Sequence[str], own: Sequence[str]) -> Expression | None:
        """Return by which column below the list the rows are sorted; None for no certain one."""
        looked_at = key.unresolved_attribute
        name = looked_at.unparsed_identifier
        same = [other for other in names if other.lower() == name.lower()]
        if not NAME.fullmatch(name) or same != [name]:
            return None
        of_list = looked_at.HasField("plan_id") and looked_at.plan_id == self._number
        if name not in own:  # it is one of a star, or beside the added ones
            made = copied(key)
            if of_list:
                made.unresolved_attribute.ClearField("plan_id")
            return made
        made = _without_name(self.items[own.index(name)])
        clear = of_list or not looked_at.HasField("plan_id") or key_of(key) == key_of(made)
        return made if clear and made.HasField("unresolved_attribute") else None

    @property
    def _number(self) -> int:
        return int(self.making.common.plan_id)

    def _numbered(self, late: Relation, hidden: Sequence[str]) -> Relation:
        """Return it without what is hidden, and with the numbers of what it was below."""
        shown = late
        if hidden:
            shown = new_relation()
            shown.drop.input.CopyFrom(late)
            shown.drop.column_names.extend(hidden)
        for node in reversed(self.nodes):
            numbered = Relation()
            numbered.common.CopyFrom(node.common)
            numbered.filter.condition.CopyFrom(literal_true())
            numbered.filter.input.CopyFrom(shown)
            shown = numbered
        return shown


def late_list(top: Relation, is_cached: Callable[[Relation], bool]) -> LateList | None:
    """Return what may be put above a limit that is the topmost relation; None where it may not.

    A list in which everything is plain may, over what Spark does not cache, if there is a function
    in it; or in the one right below, which comes next, if it only passes that on.
    """
    if not top.HasField("limit"):
        return None
    nodes, rows = [top], top.limit.limit
    if top.limit.input.HasField("offset"):
        nodes.append(top.limit.input)
        rows += nodes[-1].offset.offset
    sort = below(nodes[-1])
    if not sort.HasField("sort") or not sort.sort.is_global or rows > MOST_ROWS:
        return None
    found = LateList((*nodes, sort), sort.sort.input)
    items, inner = found.items, below(found.making) if found.items else Relation()
    passes_on = any(map(has_python, items_in(inner))) and not any(map(_is_computed_by_spark, items))
    if not passes_on and not any(map(has_python, items)):
        return None
    clear = all(map(is_clear_item, items)) and not _looks_at_itself(found.making)
    return found if clear and not any(map(is_cached, (*nodes[1:], sort, found.making))) else None


def _looks_at_itself(making: Relation) -> bool:
    """Whether items may look at each other by their names, or at what no relation shows."""
    items = items_in(making) if making.HasField("project") else []
    named = [item.alias.name[0].lower() if item.HasField("alias") else "" for item in items]
    for n, item in enumerate(items):
        others = {"_metadata", *named[:n], *named[n + 1 :]}
        for column in columns_in(item):
            looked_at = column.unresolved_attribute
            words = set(re.findall(r"\w+", looked_at.unparsed_identifier.lower()))
            if looked_at.is_metadata_column or words & others:
                return True
    return False


def items_in(making: Relation) -> list[Expression]:
    """Return what a select list computes, or what is added as columns; none of other relations."""
    if making.HasField("project"):
        return list(making.project.expressions)
    return [alias.expr for alias in making.with_columns.aliases]


def _without_name(item: Expression) -> Expression:
    return item.alias.expr if item.HasField("alias") else item


def _is_star(item: Expression) -> bool:
    return bool(item.HasField("unresolved_star"))


def _is_computed_by_spark(item: Expression) -> bool:
    made = _without_name(item)
    passed_on = made.HasField("unresolved_attribute") or made.HasField("literal")
    return not (passed_on or _is_star(made) or has_python(made))


def _with_kept(rows: Relation, kept: dict[int, Expression]) -> Relation:
    """Return rows with what is computed of them, each in a column of its own."""
    made = new_relation()
    made.project.input.CopyFrom(rows)
    made.project.expressions.add().unresolved_star.SetInParent()
    for n, item in kept.items():
        made.project.expressions.append(aliased(_without_name(item), _KEPT.format(n)))
    return made


def _take_kept(late: Relation, fields: Mapping[int, StructField | None]) -> None:
    """Take what is computed below in its place, under its name."""
    for n, field in fields.items():
        column = attribute(_KEPT.format(n))
        if field is not None and late.HasField("project"):
            late.project.expressions[n].CopyFrom(called_like(column, field))
        else:
            late.with_columns.aliases[n].expr.CopyFrom(column)


def _copy(relation: Relation) -> Relation:
    copy = Relation()
    copy.CopyFrom(relation)
    return copy
