"""Spark for standing queries, whose jobs with state begin quickly."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.quick_python import quick_python


@pytest.fixture(scope="module")
def spark(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session of the run."""
    with quick_python(spark, tmp_path_factory.getbasetemp()):
        yield spark
