"""Steps of a plan that run a function of ours: what a join block is put together from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from eddyline.exchange.blobs import SCHEMA
from eddyline.spark.host import catalyst
from eddyline.spark.host.catalyst import PickledFunction, Plan

MAP_ARROW: Final = 207
"""Spark's evaluation type of a function over an iterator of record batches."""

STEP: Final = "rows for an eddy"
"""Name of the functions that only bring rows to where they meet."""

BLOBS: Final = from_arrow_schema(SCHEMA)
"""The Spark type of blobs, one a row."""

_FIRST_OF_PARTITION: Final = f"monotonically_increasing_id() & {(1 << 33) - 1}L = 0"


def with_value(spark: SparkSession, plan: Plan, name: str, value: DataFrame) -> Plan:
    """Return a plan of which the first row of each partition carries a value.

    ``value`` is a DataFrame of one row and one column. It runs when the query runs, before it.
    """
    carried = F.when(F.expr(_FIRST_OF_PARTITION), value.scalar())
    return catalyst.analyzed_plan(catalyst.dataframe_over(spark, plan).withColumn(name, carried))


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
        arguments=catalyst.outputs(plan),
        kind=MAP_ARROW,
    )
    return catalyst.mapped_in_arrow(call, result.json(), plan)
