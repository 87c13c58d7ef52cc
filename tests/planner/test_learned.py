"""A later query begins with what earlier ones have learned, and has the same rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from weakref import WeakMethod

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr, udf
from pyspark.sql.types import BooleanType

import eddyline
from eddyline.asking.driver_channel import Address
from eddyline.blocks.join_block import Block, JoinBlock
from eddyline.engine.prior import Prior
from eddyline.learning import learned_store
from eddyline.learning.learned_store import Told
from eddyline.planner import block_registry
from eddyline.planner.adapt import adapted_blocks
from eddyline.planner.block_registry import registry_of
from eddyline.tasks import others_learned
from tests.fresh_process import printed_lines
from tests.planner.joins.broadcasting import broadcasting

ROWS = 4_000

even = udf(lambda n: n % 2 == 0, BooleanType())
fifth = udf(lambda n: n % 5 == 0, BooleanType())
third = udf(lambda n: n % 3 == 0, BooleanType())


@pytest.fixture(autouse=True)
def nothing_learned(spark: SparkSession) -> Iterator[None]:  # noqa: ARG001 - forgetting needs it
    eddyline.forget()
    yield
    eddyline.forget()


def first_query(spark: SparkSession) -> DataFrame:
    return spark.range(ROWS).filter(even("id") & fifth("id"))


def priors(df: DataFrame) -> tuple[Prior | None, ...]:
    ((block, _),) = adapted_blocks(df)
    return block.query.priors if isinstance(block, JoinBlock) else block.priors


def explored(df: DataFrame) -> int:
    (block,) = eddyline.report(df).to_dict()["blocks"]
    count: int = block["run"]["explored"]
    return count


def test_another_block_over_the_same_function_begins_with_it(spark: SparkSession) -> None:
    first = eddyline.adapt(first_query(spark))
    assert priors(first) == ()
    assert first.count() == ROWS // 10
    second = eddyline.adapt(spark.range(ROWS).filter(third("id") & fifth("id")))
    unknown, known = priors(second)
    assert unknown is None
    assert known is not None
    assert known.selectivity == pytest.approx(0.2, abs=0.05)
    assert second.count() == len(range(0, ROWS, 15))
    again = eddyline.adapt(spark.range(ROWS).filter(even("id") & fifth("id") & third("id")))
    assert all(priors(again))
    assert again.count() == len(range(0, ROWS, 30))
    assert explored(again) < explored(first)


def test_a_join_begins_with_what_a_filter_has_learned(spark: SparkSession) -> None:
    eddyline.adapt(first_query(spark)).count()
    keys = spark.range(10).withColumnRenamed("id", "key")
    rows = spark.range(ROWS).join(keys, expr("id % 10 = key")).filter(even("id") & third("key"))
    fast = eddyline.adapt(rows, joins="always")
    ((block, _),) = adapted_blocks(fast)
    assert isinstance(block, JoinBlock)
    assert any(priors(fast))
    assert fast.count() == ROWS // 5  # those that end in 0 or 6


def test_equal_parts_of_a_plan_stay_equal(spark: SparkSession) -> None:
    eddyline.adapt(first_query(spark)).count()
    twice = first_query(spark).union(first_query(spark))
    assert len(adapted_blocks(eddyline.adapt(twice))) == 1


def test_a_function_is_made_again_once_something_is_known(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And stays the same as long as nothing matters; how much costs differ is for the clock."""
    monkeypatch.setattr(learned_store, "OTHER_COST", 1e9)
    registry = registry_of(spark.sparkContext)
    made = []
    with eddyline.enable(spark):
        for _ in range(4):
            assert first_query(spark).count() == ROWS // 10
            made.append(len(registry.of_run(newest_run(spark))))  # which plans it once more
    assert made == [2] * 4


def newest_run(spark: SparkSession) -> int:
    return max(options.run for _, options in adapted_blocks(first_query(spark)))


def many_short_tasks(spark: SparkSession) -> DataFrame:
    """Twice as many as those that do not ask with the first task of a worker."""
    rows = spark.range(0, ROWS, 1, 2 * others_learned.FEW_TASKS)
    return rows.filter(even("id") & fifth("id") & third("id"))


def many_short_joins(spark: SparkSession) -> DataFrame:
    """The same rows, checked in as many tasks before they are shuffled to those of a table."""
    keys = spark.range(ROWS).withColumnRenamed("id", "key")
    return many_short_tasks(spark).join(keys, expr("id = key"))


@pytest.mark.parametrize("query", [many_short_tasks, many_short_joins])
def test_a_worker_is_told_what_others_have_learned_while_the_stage_runs(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    query: Callable[[SparkSession], DataFrame],
) -> None:
    registry = registry_of(spark.sparkContext)
    assert registry.asked_at is None  # on one machine
    monkeypatch.setattr(block_registry, "local_cores", lambda _: None)
    asked_at = block_registry._listening(spark.sparkContext, WeakMethod(registry._told))
    monkeypatch.setattr(registry, "asked_at", asked_at)
    with broadcasting(spark, allowed=False):
        fast = eddyline.adapt(query(spark), joins="always")
    assert priors(fast) == ()
    told = []
    tell = registry.learned.told

    def noted(block: Block) -> Told:
        told.append(tell(block))
        return told[-1]

    monkeypatch.setattr(registry.learned, "told", noted)
    assert fast.count() == len(range(0, ROWS, 30))
    assert any(map(any, told))


def test_where_nobody_can_be_asked_tasks_go_on(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = Address("127.0.0.1", 1, "token", "learned/1")
    monkeypatch.setattr(registry_of(spark.sparkContext), "asked_at", nobody)
    assert eddyline.adapt(many_short_tasks(spark)).count() == len(range(0, ROWS, 30))


def test_people_see_it_and_may_forget_it(spark: SparkSession) -> None:
    assert str(eddyline.learned()) == "Nothing has been learned yet."
    eddyline.adapt(first_query(spark)).count()
    learned = eddyline.learned(spark)
    assert sorted(round(each.passed or 0, 1) for each in learned.predicates) == [0.2, 0.5]
    text = str(learned)
    assert "Predicates" in text
    assert "Per call" in text
    assert "What was learned" in learned._repr_html_()
    assert len(learned.to_dict()["functions"]) == 2
    assert "4 predicates and functions learned" in str(eddyline.status())
    eddyline.forget()
    assert eddyline.learned() == eddyline.learned(spark)
    assert not eddyline.learned().predicates
    assert priors(eddyline.adapt(first_query(spark))) == ()


def test_a_file_keeps_it(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "learned.json"
    with eddyline.enable(spark, learned=path):
        assert first_query(spark).count() == ROWS // 10
    assert path.exists()
    eddyline.forget()
    with eddyline.enable(spark, learned=str(path)):
        assert len(eddyline.learned().predicates) == 2
        with pytest.raises(TypeError):
            eddyline.enable(spark, learned=5)  # type: ignore[arg-type]  # as somebody may
        (prior, other) = priors(eddyline.adapt(first_query(spark)))
        assert prior is not None
        assert other is not None
    registry_of(spark.sparkContext).learned.keeper = None


def test_it_is_kept_when_python_ends(tmp_path: Path) -> None:
    """Without a word about the end of anything."""
    path = tmp_path / "learned.json"
    program = f"""
        import eddyline
        from pyspark.sql.functions import udf

        spark = eddyline.session()
        eddyline.enable(spark, learned={str(path)!r})
        even = udf(lambda n: n % 2 == 0, "boolean")
        third = udf(lambda n: n % 3 == 0, "boolean")
        print(spark.range(900).filter(even("id") & third("id")).count())
    """
    assert printed_lines(dedent(program)) == ["150"]
    assert len(json.loads(path.read_text())["predicates"]) == 2
