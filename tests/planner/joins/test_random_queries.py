"""Random queries on Spark: with their joins in eddies they give the rows of plain Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import eddyline
from eddyline.engine.policies.catalogue import PolicyName
from tests.planner.joins.broadcasting import broadcasting
from tests.planner.joins.random_queries import (
    COLUMNS,
    INPUTS,
    KINDS,
    SHAPES,
    TOPS,
    random_query,
    register_functions,
    write_tables,
)

pytestmark = pytest.mark.slow(60)

CASES = 36
ADAPTIVE = "spark.sql.adaptive.enabled"

SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",  # which takes longer than it saves on a few rows
}


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session, with the tables and functions of random queries."""
    register_functions(spark)
    for number, path in enumerate(write_tables(tmp_path_factory.mktemp("tables"))):
        spark.read.parquet(str(path)).createOrReplaceTempView(f"t{number}")
    before = {key: spark.conf.get(key) for key in (*SETTINGS, ADAPTIVE)}
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    yield spark
    for key, given in before.items():
        assert given is not None  # each has a default
        spark.conf.set(key, given)


def exact(value: Any) -> Any:  # noqa: ANN401 - any value of a column
    """Return a value that can be hashed and equals only what looks the same."""
    if isinstance(value, dict):
        return tuple((name, exact(inner)) for name, inner in value.items())
    return repr(value) if isinstance(value, float) else value


def bag(table: pa.Table) -> Counter[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in table.columns]
    return Counter(tuple(map(exact, row)) for row in zip(*columns, strict=True))


@pytest.mark.parametrize("seed", range(CASES))
def test_same_rows_as_plain_spark(tables: SparkSession, seed: int) -> None:
    query = random_query(seed)
    tables.conf.set(ADAPTIVE, str(seed % 2 == 0).lower())
    frame = tables.sql(query.sql)
    with broadcasting(tables, allowed=not query.shuffled):
        adapted = eddyline.adapt(
            frame, joins=query.joins, policy=query.policy, seed=query.seed, memory=query.memory
        )
        assert adapted is not frame, query
        explanation = eddyline.explain(adapted)
        layouts = [block.layout for block in explanation.blocks if block.inputs]
        natively = query.joins == "auto" and "Spark joins around it" in str(explanation)
        assert layouts or natively, query
        assert all(("one shuffle" in layout) == query.shuffled for layout in layouts)
        assert adapted.schema == frame.schema
        expected, found = bag(frame.toArrow()), bag(adapted.toArrow())
    assert found == expected, (
        f"{query}\n{query.sql}\nmissing {list((expected - found).items())[:3]}, "
        f"extra {list((found - expected).items())[:3]}"
    )


def test_the_queries_are_of_every_sort() -> None:
    queries = [random_query(seed) for seed in range(CASES)]
    assert {query.shape for query in queries} == set(SHAPES)
    assert {query.relations for query in queries} == {2, 3, 4, 5}
    assert {query.top for query in queries} == set(TOPS)
    assert {query.policy for query in queries} == set(PolicyName)
    assert {query.joins for query in queries} == {"auto", "always"}
    assert {query.shuffled for query in queries} == {True, False}
    assert {query.memory is None for query in queries} == {True, False}
    assert {kind for query in queries for kind in query.inputs} == set(INPUTS)
    assert {key for query in queries for key in query.keys} == set(COLUMNS)
    assert {kind for query in queries for kind in query.kinds} == {
        (kind, relations) for kind in KINDS for relations in (1, 2)
    }
