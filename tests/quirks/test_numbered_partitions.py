"""Rows in the partitions that a column numbers, with and without a way of Spark's to say so."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

from eddyline.quirks import numbered_partitions
from eddyline.quirks.numbered_partitions import numbers_for, repartitioned


def test_hashes_are_sparks(spark: SparkSession) -> None:
    numbers = [*range(-3, 500), 2**31 - 1, -(2**31)]
    rows = spark.createDataFrame([(n,) for n in numbers], "n int").coalesce(1)
    hashes = numbered_partitions._hashes(np.array(numbers, np.int32)).view(np.int32)
    assert [row[0] for row in rows.select(F.hash("n")).collect()] == hashes.tolist()


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("partitions", [1, 2, 7, 60])
def test_each_row_comes_to_its_partition(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, partitions: int, *, known: bool
) -> None:
    monkeypatch.setattr(numbered_partitions, "_KNOWN", known and numbered_partitions._KNOWN)
    rows = spark.range(300).withColumn("part", F.pmod(F.hash("id"), F.lit(partitions)))
    placed = repartitioned(rows, partitions, "part").withColumn("at", F.spark_partition_id())
    found = placed.collect()
    assert sorted(row.id for row in found) == list(range(300))
    assert all(row.at == row.part for row in found)
    assert placed.drop("at").columns == ["id", "part"]


def test_thousands_of_partitions_have_a_number_each() -> None:
    assert len(set(numbers_for(5_000))) == 5_000
