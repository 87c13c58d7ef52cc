"""The part of a plan that finds heavy keys in a sample of the inputs."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from eddyline import catalyst
from eddyline.blocks.column_types import width
from eddyline.blocks.join_block import JoinBlock
from eddyline.catalyst import PickledFunction, Plan
from eddyline.engine.join_graph import JoinGraph
from eddyline.engine.join_query import JoinQuery
from eddyline.exchange.hypercube import Dimension, Hypercube
from eddyline.expressions import calls_in
from eddyline.planner.claim.join_inputs import Input
from eddyline.planner.rewrite.steps import blobs_of, in_one_row, map_in_arrow
from eddyline.tasks.our_functions import pickled
from eddyline.tasks.sampling import (
    HEAVY_SCHEMA,
    UNSEEN,
    WORTH_SAMPLING,
    JudgingSide,
    SampleSide,
    sampled_rows,
)


def sampled_heavy_keys(
    spark: SparkSession,
    block: JoinBlock,
    inputs: Sequence[Input],
    cube: Hypercube,
    environments: Sequence[PickledFunction],
) -> Plan | None:
    """Return a row of the heavy keys of a grid, as they will be found in a sample of the inputs.

    None where that is not worth it, or no large input is read as it lies there: others would be
    computed twice.
    """
    if sum(block.sizes) < WORTH_SAMPLING:
        return None
    relations = block.query.relations
    rows = [
        max(size // sum(map(width, relation.types)), 1)
        for size, relation in zip(block.sizes, relations, strict=True)
    ]
    scans = [
        r.scan and catalyst.is_reduced_scan(i.plan) for r, i in zip(relations, inputs, strict=True)
    ]
    known = [_is_known(dimension, scans, rows) for dimension in cube.dimensions]
    counted: list[Plan] = []
    for relation, source in enumerate(inputs):
        dimensions = [
            (number, dimension.columns[relation])
            for number, dimension in enumerate(cube.dimensions)
            if known[number] and scans[relation] and dimension.columns[relation] is not None
        ]
        if not dimensions:
            continue
        first = catalyst.first_rows(sampled_rows(block.sizes[relation]), source.plan)
        columns = catalyst.outputs(source.plan)
        keys = catalyst.projected([columns[c] for _, c in dimensions if c is not None], first)
        side = SampleSide(relation, tuple(number for number, _ in dimensions))
        counted.append(blobs_of(keys, side, environments, gathered=True))
    if not counted:
        return None
    framed = in_one_row(spark, counted[0] if len(counted) == 1 else catalyst.union(counted))
    judging = JudgingSide(cube, tuple(rows), _asked_in_cells(block.query))
    return map_in_arrow(framed, pickled(judging, HEAVY_SCHEMA), HEAVY_SCHEMA, environments)


def _is_known(dimension: Dimension, scans: Sequence[bool], rows: Sequence[int]) -> bool:
    """Tell whether the inputs that can be sampled say enough about the keys of a dimension."""
    along = [r for r, column in enumerate(dimension.columns) if column is not None]
    most = max((rows[r] for r in along if scans[r]), default=0)
    return all(scans[r] or rows[r] <= UNSEEN * most for r in along) and most > 0


def _asked_in_cells(query: JoinQuery) -> frozenset[int]:
    """Return the inputs that a function is asked about only once they have joined.

    A row that is copied would be asked about in each cell. Predicates over one input are
    asked before rows are copied.
    """
    graph = JoinGraph(query)
    joined = [
        predicate
        for predicate, mask in zip(graph.predicates, graph.masks, strict=True)
        if mask & (mask - 1)
    ]
    masks = (
        query.relations_in(call)
        for expression in (*joined, *query.outputs)
        for call in calls_in(expression)
    )
    return frozenset(r for mask in masks for r in range(len(query.relations)) if mask >> r & 1)
