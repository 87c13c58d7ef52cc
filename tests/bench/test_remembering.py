"""Functions that are asked again: cached by hand or adapted, they give the rows of plain Spark."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from bench.against_plain import AUTO, adapted
from bench.answers import require_same_rows
from bench.remembering.arguments import Law, drawn, groups
from bench.remembering.benchmark import PLACES, Case
from bench.remembering.functions import Kind

ROWS = 2_000


def places() -> list[Case]:
    kinds = (Case("filter", Law.UNIFORM, 2.0, kind) for kind in (Kind.PANDAS, Kind.ARROW))
    return [*(Case(place, Law.ZIPF, 2.0) for place in PLACES), *kinds]


@pytest.mark.parametrize("case", places(), ids=lambda case: case.name)
def test_same_rows_as_plain_spark(spark: SparkSession, tmp_path: Path, case: Case) -> None:
    groups(spark, tmp_path)
    query = case.query(spark, ROWS, tmp_path)
    expected = query.ask().toArrow()
    assert len(expected) > 0
    for ask in query.opponents.values():
        require_same_rows(expected, ask().toArrow())
    require_same_rows(expected, adapted(query.ask(), AUTO).toArrow())


def test_arguments_repeat_as_the_law_says() -> None:
    distinct = {law: len(np.unique(drawn(law, 30_000))) for law in Law}
    assert distinct[Law.UNIFORM] == 1_000
    assert 1_000 < distinct[Law.ZIPF] < 10_000
    assert distinct[Law.DISTINCT] == 30_000
