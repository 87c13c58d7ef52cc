"""Rebuilds a region around its join block.

From the bottom up: each input with its native conditions, projected to the columns that it
brings; the map side; one shuffle of blobs by cell; the reduce side; a projection that gives
the block's columns the identities of the attributes they stand for; and the region's own
output over these. Every attribute above keeps its identity.

450 lines: these are the steps of one rewriting, each of which goes on where the one before ends.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, count
from typing import Final, TypeAlias

import pyarrow as pa
from pyspark.accumulators import Accumulator
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from eddyline import catalyst
from eddyline.asking.driver_channel import Address
from eddyline.blocks.column_types import arrow_type, spark_type
from eddyline.blocks.filter_block import SessionSettings, fused_name
from eddyline.blocks.join_block import JoinBlock
from eddyline.blocks.lookup_table import BlockLookup
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.catalyst import CatalystExpression, PickledFunction, Plan
from eddyline.engine.join.input_eddy import predicates_with_calls
from eddyline.engine.join_query import JoinQuery, JoinRelation
from eddyline.exchange.hypercube import Hypercube, plan_hypercube
from eddyline.expressions import Argument, Comparison, ComparisonOperator, Expression
from eddyline.planner.claim.bindings import looked_up_relation, require_bound
from eddyline.planner.claim.join_choice import driving_input
from eddyline.planner.claim.join_claim import JoinClaim
from eddyline.planner.claim.join_inputs import Input, in_relations, inputs_of, qualified, told_apart
from eddyline.planner.claim.own_values import looked_up_query
from eddyline.planner.claim.session_settings import session_settings
from eddyline.planner.rewrite.sampled_keys import sampled_heavy_keys
from eddyline.planner.rewrite.steps import (
    blobs_of,
    in_one_row,
    map_in_arrow,
    with_identities,
    with_value,
)
from eddyline.quirks import arrow_columns
from eddyline.quirks.numbered_partitions import repartitioned
from eddyline.tasks.in_place import SMALL_INPUTS, InPlaceSide
from eddyline.tasks.map_side import MapSide
from eddyline.tasks.matches import LeftBehind, MatchesSide, left_behind, matches_type
from eddyline.tasks.our_functions import pickled
from eddyline.tasks.reduce_side import ReduceSide
from eddyline.tasks.sampling import HEAVY_KEYS
from eddyline.tasks.task_records import Records
from eddyline.tasks.tiny_inputs import TinyInputsSide

TINY: Final = 1 << 20
"""Bytes of a small input that is read in one task, where no function is asked about its rows.

Each task has to start Python's side anew, and what several tasks have read is shuffled into one.
Two and four inputs of 1,000 rows were together in 200 and 350 ms if all were read in one task, and
in 290 and 480 ms if not. All that one task reads goes through one function: five inputs of 16 to
26,000 rows were together in 515 ms, in 835 ms by a function each. Nested columns have their own.
"""

ONE_TASK: Final = 1 << 12
"""Constants that are one task's. Spark would deal them out, and each task ask for its part.

All are known before the first call, so calls for them are full; more of them are worth the cores.
"""

MATCHES: Final = "matches"
"""The column of a row's matches, where the row stays in the JVM."""

Registered: TypeAlias = "Callable[[JoinBlock, bytes, Callable[[JoinBlock], bytes]], None]"
"""Takes note of a block, of the function that runs it, and of what makes that of another limit."""


@dataclass(frozen=True)
class JoinBlockContext:
    """What blocks of one call of ``adapt`` are made with."""

    spark: SparkSession
    options: RoutingOptions
    records: Accumulator[Records]
    register: Registered
    server: Callable[[], Address]
    telling: Callable[[JoinBlock], JoinBlock]
    numbers: Iterator[int] = field(default_factory=count)


def rebuilt(context: JoinBlockContext, claim: JoinClaim, plans: Sequence[Plan]) -> Plan:
    """Return a claimed region over its inputs."""
    spark = context.spark
    settings = session_settings(spark)
    inputs, places = inputs_of(claim, plans)
    inputs += constant_inputs(spark, claim)
    catalyst.look_at(source.plan for source in inputs)
    block = join_block(claim, plans, inputs, places, settings)
    if block.lookups:
        block = replace(block, server=context.server())
    block = context.telling(block)
    environments = claim.environments or (catalyst.plain_environment(spark.sparkContext),)
    driver = driving_input(spark, block)
    if driver is not None:
        joined = in_place(context, block, inputs, driver, environments)
    else:
        cells = 2 * spark.sparkContext.defaultParallelism
        joined = over_one_shuffle(context, block, inputs, cells, environments)
    return with_identities(claim, joined)


def join_block(
    claim: JoinClaim,
    plans: Sequence[Plan],
    inputs: Sequence[Input],
    places: dict[int, int],
    settings: SessionSettings,
) -> JoinBlock:
    """Describe a claim as plain data."""
    zone = settings.time_zone
    relations: list[JoinRelation] = []
    lookups: list[BlockLookup] = []
    names = []
    sizes = []
    for number, source in enumerate(inputs):
        types = tuple(arrow_type(catalyst.data_type(handle), zone) for handle in source.handles)
        boolean = arrow_type('"boolean"', zone)
        names.append(tuple(catalyst.pretty(handle) for handle in source.handles) or ("-",))
        table = claim.looked_up.get(number)
        if table is not None:
            relation, of_relation = looked_up_relation(table, source.columns, types)
            relations.append(relation)
            lookups += of_relation
            sizes.append(catalyst.size_in_bytes(source.plan) if table.scan else 0)
            continue
        name = "constants" if number >= len(plans) else catalyst.table_name(source.plan)
        relations.append(JoinRelation(name or "", types or (boolean,)))
        sizes.append(catalyst.size_in_bytes(source.plan))

    def placed(expression: Expression) -> Expression:
        return in_relations(expression, places)

    width = sum(len(relation.types) for relation in relations)
    first_constant = width - len(claim.constants)
    given = [
        Comparison(
            ComparisonOperator.EQUAL,
            placed(constants.column),
            Argument(first_constant + number, constants.column.type),
        )
        for number, constants in enumerate(claim.constants)
    ]
    called = told_apart([relation.name for relation in relations], inputs)
    predicates = tuple(map(placed, claim.predicates))
    query = JoinQuery(
        tuple(
            replace(relation, name=name) for relation, name in zip(relations, called, strict=True)
        ),
        (*predicates, *given),
        tuple(placed(value) for _, value in claim.outputs),
        tuple(
            qualified(predicate, text, called, names)
            for predicate, text in zip(predicates, claim.texts, strict=True)
        ),
        tuple(function.name for function in claim.functions),
        tuple(chain.from_iterable(names)),
    )
    require_bound(query, names, (*map(catalyst.pretty, claim.above), *claim.texts))
    looked_up = looked_up_query(query, lookups, names)
    query = looked_up.query
    types_out = tuple(catalyst.data_type(attribute) for attribute, _ in claim.outputs)
    if not query.outputs:  # where rows are only counted, a column is needed to count them by
        first = query.column(0, 0)
        handle = inputs[0].handles[0] if inputs[0].handles else catalyst.literal_true()
        query = replace(query, outputs=(first,))
        types_out = (catalyst.data_type(handle),)
    block = JoinBlock(
        "",
        query,
        claim.functions,
        settings,
        tuple(sizes),
        types_out,
        looked_up.column_names,
        lookups=looked_up.lookups,
        notes=claim.notes,
        reduced=claim.reduced,
        limit=claim.limit,
        stops=claim.limit > 0 and not claim.above,
    )
    identity = hashlib.sha256(repr(block).encode()).hexdigest()[:16]
    return replace(block, identity=identity)


def constant_inputs(spark: SparkSession, claim: JoinClaim) -> list[Input]:
    """Return an input for each column that a condition sets equal to constants."""
    inputs = []
    for constants in claim.constants:
        column = constants.column
        values = pa.array(constants.values, column.type)
        # By itself Spark takes a time without a zone for one of the session's.
        kind = from_arrow_type(column.type, prefer_timestamp_ntz=True)
        struct = StructType([StructField("c0", kind)])
        rows = spark.createDataFrame(pa.table([values], names=["c0"]), struct)
        if len(constants.values) <= ONE_TASK:
            rows = rows.coalesce(1)
        plan = catalyst.analyzed_plan(rows)
        inputs.append(Input(plan, tuple(catalyst.outputs(plan))))
    return inputs


def over_one_shuffle(
    context: JoinBlockContext,
    block: JoinBlock,
    inputs: Sequence[Input],
    cells: int,
    environments: Sequence[PickledFunction],
) -> Plan:
    """Return the block as one hypercube shuffle."""
    cube = plan_hypercube(block.graph, block.sizes, cells)
    numbers = block.scanned
    heavy = sampled_heavy_keys(context.spark, block, inputs, cube, environments)
    sent = _blobs(context, block, inputs, numbers, cube, environments, heavy)
    blobs = catalyst.dataframe_over(context.spark, sent)
    meeting = catalyst.analyzed_plan(repartitioned(blobs, cube.cells, "cell"))
    layout = f"{cube.cells} cells of one shuffle: {_described(block, cube)}"
    if heavy is not None:
        layout += "; rows of heavy keys, found in a sample, are dealt out"
    return _last(context, replace(block, layout=layout), meeting, environments, ReduceSide)


def in_place(
    context: JoinBlockContext,
    block: JoinBlock,
    inputs: Sequence[Input],
    driver: int,
    environments: Sequence[PickledFunction],
) -> Plan:
    """Return the block without a shuffle: the rows of ``driver`` stay where they are.

    All other inputs are small. They are gathered into one value by a scalar
    subquery, which Spark runs when the query runs, and the first row of each partition
    carries it along. All nodes are made as they are analyzed: by DataFrames each step would
    take an analysis of 15 to 20 ms.
    """
    wide = left_behind(block, driver)
    block = replace(block, layout=_in_place_layout(block, driver, wide))
    if wide is not None:
        wide = replace(wide, block=replace(wide.block, layout=block.layout))
    described = block if wide is None else wide.block
    plan = with_small_inputs(context, described, inputs, driver, inputs[driver].plan, environments)
    if wide is not None:
        return _matched(context, wide, driver, plan, environments)
    side = partial(InPlaceSide, driver, next(context.numbers))
    return _last(context, block, plan, environments, side)


def with_small_inputs(
    context: JoinBlockContext,
    block: JoinBlock,
    inputs: Sequence[Input],
    driver: int,
    plan: Plan,
    environments: Sequence[PickledFunction],
) -> Plan:
    """Return a plan of the rows of ``driver`` that carries all other inputs along, for a block."""
    others = [number for number in block.scanned if number != driver]
    if others:
        blobs = _blobs(
            context, block, inputs, others, Hypercube((), ()), environments, gathered=True
        )
        one_row = in_one_row(context.spark, blobs)
        gathered = catalyst.scalar_subquery(context.spark, one_row)
    else:
        gathered = catalyst.no_bytes()
    return with_value(plan, SMALL_INPUTS, gathered)


def _in_place_layout(block: JoinBlock, driver: int, wide: LeftBehind | None) -> str:
    """Return how the inputs meet, in words."""
    name = block.query.relations[driver].name
    layout = f"no shuffle: {name} stays in place, all other inputs are broadcast"
    if wide is None:
        return layout
    columns = len(block.query.relations[driver].types)
    return f"{layout}; Python gets {len(wide.columns)} of its {columns} columns"


def _matched(
    context: JoinBlockContext,
    wide: LeftBehind,
    driver: int,
    plan: Plan,
    environments: Sequence[PickledFunction],
) -> Plan:
    """Return a join in place whose driving rows stay in the JVM."""
    columns = catalyst.outputs(plan)
    travelling = [columns[column] for column in wide.columns]
    staying = sorted({column for column in wide.outputs if column >= 0})
    kept = [columns[column] for column in staying]
    rows = with_matches(context, wide.block, driver, plan, travelling, kept, environments)
    *kept, matches = catalyst.outputs(rows)
    inlined = catalyst.inlined(matches, kept, rows)
    given = catalyst.outputs(inlined)
    outputs = [staying.index(n) if n >= 0 else len(kept) - n - 1 for n in wide.outputs]
    return catalyst.projected([given[place] for place in outputs], inlined)


def with_matches(
    context: JoinBlockContext,
    block: JoinBlock,
    driver: int,
    plan: Plan,
    travelling: Sequence[CatalystExpression],
    kept: Sequence[CatalystExpression],
    environments: Sequence[PickledFunction],
) -> Plan:
    """Return the columns of a plan that are ``kept``, and the array of each row's matches."""
    result = matches_type(block)
    number = next(context.numbers)
    side = MatchesSide(driver, number, block, context.options, context.records)

    def command_of(block: JoinBlock) -> bytes:
        return pickled(arrow_columns.by_task(replace(side, block=block)), result)

    command = command_of(block)
    context.register(block, command, command_of)
    call = catalyst.python_call(
        name=_block_name(block),
        command=command,
        like=environments,
        return_type=result.json(),
        arguments=[*travelling, catalyst.outputs(plan)[-1]],
        kind=arrow_columns.BY_TASK,
    )
    matches = catalyst.new_attribute(MATCHES, call)
    plan = catalyst.arrow_evaluation(call, matches, arrow_columns.BY_TASK, plan)
    # A filter from above that Spark pushed below the function could drop the rows that bring the
    # small inputs. Below a projection that is not deterministic it pushes none, and the analyzer
    # allows no function that is not deterministic in this place.
    return catalyst.projected([*kept, catalyst.named(catalyst.in_any_row(matches), MATCHES)], plan)


def _block_name(block: JoinBlock) -> str:
    inputs = " join ".join(relation.name for relation in block.query.relations)
    return fused_name([inputs, *block.steps[: len(block.graph.predicates)]])


def _last(
    context: JoinBlockContext,
    block: JoinBlock,
    plan: Plan,
    environments: Sequence[PickledFunction],
    side: Callable[[JoinBlock, RoutingOptions, Accumulator[Records]], Callable[..., object]],
) -> Plan:
    """Return the step that joins, and let it be found again."""
    function = side(block, context.options, context.records)
    result = output_type(block)
    command = pickled(function, result)
    context.register(
        block,
        command,
        lambda again: pickled(side(again, context.options, context.records), result),
    )
    return map_in_arrow(plan, command, result, environments, name=_block_name(block))


def _described(block: JoinBlock, cube: Hypercube) -> str:
    """Return the shares of a grid in words."""
    parts = []
    for dimension, share in zip(cube.dimensions, cube.shares, strict=True):
        if dimension.own is not None:
            parts.append(f"{share} by the rows of {block.query.relations[dimension.own].name}")
        else:
            names = (
                f"{block.query.relations[r].name}.{block.column_names[r][column]}"
                for r, column in enumerate(dimension.columns)
                if column is not None
            )
            parts.append(f"{share} by {' = '.join(names)}")
    return " x ".join(parts) or "all rows in one"


def _blobs(
    context: JoinBlockContext,
    block: JoinBlock,
    inputs: Sequence[Input],
    numbers: Sequence[int],
    cube: Hypercube,
    environments: Sequence[PickledFunction],
    heavy: Plan | None = None,
    *,
    gathered: bool = False,
) -> Plan:
    """Return the rows of some inputs as blobs by cell; ``heavy`` is a row of the heavy keys.

    Those that are to be ``gathered`` are framed.
    """
    graph = block.graph
    keys_found = None if heavy is None else catalyst.scalar_subquery(context.spark, heavy)
    sides = {}
    for relation in numbers:
        places = (place for places in graph.classes for place in places)
        keys = sorted({place.column for place in places if place.relation == relation})
        copied = not cube.dimensions or cube.copies(relation) > 1
        sampled = keys_found is not None
        sides[relation] = MapSide(
            block, relation, tuple(keys), cube, copied, sampled, context.options, context.records
        )
    tiny = [r for r in numbers if not cube.dimensions and _is_tiny(block, inputs, r)]
    apart = set(numbers)
    sent: list[Plan] = []
    flat = [r for r in tiny if not any(map(pa.types.is_nested, block.query.relations[r].types))]
    if len(flat) > 1 and (read := catalyst.together([inputs[r].plan for r in flat])) is not None:
        rows, columns = read
        side = TinyInputsSide(tuple(sides[r] for r in flat), tuple(columns))
        rows = catalyst.in_one_partition(rows)
        sent.append(blobs_of(rows, side, environments, gathered=gathered))
        apart.difference_update(flat)
    for relation in sorted(apart):
        plan = inputs[relation].plan
        if keys_found is not None:
            plan = with_value(plan, HEAVY_KEYS, keys_found)
        if relation in tiny:
            plan = catalyst.in_one_partition(plan)
        sent.append(blobs_of(plan, sides[relation], environments, gathered=gathered))
    if len(sent) == 1:
        return sent[0]
    blobs = catalyst.union(sent)
    return catalyst.in_one_partition(blobs) if len(tiny) == len(numbers) else blobs


def _is_tiny(block: JoinBlock, inputs: Sequence[Input], relation: int) -> bool:
    """Whether an input is read sooner by one task than by several that somebody waits for."""
    return (
        block.sizes[relation] <= TINY
        and not predicates_with_calls(block.graph, relation)
        and not catalyst.has_python_function(inputs[relation].plan)
    )


def output_type(block: JoinBlock) -> StructType:
    """Return the Spark type of the block's rows."""
    fields = [StructField(f"c{n}", spark_type(text)) for n, text in enumerate(block.output_types)]
    return StructType(fields)
