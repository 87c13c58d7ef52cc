"""Every shape of DataFrame has the rows of plain Spark, and the blocks that it should have."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession

from eddyline import catalyst
from eddyline.planner.adapt import adapt, adapted_blocks
from eddyline.planner.claim.session_settings import session_settings
from eddyline.planner.passes import Making, through_passes
from eddyline.quirks.without_settings import ALWAYS_ON
from tests.planner.shapes import SHAPES, Shape, session
from tests.tasks import reference_filter_task as reference_fused

pytestmark = pytest.mark.slow(70)

BY_NAME = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    return session()


@pytest.fixture(scope="module")
def plain(spark: SparkSession) -> Callable[[Shape], list[str]]:
    """Return the rows of a shape as plain Spark has them; each shape runs once."""
    known: dict[str, list[str]] = {}

    def rows_of(shape: Shape) -> list[str]:
        if shape.name not in known:
            known[shape.name] = rows(shape.build(spark))
        return known[shape.name]

    return rows_of


def rows(df: DataFrame) -> list[str]:
    """Return the bag of rows."""
    return sorted(repr(tuple(row)) for row in df.collect())


@pytest.mark.skipif(bool(ALWAYS_ON), reason="the reference calls functions as PySpark 4.1 does")
@BY_NAME
def test_rewritten_plan(
    shape: Shape, spark: SparkSession, plain: Callable[[Shape], list[str]]
) -> None:
    """The plan is right, whatever runs the blocks: here the reference does."""
    df = shape.build(spark)
    assert catalyst.is_classic(df)
    plan = catalyst.optimized_plan(df)
    rewriting = through_passes(plan, Making(session_settings(spark), reference_fused.fuse))
    assert tuple(frozenset(block.texts) for block in rewriting.blocks) == shape.blocks
    if rewriting.blocks:
        adapted = catalyst.dataframe_like(df, rewriting.plan)
        assert adapted.schema == df.schema
        assert rows(adapted) == plain(shape)
    else:
        assert rewriting.plan is plan


@BY_NAME
def test_in_eddies(shape: Shape, spark: SparkSession, plain: Callable[[Shape], list[str]]) -> None:
    df = shape.build(spark)
    fast = adapt(df, joins="never", remember=False)
    assert (fast is df) == (not shape.blocks and not shape.guarded)
    if fast is not df:  # the very DataFrame would only be plain Spark once more
        assert rows(fast) == plain(shape)
        # Spark optimizes the new plan again: the blocks must come through it.
        assert len(adapted_blocks(fast)) == len(shape.blocks) + shape.guarded
    assert catalyst.is_classic(df)
    if catalyst.has_join(catalyst.optimized_plan(df)):
        with_joins = adapt(df)
        assert with_joins is df or rows(with_joins) == plain(shape)


@BY_NAME
def test_where_functions_remember(
    shape: Shape, spark: SparkSession, plain: Callable[[Shape], list[str]]
) -> None:
    fast = adapt(shape.build(spark))
    assert rows(fast) == plain(shape)
    assert bool(adapted_blocks(fast)) or not shape.blocks


@pytest.mark.parametrize("zone", ["America/St_Johns", "Europe/Paris", "Asia/Kathmandu"])
def test_in_time_zone(spark: SparkSession, zone: str) -> None:
    if ALWAYS_ON and zone == "Europe/Paris":
        pytest.skip("plain PySpark 4.0 fails on the hour that its clocks leave out")
    shape = next(shape for shape in SHAPES if shape.name == "timestamps")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        expected = rows(shape.build(spark))
        assert len(expected) > 5
        assert rows(adapt(shape.build(spark))) == expected
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
