"""The public face: what adapt takes and gives back, and what explain says."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everyone writes it
from pyspark.sql.functions import col, udf
from pyspark.sql.types import BooleanType, DoubleType

import eddyline
from eddyline.blocks.decline import DeclineReason
from eddyline.errors import ConnectNotSupportedError, EddylineError
from eddyline.planner.adapt import adapt, adapted_blocks, explain
from tests.planner.shapes import even, good, label, score, session, short, table


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    return session()


def rows(df: DataFrame) -> list[str]:
    return sorted(repr(tuple(row)) for row in df.collect())


def test_only_data_frames(spark: SparkSession) -> None:
    with pytest.raises(TypeError, match="not list"):
        adapt([1, 2])  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match=r"A pyspark\.sql\.DataFrame is expected, not pyspark.*\.SparkSession"
    ):
        explain(spark)  # type: ignore[call-overload]


@pytest.mark.parametrize("ask", [adapt, explain, eddyline.report, eddyline.watch])
@pytest.mark.parametrize("frame", [pd.DataFrame(), pl.DataFrame()], ids=["pandas", "polars"])
def test_frames_of_others_are_named_in_full(ask: Callable[[object], object], frame: object) -> None:
    kind = type(frame)
    wanted = f"A pyspark.sql.DataFrame is expected, not {kind.__module__}.DataFrame."
    with pytest.raises(TypeError, match=re.escape(wanted)):
        ask(frame)
    assert kind.__module__ in {"pandas.core.frame", "pandas", "polars.dataframe.frame"}


def test_connect_is_refused() -> None:
    class Remote(DataFrame):
        """A DataFrame without a plan in this process."""

    with pytest.raises(ConnectNotSupportedError, match="Spark Connect") as raised:
        adapt(object.__new__(Remote))
    assert f"not {__name__}.Remote." in str(raised.value)
    assert isinstance(raised.value, EddylineError)
    assert isinstance(raised.value, TypeError)
    assert isinstance(raised.value, NotImplementedError)


def test_pinned_order_is_the_original(spark: SparkSession) -> None:
    df = table(spark).filter(good("id") & short("text"))
    assert adapt(df, pin_order=True) is df
    assert adapt(df) is not df


def test_nothing_to_claim_is_the_original(spark: SparkSession) -> None:
    df = table(spark).filter(good("id"))
    assert adapt(df, remember=False) is df
    native = table(spark).filter("id > 1")
    assert adapt(native) is native


def test_setting_that_changes_columns(spark: SparkSession) -> None:
    key = "spark.sql.execution.arrow.useLargeVarTypes"
    df = table(spark).filter(good("id") & short("text"))
    expected = rows(df)
    spark.conf.set(key, "true")
    try:
        fast = adapt(df)
        assert adapted_blocks(fast)
        assert rows(fast) == expected
    finally:
        spark.conf.unset(key)


def test_stream_that_asks_for_the_time(spark: SparkSession) -> None:
    rates = spark.readStream.format("rate").load().withColumn("id", col("value"))
    kept = rates.filter(good("id") & even("id"))
    assert adapt(kept) is not kept
    recent = kept.filter(col("timestamp") > F.current_timestamp())
    assert adapt(recent) is recent
    assert [left.reason for left in explain(recent).left] == [DeclineReason.READS_THE_CLOCK]


def test_nest_hands_over_values_unconverted(spark: SparkSession) -> None:
    """An integer returned for a double is NULL to Spark, but reaches the outer function."""
    wrong = udf(lambda n: n, DoubleType(), useArrow=False)
    is_integer = udf(lambda n: isinstance(n, int), BooleanType(), useArrow=False)
    df = table(spark).filter(is_integer(wrong("n")) & wrong("n").isNull())
    expected = rows(df)
    assert len(expected) > 20
    assert rows(adapt(df)) == expected


def test_accumulators_of_functions_still_count(spark: SparkSession) -> None:
    calls = spark.sparkContext.accumulator(0)

    def counting(x: int) -> bool:
        calls.add(1)
        return x > 3

    count = udf(counting, BooleanType(), useArrow=True)
    assert adapt(table(spark).filter(count("id") & good("id"))).count() == 30
    assert 30 <= calls.value <= 48


def test_function_too_large_for_a_task(spark: SparkSession) -> None:
    """Spark broadcasts a function of more than a megabyte."""
    large = bytes(range(256)) * 8_000
    in_large = udf(lambda x: bool(large[x % 256] % 3), BooleanType(), useArrow=True)
    df = table(spark).filter(in_large("id") & even("id"))
    expected = rows(df)
    assert len(expected) == 16
    assert rows(adapt(df)) == expected


def test_an_explanation_says_what_runs_and_what_was_left(spark: SparkSession) -> None:
    not_understood = F.upper(label("id")) > "LABEL-2"
    df = table(spark).filter(good("id") & (score("id") > 0.2) & not_understood)
    fast = adapt(df.withColumn("s", score("id")))
    explanation = explain(fast)
    (block,) = (each for each in explanation.blocks if each.predicates)
    assert block.predicates == ("good(id)", "score(id) > 0.2")
    assert block.outputs == ("score",)
    assert explanation.claimable == ()
    (left,) = explanation.left
    assert left.text == "upper(label(id)) > LABEL-2"
    assert left.reason is DeclineReason.UNTRANSLATABLE
    for part in (*block.predicates, left.text, left.reason.value):
        assert part in str(explanation)


@pytest.mark.parametrize(
    ("mode", "code"),
    [("single", "explain(df)"), ("single", "print(explain(df))"), ("exec", "print(explain(df))")],
)
def test_an_explanation_is_shown_once(
    code: str, mode: str, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    df = table(spark).filter(good("id") & even("n"))
    exec(compile(code, "<stdin>", mode), {"explain": explain, "df": df})  # noqa: S102
    assert capsys.readouterr().out == f"{explain(df)}\n"


def test_explain_before_adapting(spark: SparkSession) -> None:
    explanation = explain(table(spark).filter(good("id") & short("text")))
    assert explanation.blocks == ()
    (block,) = explanation.claimable
    assert set(block.predicates) == {"good(id)", "short(text)"}
    assert "eddyline.adapt" in str(explanation)


def test_explain_says_that_a_function_that_is_alone_remembers(spark: SparkSession) -> None:
    df = table(spark).filter(good("id"))
    for explanation in (explain(df), explain(adapt(df))):
        (left,) = explanation.left
        assert left.reason is DeclineReason.FEWER_THAN_TWO_TERMS
        assert left.detail == "the function still remembers"
        (block,) = (*explanation.blocks, *explanation.claimable)
        assert "computes good and remembers" in str(block)


def test_explain_without_functions(spark: SparkSession) -> None:
    assert str(explain(table(spark))) == "No predicate depends on a Python function."


def test_blocks_are_found_in_what_was_derived(spark: SparkSession) -> None:
    fast = adapt(table(spark).filter(good("id") & short("text")))
    derived = fast.groupBy("text").count().orderBy("text")
    again = fast.cache().filter("id > 3")
    ((block, _),) = adapted_blocks(fast)
    assert [each for each, _ in adapted_blocks(derived)] == [block]
    assert [each for each, _ in adapted_blocks(again)] == [block]
    fast.unpersist()


def test_explaining_leaves_no_trace(spark: SparkSession) -> None:
    df = table(spark).filter(good("id") & even("n"))
    explain(df)
    assert adapted_blocks(df) == ()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"seed": 1.5}, "whole number from 0 on, not 1.5"),
        ({"seed": True}, "whole number from 0 on, not True"),
        ({"seed": None}, "whole number from 0 on, not None"),
        ({"seed": "1"}, "whole number from 0 on, not '1'"),
        ({"pin_order": "no"}, "True or False, not 'no'"),
    ],
)
def test_arguments_of_another_type_are_refused(
    spark: SparkSession, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(TypeError, match=said):
        adapt(spark.range(3), **arguments)


def test_rows_of_several_kinds_are_told_apart_and_the_report_says_by_what(
    spark: SparkSession,
) -> None:
    """Each kind has a predicate that rejects it; what Python is given tells the kind."""

    def rejects(own: int) -> Callable[[int, int], bool]:
        def predicate(kind: int, number: int) -> bool:
            end = time.perf_counter() + 50e-6  # so that there is something to save
            while time.perf_counter() < end:
                pass
            return number % 10 < (1 if kind == own else 9)

        return predicate

    frame = spark.range(12_000, numPartitions=1).selectExpr("id % 2 AS kind", "id div 2 AS number")
    frame = frame.localCheckpoint()
    for own in range(2):
        frame = frame.where(udf(rejects(own), "boolean")("kind", "number"))
    fast = adapt(frame)
    expected = [(kind, number) for kind in range(2) for number in range(0, 6_000, 10)]
    assert sorted(fast.collect()) == expected
    [told] = eddyline.report(fast).to_dict()["blocks"][0]["run"]["told_apart"]
    assert (told["column"], told["classes"]) == ("kind", 2)
    assert f"{told['rows']:,} rows told apart by kind" in str(eddyline.report(fast))
