"""From the SQL of a query to its branches: what it puts out, as queries that can stand each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pyspark.sql import types

from eddyline import catalyst
from eddyline.blocks.decline import DeclinedError, not_understood
from eddyline.blocks.filter_block import SessionSettings
from eddyline.catalyst import Analyst, Plan
from eddyline.errors import NotShareableError
from eddyline.standing.aggregate_nodes import aggregate_in
from eddyline.standing.branches import branches_of
from eddyline.standing.derivation import DerivedColumns
from eddyline.standing.exploded_streams import ExplodedStreams
from eddyline.standing.plan_sources import PlanSources
from eddyline.standing.query_reading import PlanReader, ReadPart, ReadQuery
from eddyline.standing.query_template import streams_of
from eddyline.standing.shown_parameters import ShownParameters
from eddyline.standing.step_tree import WindowStep, window_step
from eddyline.standing.window_steps import check_together, said_of
from eddyline.standing.written_parameters import ParameterInsideError

_NOW: Final = (
    "the current time, date and user would be those when the query was added, for all events; "
    "let the stream have them, as in events.withColumn('now', F.current_timestamp()), which is the "
    "time of each micro-batch"
)


def read_query(
    analyst: Analyst,
    sql: str,
    schemas: Mapping[str, types.StructType],
    tables: Collection[str],
    parameters: Mapping[str, types.DataType],
    settings: SessionSettings,
    derived: DerivedColumns,
    exploded: ExplodedStreams,
    *,
    shown: str,
    keep: int | None,
) -> tuple[ReadQuery, ...]:
    """Analyze a query over streams and tables, and read what it selects, joins and puts out.

    In ``sql`` each parameter is a call of the function that stands for it; ``shown`` is how its
    user wrote it, and ``keep`` what the query has beside. What Spark has to compute goes into
    ``derived``, and what it explodes into ``exploded``. Gives the query's branches: one, where it
    has no UNION ALL, no outer join, and no join of aggregates. Raises PySpark's own errors for what
    is no valid query, and NotShareableError for a valid one that cannot stand.
    """
    plan, schema, asks_for_now = analyst.optimized(sql)
    if asks_for_now:
        raise NotShareableError(f"{_NOW}: {shown}")

    def reader(shown_parameters: ShownParameters) -> PlanReader:
        made = PlanReader(
            analyst=analyst,
            schemas=schemas,
            settings=settings,
            tables=frozenset(tables),
            parameters=parameters,
            derived=derived,
            exploded=exploded,
            keep=keep,
        )
        made.shown = shown_parameters
        return made

    sources = PlanSources(analyst.table_of, frozenset(tables))
    try:
        if catalyst.has_subquery(plan):
            raise not_understood(
                "a subquery that stands for a value: join the table that it is about, or write the "
                "value into the query; of events, add an aggregate of its own"
            )
        branches = branches_of(analyst, plan, sources)
        steps = [window_step(branch, sources) for branch in branches]
    except DeclinedError as declined:
        raise _refusal(declined, shown) from declined
    except ParameterInsideError as inside:
        told = f"cannot stand: {inside}: {shown}"
        raise ParameterInsideError(told, inside.parameters) from inside
    queries: list[ReadQuery] = []
    for step in steps:
        shared = ShownParameters(parameters)
        parts = [_read_part(reader(shared), step, part, schema, shown) for part in step.parts]
        queries += _together(step, parts, shared, shown, len(queries))
    if keep is not None and any(_stores_rows(query) for query in queries):
        queries = [query if _stores_rows(query) else _without_keep(query) for query in queries]
    return tuple(queries)


def _stores_rows(query: ReadQuery) -> bool:
    return len(streams_of(query.template)) > 1


def _without_keep(query: ReadQuery) -> ReadQuery:
    """Return a branch that stores no rows, beside one that does."""
    return replace(query, template=replace(query.template, keep=None))


def _read_part(
    reader: PlanReader, step: WindowStep, plan: Plan, schema: types.StructType, shown: str
) -> ReadPart:
    try:
        reader.take_inputs(plan)
        nodes = aggregate_in(plan)
        reader.read(plan if nodes is None else nodes.below)
        used = frozenset(reader.inputs) & reader.tables
        if len(used) == len(set(reader.inputs)):
            raise not_understood("a query that reads no stream")
        return reader.result(shown, plan, nodes, schema, used, in_step=bool(step))
    except DeclinedError as declined:
        refusal = _refusal(declined, shown)
        if reader.derivation.refusals and reader.derivation.inside:
            inside = frozenset(reader.derivation.inside)
            raise ParameterInsideError(str(refusal), inside) from declined
        raise refusal from declined


def _together(
    step: WindowStep,
    parts: Sequence[ReadPart],
    parameters: ShownParameters,
    shown: str,
    branch: int,
) -> list[ReadQuery]:
    """Return the parts of a step as branches of their query, from the number of the first on."""
    said = [part.said for part in parts if part.said is not None]
    if not step:
        (part,) = parts
        template = replace(part.query.template, branch=branch)
        return [replace(part.query, template=template)]
    try:
        further = said_of(step, said, parameters, branch)
        check_together([part.query.template for part in parts])
    except DeclinedError as declined:
        raise _refusal(declined, shown) from declined
    queries = []
    for number, part in enumerate(parts):
        template = replace(
            part.query.template,
            shown=parameters.shown,
            branch=branch + number,
            further=further,
            part=number,
        )
        columns = parameters.columns
        queries.append(replace(part.query, template=template, shown=columns, step=step))
    return [replace(query, parts=tuple(queries)) for query in queries]


def _refusal(declined: DeclinedError, shown: str) -> NotShareableError:
    left = declined.left_to_spark()
    return NotShareableError(f"cannot stand: {left.detail or left.why}: {shown}")
