"""Plans that compute the derived columns which the queries of a job ask about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

from eddyline import catalyst
from eddyline.blocks.column_types import arrow_type
from eddyline.catalyst import CatalystExpression
from eddyline.quirks.classic_frames import ClassicDataFrame
from eddyline.standing.analysis import Analysis
from eddyline.standing.derivation import DerivedPart, DerivedSource
from eddyline.standing.derived_column import DerivedColumn
from eddyline.standing.query_template import QueryTemplate

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


def with_derived(
    rows: ClassicDataFrame, derived: DerivedByNumber, analysis: Analysis
) -> ClassicDataFrame:
    """Return rows of a stream with all their columns, and derived ones after them.

    Each is computed once for all queries that ask about it. What may raise is tried in a struct,
    which is NULL where it does, and inside of what is not deterministic: else Spark would take what
    two expressions have in common out of both, and compute it where nobody tries it.
    """
    if not derived:
        return rows
    plan = catalyst.analyzed_plan(rows)
    attributes = list(catalyst.outputs(plan))
    aliases: dict[int, CatalystExpression] = {}
    tried: dict[str, CatalystExpression] = {}
    sources = {
        column.name: analysis.source(column, template) for column, template in derived.values()
    }
    for source in sources.values():
        for attribute, place in source.columns:
            identity = catalyst.identity_number(attribute)
            if identity not in aliases:
                aliases[identity] = catalyst.attribute_like(attribute, attributes[place])
        if source.part is not DerivedPart.VALUE and source.key not in tried:
            once = catalyst.in_any_row(catalyst.tried(catalyst.in_struct(source.expression)))
            tried[source.key] = catalyst.named(once, f"eddyline_tried_{len(tried)}")
    plan = catalyst.projected([*attributes, *aliases.values()], plan)
    known = {key: catalyst.attribute_of(once) for key, once in tried.items()}
    if tried:
        columns = map(catalyst.attribute_of, aliases.values())
        plan = catalyst.projected([*attributes, *columns, *tried.values()], plan)
    computed = [catalyst.named(_part_of(source, known), name) for name, source in sources.items()]
    plan = catalyst.projected([*attributes, *computed], plan)
    return catalyst.dataframe_over(rows.sparkSession, plan)


def _part_of(source: DerivedSource, tried: Mapping[str, CatalystExpression]) -> CatalystExpression:
    match source.part:
        case DerivedPart.VALUE:
            return source.expression
        case DerivedPart.TRIED:
            return catalyst.struct_field(tried[source.key], 0)
        case DerivedPart.FAILED:
            return catalyst.is_null(tried[source.key])
