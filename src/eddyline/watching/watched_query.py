"""The watched part of a DataFrame: a block, the scans that feed it, and an aggregate over it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from eddyline import catalyst
from eddyline.blocks.decline import DeclinedError
from eddyline.blocks.join_block import JoinBlock
from eddyline.blocks.lookup_table import LookupTable
from eddyline.catalyst import Plan
from eddyline.errors import NotWatchableError
from eddyline.expressions import Expression
from eddyline.planner.adapt import chosen_options, rewritten
from eddyline.planner.block_registry import registry_of
from eddyline.planner.claim.join_inputs import Input, inputs_of
from eddyline.planner.claim.join_judgement import claim_region
from eddyline.planner.claim.session_settings import session_settings, task_memory
from eddyline.planner.read.concurrent_marks import marks_in
from eddyline.planner.read.lookup_leaves import lookup_leaves
from eddyline.planner.read.regions import Region, read_region
from eddyline.planner.rewrite.block_walk import TableOf
from eddyline.planner.rewrite.join_rewrite import constant_inputs, join_block
from eddyline.planner.rewrite.scanned_tables import scan_of, with_scans
from eddyline.planner.rewrite.semijoins import forms
from eddyline.quirks.classic_frames import ClassicDataFrame
from eddyline.watching.aggregation import WatchedAggregation, read_aggregation


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
    aggregation: WatchedAggregation | None


def watched_query(df: ClassicDataFrame, table_of: TableOf | None) -> WatchedQuery:
    """Return the watched part of a DataFrame; NotWatchableError says what stands in the way."""
    if df.isStreaming:
        raise NotWatchableError("a stream has no end to be watched for; a batch query has")
    aggregated = read_aggregation(df)
    if aggregated is None:
        return _watched(df, table_of, None)
    rows, aggregation = aggregated
    return _watched(rows, table_of, aggregation)


def _watched(
    df: ClassicDataFrame, table_of: TableOf | None, aggregation: WatchedAggregation | None
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
    scans = {r: _runnable(spark, inputs[r].plan, table_of) for r in block.scanned}
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


def _runnable(spark: SparkSession, scan: Plan, table_of: TableOf | None) -> Plan:
    """Return a scan that Spark can run.

    What only eddies can do in it, such as an outer join with a lookup table and calls of concurrent
    functions, they do in Spark's tasks, as under :func:`~eddyline.adapt`. UnboundLookupError where
    nothing gives values for a lookup table.
    """
    plan = with_scans(scan, table_of)
    looks_up = table_of is not None and any(map(table_of, lookup_leaves(plan)))
    if not looks_up and next(marks_in(plan), None) is None:
        return plan
    chosen = chosen_options("adaptive", 0, "auto", None, remember=True)
    run = registry_of(spark.sparkContext).next_run()
    return rewritten(spark, plan, chosen, task_memory(spark, None), run).plan


def _tables_in(region: Region, table_of: TableOf | None) -> dict[int, LookupTable]:
    tables = ((n, None if table_of is None else table_of(p)) for n, p in enumerate(region.inputs))
    return {number: table for number, table in tables if table is not None}
