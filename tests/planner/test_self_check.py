"""On a PySpark that is not tested, tiny queries decide what runs in eddies."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from eddyline.blocks.decline import DeclineReason
from eddyline.host import versions
from eddyline.host.per_context import PerContext
from eddyline.host.versions import UntestedPySparkWarning
from eddyline.planner import self_check
from eddyline.planner.adapt import adapt, adapted_blocks
from eddyline.planner.self_check import check_once, left_to_spark, what_is_wrong
from eddyline.planner.tiny_queries import QUERIES, AdaptedPart, Query, numbers


@pytest.fixture
def _untested(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A version that nobody has tested, and that nothing is known of yet."""
    monkeypatch.setattr(versions, "TESTED", ((3, 9),))
    versions.is_tested.cache_clear()
    monkeypatch.setattr(self_check, "_found", PerContext(lambda _: self_check._Found()))
    yield
    versions.is_tested.cache_clear()


def kept(spark: SparkSession) -> DataFrame:
    low = F.udf(lambda n: n is not None and n < 2, "boolean")
    even = F.udf(lambda number: number % 2 == 0, "boolean")
    return numbers(spark).where(low("n") & even("id"))


def joined(spark: SparkSession) -> DataFrame:
    others = numbers(spark).toDF("other", "m", "word")
    near = F.udf(lambda n, m: n + m < 4, "boolean")
    far = F.udf(lambda n, m: n != m, "boolean")
    both = numbers(spark).join(others, F.col("n") == F.col("m"))
    return both.where(near("n", "other") & far("id", "other"))


@pytest.mark.usefixtures("_untested")
def test_what_gives_the_same_rows_runs_in_eddies(spark: SparkSession) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UntestedPySparkWarning)
        assert adapted_blocks(adapt(kept(spark)))
        assert adapted_blocks(adapt(joined(spark), joins="always"))
    assert left_to_spark(spark) == {}


@pytest.mark.parametrize("kind", AdaptedPart)
@pytest.mark.usefixtures("_untested")
def test_a_kind_that_goes_wrong_is_left_to_spark(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, kind: AdaptedPart
) -> None:
    def wrong(query: Query, own: SparkSession, given: self_check.Adapt) -> str:
        if query in QUERIES[kind]:
            return what_is_wrong(query, own, lambda df, joins: given(df, joins).limit(3))
        return what_is_wrong(query, own, given)

    monkeypatch.setattr(self_check, "what_is_wrong", wrong)
    with pytest.warns(UntestedPySparkWarning, match=f"{kind} went wrong.*other rows") as caught:
        fast = adapt(joined(spark), joins="always")
    assert [each.category for each in caught].count(UntestedPySparkWarning) == 1
    assert sorted(fast.collect()) == sorted(joined(spark).collect())
    assert list(left_to_spark(spark)) == [kind]
    filters = adapted_blocks(adapt(kept(spark)))
    assert bool(filters) is (kind is not AdaptedPart.FILTERS)
    assert any(left.reason is DeclineReason.UNTESTED for left in eddyline.explain(fast).left)
    said = str(eddyline.explain(kept(spark)))
    assert "this PySpark is not tested" in said


@pytest.mark.usefixtures("_untested")
def test_a_check_that_raises_is_told_of_and_nothing_more(spark: SparkSession) -> None:
    def fails(_: DataFrame, joins: str) -> DataFrame:
        raise RuntimeError(f"no {joins}\nat all")

    with pytest.warns(UntestedPySparkWarning, match=r"RuntimeError: no always\)") as caught:
        check_once(spark, fails)
    told = [each.category for each in caught]
    assert told.count(UntestedPySparkWarning) == len(AdaptedPart)
    check_once(spark, fails)  # once is enough
    assert adapt(kept(spark)).count() == kept(spark).count()


@pytest.mark.usefixtures("_untested")
def test_an_enabled_session_is_checked_beforehand(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(self_check, "what_is_wrong", lambda *_: "other rows")
    expected = kept(spark).count()
    with pytest.warns(UntestedPySparkWarning):
        enabled = eddyline.enable(spark)
    with enabled:
        assert kept(spark).count() == expected
        assert not adapted_blocks(kept(spark))
    eddyline.disable(spark)


def test_a_tested_version_is_not_checked(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(self_check, "what_is_wrong", lambda *_: pytest.fail("checked"))
    assert left_to_spark(spark) == {}
    assert adapted_blocks(adapt(kept(spark)))
