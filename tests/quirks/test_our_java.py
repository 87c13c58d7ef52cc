"""Our Java, which is written for the latest Spark, is what the Spark at hand compiles."""

from __future__ import annotations

from pyspark.sql import SparkSession

from eddyline.catalyst.pipeline import mistakes_in_java


def test_no_class_has_a_mistake(spark: SparkSession) -> None:
    assert spark.version
    mistakes = mistakes_in_java()
    assert len(mistakes) >= 13
    assert {name: told for name, told in mistakes.items() if told} == {}
