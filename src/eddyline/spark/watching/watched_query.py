"""What of a DataFrame is watched: a block, the scans that feed it, and an aggregate over it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from eddyline.errors import EddylineError
from eddyline.online.running_aggregates import Aggregate, AggregateFunction
from eddyline.query.expressions import Expression
from eddyline.spark.blocks.column_types import arrow_type
from eddyline.spark.blocks.join_block import JoinBlock
from eddyline.spark.blocks.lookup_table import LookupTable
from eddyline.spark.claiming.bindings import UnboundLookupError
from eddyline.spark.claiming.join_claim import claim_region
from eddyline.spark.claiming.join_inputs import Input, inputs_of
from eddyline.spark.claiming.session_settings import session_settings
from eddyline.spark.decline import DeclinedError
from eddyline.spark.host import catalyst
from eddyline.spark.host.catalyst import CatalystExpression, Plan
from eddyline.spark.plan.chains import Tree
from eddyline.spark.plan.concurrent_marks import marks_in
from eddyline.spark.plan.lookup_leaves import lookup_leaves
from eddyline.spark.plan.regions import Region, read_region
from eddyline.spark.rewriting.join_rewrite import constant_inputs, join_block
from eddyline.spark.rewriting.rewrite_plan import TableOf
from eddyline.spark.rewriting.scanned_tables import scan_of, with_scans
from eddyline.spark.rewriting.semijoins import forms

_FUNCTIONS: Final = {
    "Count": AggregateFunction.COUNT,
    "Sum": AggregateFunction.SUM,
    "Average": AggregateFunction.AVG,
}

_NUMBERS: Final = {"byte", "short", "integer", "long", "float", "double"}


class NotWatchableError(EddylineError, ValueError):
    """A query has a part that cannot be watched."""


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An aggregate over a block's rows: its first outputs are the groups.

    ``groups`` are the names of their columns, with their types. ``order`` gives for each column of
    the DataFrame its place among groups and aggregates; ``names`` are those of all columns then,
    an aggregate's followed by those of its bounds.
    """

    groups: tuple[tuple[str, pa.DataType], ...]
    aggregates: tuple[Aggregate, ...]
    order: tuple[int, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class WatchedQuery:
    """A block, and a DataFrame for each scan of it, by number of relation.

    ``names``, ``types`` (Spark's, as JSON) and ``values`` are those of the columns that are
    watched, or aggregated; ``Argument(i)`` in the values is output number i of the block.
    """

    block: JoinBlock
    scans: dict[int, DataFrame]
    names: tuple[str, ...]
    types: tuple[str, ...]
    values: tuple[Expression, ...]
    aggregation: Aggregation | None


def watched_query(df: ClassicDataFrame, table_of: TableOf | None) -> WatchedQuery:
    """Return what is watched of a DataFrame; NotWatchableError says what stands in the way."""
    if df.isStreaming:
        raise NotWatchableError("a stream has no end to be watched for; a batch query has")
    over = _aggregate_in(catalyst.analyzed_plan(df))
    if over is None:
        return _watched(df, table_of, None)
    plan, order = over
    rows, aggregation = _aggregation(df, plan, order)
    return _watched(rows, table_of, aggregation)


def _aggregate_in(plan: Plan) -> tuple[Plan, list[int] | None] | None:
    """Return the aggregate at the top of a plan, below a choice of its columns at the most."""
    order = None
    while True:
        kind = catalyst.class_name(plan).rpartition(".")[2]
        if kind == "Aggregate":
            return plan, order
        (child, *more) = catalyst.children(plan) or [plan]
        if more or child is plan:
            return None
        if kind == "SubqueryAlias":
            plan = child
        elif kind == "Project" and order is None:
            numbers = catalyst.output_numbers(child)
            chosen = [_attribute_number(item) for item in catalyst.project_list(plan)]
            order = [numbers.index(number) for number in chosen if number in numbers]
            if len(order) < len(chosen) or len(set(order)) < len(order):
                return None
            plan = child
        else:
            return None


def _attribute_number(item: CatalystExpression) -> int | None:
    """Return the number of the attribute that an item of a projection is, by whatever name."""
    tree = Tree.of(item)
    while tree.name == "Alias":
        tree = tree.children[0]
    return tree.identity[0] if tree.name == "AttributeReference" else None


def _aggregation(
    df: ClassicDataFrame, plan: Plan, order: list[int] | None
) -> tuple[ClassicDataFrame, Aggregation]:
    """Return the rows that an aggregate is over, and how they are aggregated."""
    (child,) = catalyst.children(plan)
    groups = catalyst.grouping(plan)
    items = [catalyst.named(group, f"g{n}") for n, group in enumerate(groups)]
    names = [""] * len(groups)
    aggregates: list[Aggregate] = []
    places: list[int] = []
    zone = session_settings(df.sparkSession).time_zone
    outputs = catalyst.outputs(plan)
    for item, output in zip(catalyst.aggregated(plan), outputs, strict=True):
        value = item if Tree.of(item).name != "Alias" else Tree.of(item).children[0].handle
        found = [n for n, group in enumerate(groups) if catalyst.same_value(value, group)]
        if found:
            places.append(found[0])
            continue
        function, argument = _function(Tree.of(value))
        column = None
        if argument is not None:
            column = len(items)
            items.append(catalyst.named(argument.handle, f"a{column}"))
        kind = arrow_type(catalyst.data_type(output), zone)
        places.append(len(groups) + len(aggregates))
        aggregates.append(Aggregate(function, column, "", kind))
    if not aggregates:
        raise NotWatchableError("DISTINCT has no estimate: watch the rows, or count them")
    items = items or [catalyst.named(catalyst.literal_true(), "g0")]
    rows = catalyst.dataframe_over(df.sparkSession, catalyst.projected(items, child))
    chosen = tuple(places if order is None else [places[n] for n in order])
    for place, name in zip(chosen, df.columns, strict=True):
        if place < len(groups):
            names[place] = name
        else:
            number = place - len(groups)
            aggregates[number] = replace(aggregates[number], name=name)
    types = [arrow_type(catalyst.data_type(group), zone) for group in groups]
    columns: list[str] = []
    for place, name in zip(chosen, df.columns, strict=True):
        bounds = () if place < len(groups) else (f"{name}_low", f"{name}_high")
        columns += [name, *bounds]
    named_groups = tuple(zip(names, types, strict=True))
    return rows, Aggregation(named_groups, tuple(aggregates), chosen, tuple(columns))


def _function(tree: Tree) -> tuple[AggregateFunction, Tree | None]:
    """Return an aggregate's function and argument; None for a count of rows."""
    if tree.name == "AggregateExpression":
        function, *condition = tree.children
        known = _FUNCTIONS.get(function.name)
        if known is not None and not condition and not tree.node.fields.get("isDistinct"):
            arguments = function.children
            constant = all(each.name == "Literal" for each in arguments)
            if known is AggregateFunction.COUNT and constant:
                return known, None
            if len(arguments) == 1 and (
                known is AggregateFunction.COUNT or _is_number(arguments[0].data_type)
            ):
                return known, arguments[0]
    raise NotWatchableError(
        f"{catalyst.pretty(tree.handle)} has no running estimate: COUNT, SUM and AVG have, "
        f"each of one expression and by itself"
    )


def _is_number(kind: str) -> bool:
    name = kind.strip('"')
    return name in _NUMBERS or name.startswith("decimal")


def _watched(
    df: ClassicDataFrame, table_of: TableOf | None, aggregation: Aggregation | None
) -> WatchedQuery:
    """Return the block that makes all rows of a DataFrame, and its scans."""
    spark = df.sparkSession
    settings = session_settings(spark)
    plan = catalyst.optimized_plan(df, as_written=True)
    plan = plan if table_of is None else next(forms(plan))
    if aggregation is not None:  # a row that is looked up belongs to no unit
        plan = with_scans(plan, table_of)
    region = read_region(plan, looks_up=table_of is not None)
    tables = _tables_in(region, table_of)
    try:
        claim = claim_region(region, settings, tables, whole=True)
    except DeclinedError as declined:
        raise NotWatchableError(f"this cannot be watched: {declined.left_to_spark()}") from None
    inputs, places = inputs_of(claim, region.inputs)
    for number, table in tables.items():
        if table.scan:
            inputs[number] = _scanned(inputs[number])
    inputs += constant_inputs(spark, claim)
    block = join_block(claim, region.inputs, inputs, places, settings)
    scans = {r: _runnable(inputs[r].plan, table_of) for r in block.scanned}
    return WatchedQuery(
        block,
        {r: catalyst.dataframe_over(spark, plan) for r, plan in scans.items()},
        tuple(df.columns),
        tuple(catalyst.data_type(attribute) for attribute in catalyst.outputs(region.top)),
        claim.values,
        aggregation,
    )


def _scanned(looked_up: Input) -> Input:
    """Return the input of a lookup table with its scan as the plan."""
    items = [catalyst.named(handle, f"c{n}") for n, handle in enumerate(looked_up.handles)]
    return replace(looked_up, plan=catalyst.projected(items, scan_of(looked_up.plan)))


def _runnable(scan: Plan, table_of: TableOf | None) -> Plan:
    """Return a scan that Spark can run.

    UnboundLookupError where a lookup table is in it, NotWatchableError for a concurrent function.
    """
    plan = with_scans(scan, table_of)
    for mark in marks_in(plan):
        raise NotWatchableError(
            f"{mark.name} is a concurrent function, which eddyline.adapt has called and watch has "
            f"not: watch the query without it"
        )
    for leaf in () if table_of is None else lookup_leaves(plan):
        table = None if table_of is None else table_of(leaf)
        name = "a lookup table" if table is None else table.name
        raise UnboundLookupError(
            f"{name} is looked up only in the inner joins and filters that are watched; here it "
            f"stands below them."
        )
    return plan


def _tables_in(region: Region, table_of: TableOf | None) -> dict[int, LookupTable]:
    found = ((n, None if table_of is None else table_of(p)) for n, p in enumerate(region.inputs))
    return {number: table for number, table in found if table is not None}
