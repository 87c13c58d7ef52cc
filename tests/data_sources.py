"""PySpark's data sources in Python, also with a PySpark that has none, as 3.5."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eddyline.quirks.pyspark_at_hand import MINOR

if TYPE_CHECKING or MINOR >= (4, 0):
    from pyspark.sql.datasource import DataSource, DataSourceReader
else:

    class DataSource:
        """Nothing registers it."""

    DataSourceReader = DataSource

__all__ = ["DataSource", "DataSourceReader"]
