"""The rows of a DataFrame as a table of Arrow's, which PySpark 3.5 gives in batches only."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from eddyline.quirks.pyspark_at_hand import MINOR

_BATCHES: Final = "_collect_as_arrow"
"""PySpark's own way, of which its ``toPandas`` is made."""


def collected(df: DataFrame) -> pa.Table:
    """Return the rows of a DataFrame, read by the driver at once."""
    if MINOR >= (4, 0):
        return df.toArrow()
    batches = getattr(df, _BATCHES)()
    return pa.Table.from_batches(batches, schema=to_arrow_schema(df.schema))
