"""What the functions are asked: columns of numbers that repeat as in life, or not at all."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

PARTS: Final = 2
"""Files of a table, one for each core."""

SEED: Final = 0

DISTINCT: Final = 1_000
"""Arguments that are drawn evenly."""

ZIPF_VALUES: Final = 100_000
"""Arguments to draw from by Zipf's law; most of them are drawn once or never."""

ZIPF_EXPONENT: Final = 1.2

GROUPS: Final = 1_000
"""Rows of the table to join with."""


class Law(StrEnum):
    """How often arguments repeat."""

    UNIFORM = "1,000 distinct"
    ZIPF = "Zipf 1.2"
    DISTINCT = "all distinct"


def drawn(law: Law, rows: int) -> npt.NDArray[np.int64]:
    """Return the arguments of so many rows, in random order; the same in each process."""
    draw = np.random.default_rng(SEED)
    if law is Law.UNIFORM:
        return draw.integers(DISTINCT, size=rows)
    if law is Law.DISTINCT:
        return draw.permutation(rows)
    weights = np.arange(1, ZIPF_VALUES + 1) ** -ZIPF_EXPONENT
    numbers = draw.permutation(ZIPF_VALUES)  # a frequent one is as likely large as small
    return numbers[draw.choice(ZIPF_VALUES, size=rows, p=weights / weights.sum())]


def table_of(spark: SparkSession, law: Law, rows: int, folder: Path) -> str:
    """Write rows of ``id``, ``x`` and ``y`` (by the law) and ``grp``; return the view's name.

    What a law gives for fewer rows is not the beginning of what it gives for more.
    """
    name = f"{law.name.lower()}_{rows}"
    into = folder / name
    if not into.exists():
        into.mkdir(parents=True)
        x = drawn(law, rows)
        table = pa.table(
            {"id": np.arange(rows), "x": x, "y": x[::-1], "grp": np.arange(rows) * 7919 % GROUPS}
        )
        for part in range(PARTS):
            piece = table.take(np.arange(part, rows, PARTS))
            pq.write_table(piece, into / f"part-{part}.parquet")
    spark.read.parquet(str(into)).createOrReplaceTempView(name)
    return name


def groups(spark: SparkSession, folder: Path) -> None:
    """Write the table that rows are joined with: ``grp`` and ``kind``, of which there are 20."""
    into = folder / "groups"
    into.mkdir(parents=True)
    numbers = np.arange(GROUPS)
    pq.write_table(pa.table({"grp": numbers, "kind": numbers % 20}), into / "groups.parquet")
    spark.read.parquet(str(into)).createOrReplaceTempView("groups")
