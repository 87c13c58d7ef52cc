"""Steps of a plan that run a function of ours, and what gives its rows their places in the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from eddyline import catalyst
from eddyline.catalyst import CatalystExpression, PickledFunction, Plan
from eddyline.exchange import framing
from eddyline.exchange.blobs import SCHEMA
from eddyline.planner.claim.join_claim import JoinClaim
from eddyline.quirks.gathered_binaries import all_in_one
from eddyline.tasks.framed_side import FramedSide
from eddyline.tasks.our_functions import pickled

MAP_ARROW: Final = 207
"""Spark's evaluation type of a function over an iterator of record batches."""

STEP: Final = "rows for an eddy"
"""Name of the functions that only bring rows to where they meet."""

BLOBS: Final = from_arrow_schema(SCHEMA)
"""The Spark type of blobs, one a row."""

_FRAMES_APART: Final = from_arrow_schema(framing.SCHEMA)

_gathering: WeakKeyDictionary[SparkSession, Plan] = WeakKeyDictionary()


def with_value(plan: Plan, name: str, value: CatalystExpression) -> Plan:
    """Return a plan with a value in the first row of each partition, in a last column."""
    carried = catalyst.named(catalyst.in_first_row(value), name)
    return catalyst.output_and_more(plan, plan, [carried])


def blobs_of(
    plan: Plan,
    side: Callable[..., Iterator[pa.RecordBatch]],
    environments: Sequence[PickledFunction],
    *,
    gathered: bool,
) -> Plan:
    """Return the blobs that a function makes of a plan, framed where they are to be gathered."""
    if gathered:
        side, kind = FramedSide(side), _FRAMES_APART
    else:
        kind = BLOBS
    return map_in_arrow(plan, pickled(side, kind), kind, environments)


def in_one_row(spark: SparkSession, framed: Plan) -> Plan:
    """Return all frames in one column of one row; NULL where there are none.

    What gathers them is analyzed once a session: that takes 20 ms, whatever is below it, and the
    first time in a JVM 0.2 s; put together of DataFrames, 0.4.
    """
    known = _gathering.get(spark)
    if known is None:
        (frame,) = _FRAMES_APART
        nothing = f"SELECT CAST(NULL AS {frame.dataType.simpleString()}) AS {frame.name}"
        frames = f"{all_in_one(frame.name)} AS frames"
        gathered = spark.sql(f"SELECT {frames} FROM ({nothing})")  # noqa: S608 - names of ours
        known = _gathering[spark] = catalyst.analyzed_plan(gathered)
    return catalyst.over_rows_of(known, framed)


def map_in_arrow(
    plan: Plan,
    command: bytes,
    result: StructType,
    environments: Sequence[PickledFunction],
    *,
    name: str = STEP,
) -> Plan:
    """Return a function, pickled, over the record batches of a plan."""
    call = catalyst.python_call(
        name=name,
        command=command,
        like=environments,
        return_type=result.json(),
        arguments=plan,
        kind=MAP_ARROW,
    )
    return catalyst.mapped_in_arrow(call, result.json(), plan)


def with_identities(claim: JoinClaim, joined: Plan) -> Plan:
    """Return the region's output over the block's."""
    columns = catalyst.outputs(joined)
    attributes = [attribute for attribute, _ in claim.outputs]
    items = [
        catalyst.attribute_like(attribute, as_nullable_as(attribute, column))
        for attribute, column in zip(attributes, columns, strict=False)
    ]
    rows = catalyst.projected(items, joined)
    if claim.above:
        rows = catalyst.filtered(catalyst.conjunction(claim.above), rows)
    for values in claim.later:
        rows = values.over(rows)
    return catalyst.projected(claim.items, rows)


def as_nullable_as(attribute: CatalystExpression, column: CatalystExpression) -> CatalystExpression:
    """Return a column as never NULL where the attribute that it stands for never is.

    All rows that the block gives have passed what makes sure of that in the region. Without it
    expressions above would read as never NULL what is said to be NULL at times.
    """
    if catalyst.is_nullable(attribute) or not catalyst.is_nullable(column):
        return column
    return catalyst.known_not_null(column)
