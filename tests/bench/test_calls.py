"""A share of the generated queries: rows of plain Spark, and never more calls than it makes."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark.sql import SparkSession

from bench.calls.compared import SETTINGS, Comparison
from bench.calls.queries import query_of
from tests.validated import VALIDATED

QUERIES = int(os.environ.get("EDDYLINE_CALLS", "24"))
"""How many queries are compared; ``make bench ARGS=calls`` compares thousands."""


def test_queries_call_no_function_more_often_than_plain_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    changed = (*SETTINGS, *VALIDATED, "spark.sql.adaptive.enabled")
    changed += ("spark.sql.autoBroadcastJoinThreshold",)
    before = {name: spark.conf.get(name, None) for name in changed}
    try:
        for name in VALIDATED:  # queries of plain Spark's that its own validation refuses
            spark.conf.set(name, "false")
        comparison = Comparison(spark, tmp_path)
        findings = [each for seed in range(QUERIES) for each in comparison.findings(seed)]
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)
    assert not findings, "\n".join(map(str, findings))


def test_a_seed_is_a_query() -> None:
    texts = [query_of(seed).text for seed in range(300)]
    assert texts == [query_of(seed).text for seed in range(300)]
    assert len(set(texts)) > 280
    for words in ("JOIN", "CASE", "LIMIT", "GROUP BY", "OVER", "EXISTS", "UNION", "FILTER"):
        assert any(words in text for text in texts)
