"""A case of real tables: the flights of 2013 among four tables that say more about them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from bench.adversarial.case import Case, Columns, CostlyFunction
from eddyline_demos.flights import TABLES, create_views, write_parquet

FLIGHTS = 336_776


def _is_late_for_its_way(minutes: int | None, miles: int) -> bool:
    return minutes is not None and minutes * 60 > miles


class StarOfFlights(Case):
    """Five real tables: native predicates on the aircraft and the wind keep one flight in 200.

    A model looks at the flights. Spark asks it about each of them, before the joins.
    """

    functions = (CostlyFunction("is_late_for_its_way", _is_late_for_its_way, microseconds=40),)
    tables = TABLES

    def columns(self, draw: np.random.Generator) -> Mapping[str, Columns]:  # noqa: ARG002 - its tables are there
        """Return nothing: no table is drawn."""
        return {}

    def create(self, spark: SparkSession, folder: Path) -> None:
        """Write the flights, or evenly spread over the year as many of them as ``size`` says."""
        folder.mkdir(parents=True)
        write_parquet(folder, sample=min(self.rows(FLIGHTS), FLIGHTS))
        create_views(spark, folder)
