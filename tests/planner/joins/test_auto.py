"""Which joins are claimed by themselves: those worth what they move."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from pyspark.sql.types import BooleanType

import eddyline
from eddyline.blocks.decline import DeclineReason
from eddyline.planner.claim.join_choice import WORTH_MOVING
from tests.planner.joins.broadcasting import broadcasting

ROWS = 200


@F.udf(BooleanType())
def is_odd(value: int) -> bool:
    return value % 2 == 1


def table(spark: SparkSession, name: str, columns: int) -> DataFrame:
    """Return ``columns`` columns of numbers beside an id; all columns are of one size."""
    numbers = pa.array(range(ROWS))
    names = ["id", *(f"{name}_{n}" for n in range(columns))]
    return spark.createDataFrame(pa.table([numbers] * len(names), names=names))


def star(spark: SparkSession, widths: dict[str, int]) -> DataFrame:
    """Join facts with tables of so many columns; a function looks at the facts."""
    joined = table(spark, "facts", 1).filter(is_odd("facts_0"))
    for name, columns in widths.items():
        joined = joined.join(table(spark, name, columns), "id")
    return joined


@pytest.mark.parametrize(
    ("widths", "claimed"),
    [
        pytest.param({"a": 1}, 1, id="half of the bytes are asked about"),
        pytest.param({"a": 1, "b": 1}, 1, id="a third is"),
        pytest.param({"a": 12}, 0, id="a small part is"),
        # With a alone the facts would be half of the bytes, but b spares no rows then.
        pytest.param({"a": 1, "b": 20}, 0, id="and a part of the region is not claimed instead"),
    ],
)
def test_a_shuffle_has_to_be_worth_what_it_moves(
    spark: SparkSession, widths: dict[str, int], claimed: int
) -> None:
    with broadcasting(spark, allowed=False):
        df = star(spark, widths)
        explanation = eddyline.explain(df)
        reasons = {left.reason for left in explanation.left}
        assert sum(bool(block.inputs) for block in explanation.claimable) == claimed
        assert (DeclineReason.MUCH_TO_MOVE in reasons) == (not claimed)


def written(spark: SparkSession, path: Path, columns: Mapping[str, pa.Array]) -> DataFrame:
    """Return a table of one Parquet file."""
    pq.write_table(pa.table(dict(columns)), path)
    return spark.read.parquet(str(path))


def test_what_moves_is_weighed_as_it_is_once_it_is_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The facts are less than a quarter of the files, but 16 of 56 bytes of joined rows."""
    numbers = pa.array(range(ROWS * 50))
    draw = np.random.default_rng(0)
    facts = written(
        spark, tmp_path / "facts.parquet", {"id": numbers, "fact": pa.repeat(7, len(numbers))}
    )
    noise = {f"noise_{n}": pa.array(draw.integers(2**62, size=len(numbers))) for n in range(4)}
    other = written(spark, tmp_path / "other.parquet", {"id": numbers, **noise})
    sizes = [(tmp_path / name).stat().st_size for name in ("facts.parquet", "other.parquet")]
    assert sizes[0] < WORTH_MOVING * sum(sizes)
    with broadcasting(spark, allowed=False):
        explanation = eddyline.explain(facts.filter(is_odd("fact")).join(other, "id"))
        assert [len(block.inputs) for block in explanation.claimable] == [2]


def test_a_file_that_is_gone_is_for_the_query_to_say(spark: SparkSession, tmp_path: Path) -> None:
    numbers = pa.array(range(ROWS))
    gone = written(spark, tmp_path / "gone.parquet", {"id": numbers, "gone_0": numbers})
    (tmp_path / "gone.parquet").unlink()
    with broadcasting(spark, allowed=False):
        joined = eddyline.adapt(gone.filter(is_odd("gone_0")).join(table(spark, "a", 1), "id"))
        with pytest.raises(Exception, match="gone"):
            joined.collect()


def test_what_is_not_shuffled_always_is(spark: SparkSession) -> None:
    with broadcasting(spark, allowed=True):
        explanation = eddyline.explain(star(spark, {"a": 12}))
        assert DeclineReason.MUCH_TO_MOVE not in {left.reason for left in explanation.left}


def test_below_a_limit_joins_are_judged_by_themselves(spark: SparkSession) -> None:
    """The region above a limit does not pay; the one below it is no part of that."""
    with broadcasting(spark, allowed=False):
        below = star(spark, {"a": 1}).limit(20).filter(is_odd("a_0"))
        whole = below.join(table(spark, "wide", 40), "id")
        explanation = eddyline.explain(whole)
        assert DeclineReason.MUCH_TO_MOVE in {left.reason for left in explanation.left}
        assert [len(block.inputs) for block in explanation.claimable if block.inputs] == [2]
