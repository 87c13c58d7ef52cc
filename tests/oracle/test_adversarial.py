"""The adversarial queries, small: everybody who is measured gives the rows of plain Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from bench.adversarial.analyzed import SETTINGS
from bench.adversarial.benchmark import CASES, queries
from bench.adversarial.case import Case
from bench.adversarial.costly_orders import SkewedKeys
from bench.adversarial.orders import Triangle
from bench.against_plain import JOINS, adapted
from bench.answers import require_same_rows

pytestmark = pytest.mark.slow(80)

SIZE = 0.02
"""Of the benchmark's tables: each query has rows left."""

SIZES: Final = {Triangle: 0.002, SkewedKeys: 0.002}
"""Of tables of which two make a million pairs and more: these go one by one through plain Spark."""

COST = 0.1
"""Of the benchmark's functions, which keep their core busy: the costliest still cost the most."""

FEW_BINS = "16"
"""Of a histogram. With 254, as by default, Spark takes 6 s to estimate a join of skewed keys."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_same_rows_as_plain_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: type[Case]
) -> None:
    monkeypatch.setitem(SETTINGS, "spark.sql.statistics.histogram.numBins", FEW_BINS)
    cheaper = [replace(each, microseconds=COST * each.microseconds) for each in case.functions]
    monkeypatch.setattr(case, "functions", cheaper)
    (query,) = queries(spark, [case], tmp_path, SIZES.get(case, SIZE))
    expected = query.ask().toArrow()
    assert len(expected) > 0
    for ask in query.opponents.values():
        require_same_rows(expected, ask().toArrow())
    for joins in JOINS:
        frame = query.ask()
        changed = adapted(frame, joins)
        if changed is not frame:
            require_same_rows(expected, changed.toArrow())
