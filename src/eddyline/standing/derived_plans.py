"""Plans that compute the derived columns which the queries of a job ask about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from eddyline import catalyst
from eddyline.blocks.column_types import arrow_type
from eddyline.catalyst import CatalystExpression
from eddyline.quirks.classic_frames import ClassicDataFrame
from eddyline.standing.analysis import Analysis
from eddyline.standing.derivation import DerivedPart, DerivedSource
from eddyline.standing.derived_column import DerivedColumn
from eddyline.standing.existences import over_rows
from eddyline.standing.query_template import QueryTemplate
from eddyline.standing.tasks.failed_queries import LONGEST_VALUE

DerivedByNumber: TypeAlias = "dict[int, tuple[DerivedColumn, QueryTemplate]]"
"""Derived columns of a stream by number, each with a template that asks about it."""


def derived_in(stream: str, templates: Iterable[QueryTemplate]) -> DerivedByNumber:
    """Return the derived columns of a stream that templates ask about."""
    found = {
        column.number: (column, template)
        for template in templates
        for column in template.derived
        if column.stream == stream
    }
    return dict(sorted(found.items()))


def types_with(
    types: Sequence[pa.DataType | None], derived: Mapping[int, DerivedColumn], time_zone: str
) -> tuple[pa.DataType | None, ...]:
    """Return the types of a stream's columns and of derived ones, None for those of nobody."""
    further = range(len(types), max(derived, default=-1) + 1)
    return (
        *types,
        *(arrow_type(derived[n].type, time_zone) if n in derived else None for n in further),
    )


def names_with(names: Sequence[str], derived: Iterable[DerivedColumn]) -> tuple[str, ...]:
    """Return the names of a stream's columns and the texts of derived ones, by number.

    Empty for columns that say nothing to people.
    """
    texts = {column.number: column.text for column in derived}
    further = range(len(names), max(texts, default=-1) + 1)
    return (*names, *(texts.get(number, "") for number in further))


class DerivedPlans:
    """Plans with derived columns, made from batch to batch for mostly the same columns.

    What a column is in the JVM is made once, and kept while it is asked for: ten calls of 0.1 ms.
    """

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        self._made: dict[DerivedColumn, _MadeColumn] = {}
        self._tried: dict[str, CatalystExpression] = {}

    def over(self, rows: ClassicDataFrame, derived: DerivedByNumber) -> ClassicDataFrame:
        """Return rows of a stream with all their columns, and derived ones after them.

        Each is computed once for all queries that ask about it.
        """
        made = {column: self._column(column, template) for column, template in derived.values()}
        self._made = made
        self._tried = {c.source.key: c.tried for c in made.values() if c.tried is not None}
        if not made:
            return rows
        plan = catalyst.analyzed_plan(rows)
        attributes = list(catalyst.outputs(plan))
        places = {
            catalyst.identity_number(attribute): (attribute, place)
            for column in made.values()
            for attribute, place in column.source.columns
        }
        aliases = [
            catalyst.attribute_like(attribute, attributes[place])
            for attribute, place in places.values()
        ]
        plan = catalyst.projected([*attributes, *aliases], plan)
        if self._tried:
            columns = map(catalyst.attribute_of, aliases)
            plan = catalyst.projected([*attributes, *columns, *self._tried.values()], plan)
        plan = catalyst.projected([*attributes, *(c.value for c in made.values())], plan)
        return catalyst.dataframe_over(rows.sparkSession, plan)

    def _column(self, column: DerivedColumn, template: QueryTemplate) -> _MadeColumn:
        known = self._made.get(column)
        if known is not None:
            return known
        source = self._analysis.source(column, template)
        tried = None
        if source.part is not DerivedPart.VALUE:
            if source.key not in self._tried:
                self._tried[source.key] = _tried(source)
            tried = self._tried[source.key]
        value = self._part_of(source, tried)
        made = self._made[column] = _MadeColumn(source, tried, catalyst.named(value, column.name))
        return made

    def _part_of(
        self, source: DerivedSource, tried: CatalystExpression | None
    ) -> CatalystExpression:
        existence = source.existence
        if existence is not None:
            rows = over_rows(existence.rows, existence.leaves, self._analysis.rows_of_table)
            outer = [attribute for attribute, _ in source.columns]
            return catalyst.exists_where(self._analysis.spark, rows, existence.condition, outer)
        return _part_of(source, tried, self._analysis.time_zone)


class _MadeColumn(NamedTuple):
    """A derived column: how it is computed, what is tried for it, and its named value."""

    source: DerivedSource
    tried: CatalystExpression | None
    value: CatalystExpression


def _tried(source: DerivedSource) -> CatalystExpression:
    """Return a struct with a value, named, that is NULL where to compute the value raises.

    Set apart: else Spark would take what two expressions have in common out of both, and compute it
    where nobody tries it.
    """
    struct = catalyst.tried(catalyst.in_struct(source.expression))
    return catalyst.named(catalyst.set_apart(struct), f"eddyline_tried_{source.key}")


def _part_of(
    source: DerivedSource, tried: CatalystExpression | None, time_zone: str
) -> CatalystExpression:
    if tried is None:
        return source.expression
    struct = catalyst.attribute_of(tried)
    if source.part is DerivedPart.TRIED:
        return catalyst.struct_field(struct, 0)
    columns = [attribute for attribute, _ in source.columns]
    about = catalyst.written_out(columns, time_zone, LONGEST_VALUE + 1)
    return catalyst.where_needed(catalyst.is_null(struct), about)
