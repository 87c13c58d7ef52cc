"""Plain Spark with all that it has against a bad plan: statistics, costs, Bloom filters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

SETTINGS: Final = {
    "spark.sql.cbo.enabled": "true",
    "spark.sql.cbo.planStats.enabled": "true",
    "spark.sql.cbo.joinReorder.enabled": "true",
    "spark.sql.statistics.histogram.enabled": "true",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "true",
    # By default only for scans of 10 GB and more, as a filter has to be built first.
    "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "1B",
}


class AnalyzedTables:
    """A session beside another one, whose SQL sees tables of a catalog that are analyzed.

    It has its own settings, functions and views, so that nothing has to be switched
    back and forth.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.session = spark.newSession()
        for name, value in SETTINGS.items():
            self.session.conf.set(name, value)

    def add(self, tables: Mapping[str, Path], database: str, folder: Path) -> None:
        """Analyze all columns of Parquet tables and use them from now on, as a ``database``."""
        sql = self.session.sql
        sql(f"CREATE DATABASE {database} LOCATION '{folder / 'catalog'}'")
        sql(f"USE {database}")
        for name, path in tables.items():
            sql(f"CREATE TABLE {name} USING parquet LOCATION '{path}'")
            sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS")
