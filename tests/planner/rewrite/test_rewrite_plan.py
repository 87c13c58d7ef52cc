"""What is claimed of a plan, what is left and why, and how the rewritten plan looks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everyone writes it
from pyspark.sql.functions import col, lit, udf
from pyspark.sql.types import BooleanType

import eddyline
from eddyline import catalyst
from eddyline.blocks.decline import DeclineReason
from eddyline.blocks.filter_block import FilterBlock, FunctionKind
from eddyline.expressions import And, Argument, Call, Comparison, Literal, Or
from eddyline.planner.claim.session_settings import session_settings
from eddyline.planner.passes import Making, Rewriting, through_passes
from eddyline.planner.read.lookup_leaves import lookup_leaves
from eddyline.planner.rewrite.filter_rewrite import FusedFunction
from tests.planner.jvm_calls import counted_calls
from tests.planner.shapes import (
    Numbers,
    big,
    even,
    good,
    label,
    new_table,
    noise,
    other,
    plus,
    positive,
    score,
    session,
    short,
    table,
    within,
)
from tests.tasks import reference_filter_task as reference_fused
from tests.without_arrow_udf import INTEGERS_AS_THEY_ARE, WITH_ARROW_UDF

Adapt = Callable[[DataFrame], DataFrame]

span = udf(lambda interval: interval.days > 1, BooleanType(), useArrow=True)


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    return session()


def rewriting_of(df: DataFrame) -> Rewriting:
    """Rewrite a plan over the reference; equal blocks get one function."""
    made: dict[str, FusedFunction] = {}

    def fuse(block: FilterBlock) -> FusedFunction:
        return made.setdefault(block.identity, reference_fused.fuse(block))

    assert catalyst.is_classic(df)
    settings = session_settings(df.sparkSession)
    return through_passes(catalyst.optimized_plan(df), Making(settings, fuse))


def only_block(df: DataFrame) -> FilterBlock:
    (block,) = rewriting_of(df).blocks
    return block


def adapted(df: DataFrame) -> DataFrame:
    """Return the rewritten DataFrame, in which there must be a block."""
    rewriting = rewriting_of(df)
    assert rewriting.blocks
    assert catalyst.is_classic(df)
    return catalyst.dataframe_like(df, rewriting.plan)


def unchanged(df: DataFrame) -> DataFrame:
    return df


def plan_text(df: DataFrame) -> str:
    """Return the optimized plan, as it runs."""
    assert catalyst.is_classic(df)
    return str(df._jdf.queryExecution().optimizedPlan().toString())


def rows(df: DataFrame) -> list[str]:
    return sorted(repr(tuple(row)) for row in df.collect())


# ---------------------------------------------------------------- what a block holds


def test_block_of_two_conjuncts(spark: SparkSession) -> None:
    block = only_block(table(spark).filter((score("id") > 0.3) & good("id")))
    identifier = Argument(0, pa.int64())
    assert isinstance(block.predicate, And)
    first, second = block.predicate.terms
    assert isinstance(first, Comparison)
    assert first.left == Call(0, (identifier,), pa.float64())
    assert first.right == Literal(0.3, pa.float64())
    assert second == Call(1, (identifier,), pa.bool_())
    assert block.texts == ("score(id) > 0.3", "good(id)")
    assert [function.name for function in block.functions] == ["score", "good"]
    assert block.outputs == ()
    assert block.settings.time_zone == "UTC"


def test_value_needed_above_is_an_output_and_not_computed_again(spark: SparkSession) -> None:
    kept = table(spark).filter((score("id") > 0.3) & good("id"))
    df = kept.select("id", score("id").alias("s"))
    (call,) = only_block(df).outputs
    assert call.type == pa.float64()
    assert plan_text(df).count("EvalPython") == 2
    assert plan_text(adapted(df)).count("EvalPython") == 1


def test_function_that_no_predicate_needs_stays_above(spark: SparkSession) -> None:
    df = table(spark).filter(good("id") & short("text")).withColumn("p", plus("n"))
    block = only_block(df)
    assert [function.name for function in block.functions] == ["good", "short"]
    lines = [line for line in plan_text(adapted(df)).splitlines() if "EvalPython" in line]
    assert ["plus(" in lines[0], "eddy[" in lines[1]] == [True, True]


def test_keywords_and_types_of_arguments(spark: SparkSession) -> None:
    by_name: Callable[..., object] = within
    condition = by_name("id", high=lit(20), low=col("n"))
    assert isinstance(condition, type(col("id")))
    (function, _) = only_block(table(spark).filter(condition & good("id"))).functions
    assert function.keywords == (None, "high", "low")
    assert function.argument_types == ('"long"', '"integer"', '"integer"')
    assert function.return_type == '"boolean"'
    arrow = INTEGERS_AS_THEY_ARE
    assert function.kind is (FunctionKind.ARROW_BATCHED if arrow else FunctionKind.PICKLED)


def test_nest_is_one_function_even_where_the_inner_one_is_called_too(spark: SparkSession) -> None:
    block = only_block(table(spark).filter(even(plus("n")) & (plus("n") > 4)))
    assert [(function.name, len(function.commands)) for function in block.functions] == [
        ("even(plus)", 2),
        ("plus", 1),
    ]


def test_native_terms_of_an_or_are_one_argument(spark: SparkSession) -> None:
    block = only_block(
        table(spark).filter((col("id") < 10) | good("id") | col("n").isNull() | short("text"))
    )
    assert isinstance(block.predicate, Or)
    assert [type(term) for term in block.predicate.terms] == [Argument, Call, Call]
    assert block.predicate.terms[0] == Argument(0, pa.bool_())


def test_equal_arguments_travel_once(spark: SparkSession) -> None:
    plan = plan_text(adapted(table(spark).filter(good(col("id") + 1) & (score(1 + col("id")) > 0))))
    name, _, arguments = plan.partition("](")
    assert "eddy[good((id + 1)), score((id + 1)) > 0.0" in name
    assert arguments.count("+ 1)") == 1


def test_large_sets_and_timestamps_are_read_exactly(spark: SparkSession) -> None:
    names = [f"label-{i}" for i in range(1, 40)]
    df = table(spark).filter(label("id").isin(*names, None) & good("id"))
    expected = rows(df)
    assert len(expected) > 10
    assert rows(adapted(df)) == expected


# ---------------------------------------------------------------- what is left, and why


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        (lambda: good("id"), DeclineReason.FEWER_THAN_TWO_TERMS),
        (lambda: (score("id") > 0.1) & (score("id") < 0.9), DeclineReason.FEWER_THAN_TWO_TERMS),
        (lambda: noise("id") > 0.3, DeclineReason.NON_DETERMINISTIC),
        (lambda: good("id") & (F.rand(1) > 0.1), DeclineReason.NON_DETERMINISTIC),
        (lambda: F.upper(label("id")) > "A", DeclineReason.UNTRANSLATABLE),
        (lambda: good("id") | (F.array("id")[col("n")] > 2), DeclineReason.MAY_THROW),
        (lambda: good("id") | col("text").rlike("[a-"), DeclineReason.MAY_THROW),
        (
            lambda: even("id") & positive(F.when(col("n") > 0, 10 / col("n"))),
            DeclineReason.MAY_THROW,
        ),
        (lambda: span(F.make_dt_interval("id")) & good("id"), DeclineReason.UNSUPPORTED_TYPE),
        (lambda: short(F.collate("text", "UNICODE")), DeclineReason.UNSUPPORTED_TYPE),
    ],
)
def test_reasons(
    spark: SparkSession, condition: Callable[[], Column], reason: DeclineReason
) -> None:
    rewriting = rewriting_of(table(spark).filter(condition()))
    assert rewriting.blocks == ()
    assert reason in {left.reason for left in rewriting.left}


@pytest.mark.parametrize(
    "condition",
    [
        lambda: good("id") | (10 / col("n") > 2),
        lambda: good("id") | (col("text").cast("int") > 2),
        lambda: good("id") | (F.abs("n") > 2),
        lambda: good("id") | (-col("n") > 2),
        lambda: even("id") & good(10 / (col("n"))),
        lambda: good("id") | col("text").rlike("[a-c]+"),
        lambda: F.when(col("n") > 2, good("id")).otherwise(lit(True)),  # noqa: FBT003 - a column
        lambda: F.coalesce(F.when(col("n") > 2, score("id")), lit(0.5)) > 0.2,
    ],
)
def test_what_could_raise_is_tried(spark: SparkSession, condition: Callable[[], Column]) -> None:
    rewriting = rewriting_of(table(spark).filter(condition()))
    assert len(rewriting.blocks) == 1
    assert rewriting.left == ()


def test_long_disjunction(spark: SparkSession) -> None:
    terms = [good("id")]
    for i in range(150):
        terms += [col("id") == 1000 + i, within("id", lit(i))]
    # As a tree of equal sides: on a chain of 300 Spark's own analyzer may run out of stack.
    while len(terms) > 1:
        pairs = zip(terms[::2], terms[1::2], strict=False)
        terms = [left | right for left, right in pairs] + terms[len(terms) // 2 * 2 :]
    block = only_block(table(spark).filter(terms[0] & short("text")))
    assert isinstance(block.predicate, And)
    assert sorted(len(term.children) for term in block.predicate.terms) == [1, 152]


def test_nested_too_deeply(spark: SparkSession) -> None:
    condition = good("id")
    for i in range(120):
        condition = (condition & (col("id") != i)) | even("n")
    rewriting = rewriting_of(table(spark).filter(condition))
    assert rewriting.blocks == ()
    assert DeclineReason.UNTRANSLATABLE in {left.reason for left in rewriting.left}


def test_the_plan_is_the_same_object_where_nothing_is_claimed(spark: SparkSession) -> None:
    df = table(spark).filter(good("id"))
    assert catalyst.is_classic(df)
    plan = catalyst.optimized_plan(df)
    rewriting = through_passes(plan, Making(session_settings(spark), reference_fused.fuse))
    assert rewriting.plan is plan


def test_left_conjunct_runs_on_what_the_block_keeps(spark: SparkSession) -> None:
    not_understood = F.upper(label("id")) > "LABEL-2"
    df = table(spark).filter(good("id") & (score("id") > 0.2) & not_understood)
    lines = [line for line in plan_text(adapted(df)).splitlines() if "EvalPython" in line]
    assert ["label(" in lines[0], "eddy[" in lines[1]] == [True, True]


def test_no_function_is_moved_below_a_filter_that_stays(spark: SparkSession) -> None:
    """Spark keeps rows from ``fails`` by a filter below it, and so must the new plan."""
    # Of another kind than those of the filter below, or else Spark calls it in the same go.
    arrow = not INTEGERS_AS_THEY_ARE
    fails = udf(lambda x: 1 // (x % 5) > -1, BooleanType(), useArrow=arrow)
    barrier = F.upper(label("id")) != "LABEL-0"
    df = (
        table(spark)
        .filter(good("id") & (score("id") > 0.2) & barrier)
        .filter(fails(col("id").cast("double")) & even("id"))
    )
    expected = rows(df)
    assert len(expected) > 3
    assert rows(adapted(df)) == expected


def test_native_filter_between_evaluations_goes_below_the_block(spark: SparkSession) -> None:
    df = table(spark).filter(good("id") & (col("id") > 12) & even("id"))
    lines = plan_text(adapted(df)).splitlines()
    eddy = next(i for i, line in enumerate(lines) if "eddy[" in line)
    assert any("> 12" in line for line in lines[eddy + 1 :])
    assert not any("> 12" in line for line in lines[:eddy])


# ---------------------------------------------------------------- identity


def test_equal_blocks_are_one(spark: SparkSession, tmp_path: Path) -> None:
    """Spark then still sees that both sides of the union are the same exchange."""
    table(spark).select("id", "n").write.parquet(str(tmp_path / "rows"))

    def side() -> DataFrame:
        rows_of_file = spark.read.parquet(str(tmp_path / "rows"))
        return rows_of_file.filter(good("id") & even("id")).repartition(3, "n")

    both = side().unionAll(side())
    rewriting = rewriting_of(both)
    assert len(rewriting.blocks) == 1
    fast = adapted(both)
    assert rows(fast) == rows(both)
    assert catalyst.is_classic(fast)
    assert "ReusedExchange" in fast._jdf.queryExecution().executedPlan().toString()


def test_identity_tells_blocks_apart(spark: SparkSession) -> None:
    conditions = [
        good("id") & even("id"),
        good("id") & even("n"),
        good("id") | even("id"),
        good("id") & short("text"),
    ]
    blocks = [only_block(table(spark).filter(condition)) for condition in conditions]
    assert len({block.identity for block in blocks}) == len(blocks)
    again = only_block(table(spark).filter(good("id") & even("id")))
    assert again.identity == blocks[0].identity
    assert again == blocks[0]


# ---------------------------------------------------------------- DataFrames made of adapted ones


def _joined_with_itself(spark: SparkSession, adapt: Adapt) -> DataFrame:
    kept = adapt(table(spark).filter(good("id") & even("id")))
    return kept.alias("a").join(kept.alias("b"), col("a.n") == col("b.n")).select("a.id", "b.id")


def _values_joined(spark: SparkSession, adapt: Adapt) -> DataFrame:
    values = (
        table(spark).filter(good("id") & (score("id") > 0.3)).select("n", score("id").alias("s"))
    )
    kept = adapt(values)
    return kept.alias("a").join(kept.alias("b"), col("a.n") == col("b.n")).select("a.s", "b.s")


def _columns_of_the_original(spark: SparkSession, adapt: Adapt) -> DataFrame:
    df = table(spark).filter(good("id") & even("id"))
    return adapt(df).filter(df.n > 3).select(df.id, df["record.n"])


def _alias_of_the_original(spark: SparkSession, adapt: Adapt) -> DataFrame:
    return adapt(table(spark).filter(good("id") & even("id")).alias("q")).select("q.id")


def _adapted_twice(spark: SparkSession, adapt: Adapt) -> DataFrame:
    once = adapt(table(spark).filter(good("id") & even("id")))
    return adapt(once.filter(short("text") & (plus("n") > 2)))


def _cached(spark: SparkSession, adapt: Adapt) -> DataFrame:
    return adapt(new_table(spark).filter(good("id") & even("id"))).cache().filter(short("text"))


def _view(spark: SparkSession, adapt: Adapt) -> DataFrame:
    adapt(table(spark).filter(good("id") & even("id"))).createOrReplaceTempView("kept")
    return spark.sql("SELECT a.id, b.text FROM kept a JOIN kept b ON a.n = b.n WHERE a.id > 3")


def _subtracted(spark: SparkSession, adapt: Adapt) -> DataFrame:
    kept = adapt(table(spark).filter(good("id") & even("id")).select("id"))
    return kept.union(kept).exceptAll(kept.limit(3))


def _data_source_joined(spark: SparkSession, adapt: Adapt) -> DataFrame:
    spark.dataSource.register(Numbers)  # whose scan stands in the optimized plan
    kept = adapt(spark.read.format("numbers_of_tests").load().filter(good("id") & even("id")))
    return kept.alias("a").join(kept.alias("b"), col("a.n") == col("b.n")).select("a.id", "b.id")


@pytest.mark.parametrize(
    "build",
    [
        _joined_with_itself,
        _values_joined,
        _columns_of_the_original,
        _alias_of_the_original,
        _adapted_twice,
        _cached,
        _view,
        _subtracted,
        _data_source_joined,
    ],
)
def test_derived(spark: SparkSession, build: Callable[[SparkSession, Adapt], DataFrame]) -> None:
    expected = rows(build(spark, unchanged))
    assert expected
    assert rows(build(spark, adapted)) == expected


def test_hint_stays(spark: SparkSession) -> None:
    fast = adapted(table(spark).filter(good("id") & even("id")).hint("broadcast"))
    joined = other(spark).join(fast, col("key") == col("id"))
    assert catalyst.is_classic(joined)
    assert "rightHint=(strategy=broadcast)" in plan_text(joined)


def test_adapted_twice_has_two_blocks(spark: SparkSession) -> None:
    assert plan_text(_adapted_twice(spark, adapted)).count("eddy[") == 2


# ---------------------------------------------------------------- streams, and wide tables


def test_stream(spark: SparkSession, tmp_path: Path) -> None:
    source = str(tmp_path / "in")
    table(spark).select("id", "n", "text").write.parquet(source)
    schema = spark.read.parquet(source).schema

    def kept(name: str, adapt: Adapt) -> list[str]:
        df = spark.readStream.schema(schema).parquet(source).filter(good("id") & even("id"))
        counts = adapt(df.withColumn("s", score("id"))).groupBy("n").agg(F.sum("s"))
        assert counts.isStreaming
        writer = counts.writeStream.format("memory").queryName(name).outputMode("complete")
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        return rows(spark.table(name))

    expected = kept("plain_stream", unchanged)
    assert len(expected) > 5
    assert kept("adapted_stream", adapted) == expected


def test_clock_is_noticed(spark: SparkSession) -> None:
    df = table(spark)
    clocked = df.filter(col("moment") < F.current_timestamp())
    assert catalyst.is_classic(df)
    assert catalyst.is_classic(clocked)
    assert (catalyst.reads_the_clock(df), catalyst.reads_the_clock(clocked)) == (False, True)


def test_a_wide_table_is_rewritten_with_few_calls_into_the_jvm(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def calls(columns: int) -> int:
        schema = ", ".join(f"c{i} long" for i in range(columns))
        wide = spark.createDataFrame([tuple(range(columns))], schema)
        df = wide.withColumn("p", plus("c3")).filter(good("c1") & even("c2")).filter("p > 2")
        assert catalyst.is_classic(df)
        plan = catalyst.optimized_plan(df)
        settings = session_settings(spark)
        blocks: list[object] = []

        def rewrite() -> None:
            rewriting = through_passes(plan, Making(settings, reference_fused.fuse))
            catalyst.dataframe_like(df, rewriting.plan)
            blocks.extend(rewriting.blocks)

        asked = counted_calls(monkeypatch, rewrite)
        assert len(blocks) == 1
        return asked

    calls(5)  # looks classes up, once
    narrow, wide = calls(5), calls(1_000)
    assert narrow > 0
    assert wide - narrow < 100


def test_iterator_functions_are_known_by_kind(spark: SparkSession) -> None:
    block = only_block(table(spark).filter(big("id") & good("id")))
    arrow = WITH_ARROW_UDF
    kind = FunctionKind.ARROW_ITERATOR if arrow else FunctionKind.PANDAS_ITERATOR
    assert block.functions[0].kind is kind


def test_numbers_of_columns_with_a_watermark(spark: SparkSession) -> None:
    """Such a column shows its delay behind its number where its text is printed."""
    stream = spark.readStream.format("rate").load().withWatermark("timestamp", "10 seconds")
    assert catalyst.is_classic(stream)
    plan = catalyst.optimized_plan(stream)
    expected = tuple(catalyst.identity_number(column) for column in catalyst.outputs(plan))
    assert catalyst.output_numbers(plan) == expected


def test_a_second_walk_over_a_plan_asks_the_jvm_nothing(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    eddyline.lookup_table(spark, "walked", "k int", ["k"], eddyline.PythonLookup(list))
    try:
        df = spark.sql("SELECT * FROM range(3) r JOIN walked w ON r.id = w.k WHERE w.k > 0")
        assert catalyst.is_classic(df)
        plan = catalyst.optimized_plan(df)
        (leaf,) = lookup_leaves(plan)
        assert counted_calls(monkeypatch, lambda: list(lookup_leaves(plan))) == 0
        assert counted_calls(monkeypatch, lambda: catalyst.outputs(leaf)) > 0
    finally:
        spark.catalog.dropTempView("walked")
