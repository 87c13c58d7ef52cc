"""Spark as the oracle of expressions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

# Rules that fold, drop or rewrite expressions, and with them the errors they raise.
_REWRITING = (
    "BooleanSimplification",
    "ConditionalExpressionsInPredicate",
    "ConstantFolding",
    "ConvertToLocalRelation",
    "LikeSimplification",
    "NullDownPropagation",
    "NullPropagation",
    "OptimizeIn",
    "PushFoldableIntoBranches",
    "ReorderAssociativeOperator",
    "ReplaceNullWithFalseInPredicate",
    "SimplifyBinaryComparison",
    "SimplifyCasts",
    "SimplifyConditionals",
    "UnwrapCastInBinaryComparison",
)


@pytest.fixture(scope="module")
def oracle(spark: SparkSession) -> Iterator[SparkSession]:
    """Spark, made to evaluate expressions as they are written."""
    excluded = "spark.sql.optimizer.excludedRules"
    package = "org.apache.spark.sql.catalyst.optimizer."
    spark.conf.set(excluded, ",".join(package + rule for rule in _REWRITING))
    yield spark
    spark.conf.unset(excluded)
    spark.conf.unset("spark.sql.ansi.enabled")
