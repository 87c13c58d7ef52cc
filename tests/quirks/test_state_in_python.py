"""Standing queries say of a PySpark that cannot run them what to install."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import eddyline
from eddyline.errors import PySparkTooOldError
from eddyline.quirks.pyspark_at_hand import MINOR


@pytest.mark.skipif(MINOR >= (4, 0), reason="this PySpark keeps state in Python")
def test_standing_queries_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkTooOldError, match=r"Standing queries .*pyspark>=4\.0"):
        eddyline.StandingQueries(spark, streams={}, state=tmp_path)
