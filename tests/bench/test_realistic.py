"""The queries over text and records, small: everybody who is measured gives the same rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bench.against_plain import AUTO, adapted
from bench.answers import require_same_rows
from bench.realistic.benchmark import queries
from bench.realistic.queries import QUERIES, Realistic

SIZE = 0.01
"""Of the benchmark's tables: each query has rows left."""


@pytest.mark.parametrize("asked", QUERIES, ids=lambda asked: asked.name)
def test_same_rows_as_plain_spark(spark: SparkSession, tmp_path: Path, asked: Realistic) -> None:
    (query,) = queries(spark, [asked], tmp_path, SIZE)
    expected = query.ask().toArrow()
    assert len(expected) > 0
    for ask in query.opponents.values():
        require_same_rows(expected, ask().toArrow())
    require_same_rows(expected, adapted(query.ask(), AUTO).toArrow())
