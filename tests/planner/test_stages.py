"""``explain(df, stage=...)``: a DataFrame after each stage of its way."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from pyspark.sql.types import BooleanType

import eddyline
from eddyline.planner import adapt as adapting

STAGES = ("read", "claim", "block", "plan")


def even(number: int) -> bool:
    return number % 2 == 0


def small(number: int) -> bool:
    return number < 40


is_even = F.udf(even, BooleanType(), useArrow=True)
is_small = F.udf(small, BooleanType(), useArrow=True)


def filtered(spark: SparkSession) -> DataFrame:
    unknown = F.upper(F.udf(str, useArrow=True)("id")) > "1"
    return spark.range(100).filter("id > 3").filter(is_even("id") & is_small("id") & unknown)


def joined(spark: SparkSession) -> DataFrame:
    other = spark.range(50).withColumnRenamed("id", "other")
    return spark.range(100).filter(is_even("id") & is_small("id")).join(other, F.expr("id = other"))


def test_a_chain_after_each_stage(spark: SparkSession) -> None:
    read, claim, block, plan = (str(eddyline.explain(filtered(spark), stage=s)) for s in STAGES)
    assert read.startswith("1. Chain, from the top:\n     Project")
    assert "ArrowEvalPython" in read
    assert read.splitlines()[-1].strip().startswith("Range")
    assert "1. Chain: claimed for an eddy\n   predicates:\n     even(id)\n     small(id)" in claim
    assert "upper(str(id)) > 1: an expression is not understood" in claim
    assert "even(bigint) -> boolean, " in block
    assert block.endswith("arguments:\n     id")
    assert "eddy[even(id), small(id)]" in plan


def test_a_function_that_only_remembers_is_no_claim(spark: SparkSession) -> None:
    df = spark.range(9).select(is_even("id"))
    claim, block = (str(eddyline.explain(df, stage=stage)) for stage in ("claim", "block"))
    assert claim.startswith("1. Chain: nothing claimed\nFunctions with a memory beside the claims:")
    assert claim.endswith(": computes even and remembers")
    assert "computes even and remembers" in block


def test_a_region_after_each_stage(spark: SparkSession) -> None:
    df = eddyline.adapt(joined(spark), joins="always")
    read, claim, block, plan = (str(eddyline.explain(df, stage=s)) for s in STAGES)
    assert read.startswith("1. Region of 1 join, from the top:\n     Join Inner")
    assert "over 2 inputs:" in read
    assert "1. Region: claimed for an eddy" in claim
    assert "id of input 1" in claim
    assert "columns of input 2:" in block
    assert "eddy[" in plan


def test_a_plan_without_functions_says_so(spark: SparkSession) -> None:
    texts = [str(eddyline.explain(spark.range(3), stage=stage)) for stage in STAGES]
    assert texts[:3] == [
        "No function of Python and no join was read.",
        "Nothing is claimed, and nothing was declined.",
        "No block.",
    ]
    assert texts[3].startswith("Range")


def test_what_was_adapted_is_not_rewritten_again(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    df = eddyline.adapt(joined(spark), joins="always")
    monkeypatch.delattr(adapting, "rewritten_plan")
    assert eddyline.explain(df).blocks
    assert all(str(eddyline.explain(df, stage=stage)) for stage in STAGES)


def test_stages_show_what_adapt_does(spark: SparkSession) -> None:
    """Told before, they are those of the DataFrame that ``adapt`` returns."""
    for df in (filtered(spark), joined(spark)):
        adapted = eddyline.adapt(df)
        for stage in ("read", "claim"):
            before, after = (
                re.sub(r"#\d+", "#", str(eddyline.explain(frame, stage=stage)))
                for frame in (df, adapted)
            )
            assert before == after


def test_an_unknown_stage_is_refused(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match=r"'read', 'claim', 'block', 'plan', not 'eddy'"):
        eddyline.explain(spark.range(3), stage="eddy")
