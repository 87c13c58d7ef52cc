"""Arrow's tables to DataFrames and back in tests, also with a PySpark that cannot, as 3.5."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from eddyline.blocks.column_types import as_sent
from eddyline.quirks.pyspark_at_hand import MINOR


def stand_in_where_needed() -> None:
    """Give DataFrames and sessions what later versions have, by files of Parquet."""
    if MINOR >= (4, 0):
        return
    without: Any = SparkSession.createDataFrame

    def with_tables(spark: SparkSession, data: Any, schema: Any = None, **more: Any) -> DataFrame:  # noqa: ANN401 - as PySpark's
        if not isinstance(data, pa.Table):
            made: DataFrame = without(spark, data, schema, **more)
            return made
        folder = Path(tempfile.mkdtemp())
        pq.write_table(data, folder / "table.parquet")
        reader = spark.read if schema is None else spark.read.schema(schema)
        return reader.parquet(str(folder))

    def to_arrow(df: Any) -> pa.Table:  # noqa: ANN401 - what it calls is none of its public methods
        table = pa.Table.from_batches(df._collect_as_arrow())
        zoned = [field.with_type(as_sent(field.type, "UTC")) for field in table.schema]
        return table.cast(pa.schema(zoned))  # as later versions name the zone

    sessions: Any = SparkSession
    frames: Any = DataFrame
    sessions.createDataFrame, frames.toArrow = with_tables, to_arrow
