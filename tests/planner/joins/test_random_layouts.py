"""Random joins, laid out as ``auto`` chooses: the rows, or the error, of plain Spark and DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any

import duckdb
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import eddyline
from eddyline.blocks.join_block import Block, JoinBlock
from eddyline.engine.policies.catalogue import PolicyName
from eddyline.planner.adapt import adapted_blocks
from eddyline.planner.claim.reduction import BLOOM_BITS, Means, Rule
from eddyline.planner.rewrite import reducing
from tests.planner.joins.broadcasting import THRESHOLD
from tests.planner.joins.random_layouts import (
    OVER_ONE,
    OVER_SEVERAL,
    REACHES,
    RandomLayout,
    random_layout,
    register_verdicts,
)
from tests.planner.joins.random_queries import KINDS, write_tables

pytestmark = pytest.mark.slow(25)

ADAPTIVE = "spark.sql.adaptive.enabled"
PARTITIONS = "spark.sql.shuffle.partitions"


class Way(StrEnum):
    """How a query was joined, and what came of it."""

    AROUND = "Spark joins around a block"
    IN_PLACE = "an eddy joins, in place"
    SHUFFLED = "an eddy joins, after one shuffle"
    PLAIN = "Spark joins as it would"
    EXACT = "a block gets just the rows that are part of joined rows"
    FEWER = "a block gets fewer rows than there are, by Bloom filters"
    TRAVELS = "errors travel"
    RAISED = "an error that has travelled is raised"
    FAILED = "another error is raised"


Bag = Counter[tuple[Any, ...]]


@pytest.fixture(scope="module")
def connection(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB on one thread with the tables that the session has, too."""
    register_verdicts(spark)
    before = {key: spark.conf.get(key) for key in (ADAPTIVE, PARTITIONS)}
    spark.conf.set(PARTITIONS, "2")
    with duckdb.connect() as opened:
        opened.execute("SET threads = 1")
        for number, path in enumerate(write_tables(tmp_path_factory.mktemp("tables"))):
            spark.read.parquet(str(path)).createOrReplaceTempView(f"t{number}")
            opened.execute(f"CREATE TABLE t{number} AS FROM '{path}'")
        yield opened
    for key, given in before.items():
        assert given is not None  # each has a default
        spark.conf.set(key, given)
    spark.conf.unset(THRESHOLD)


@pytest.fixture(autouse=True)
def _small_inputs_are_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reducing, "WORTH_REDUCING", 1)


def rows(df: DataFrame) -> Bag | None:
    """Return the rows of a query, None where a function's error is raised."""
    try:
        return Counter(map(tuple, df.collect()))
    except (PySparkException, Py4JJavaError) as error:  # the latter by a thread that broadcasts
        assert "no sense in" in str(error)  # noqa: PT017 - any other is a failure
        return None


def ways_of(df: DataFrame) -> set[StrEnum]:
    """Return how a query is laid out, as its plan and its blocks have it."""
    blocks = [block for block, _ in adapted_blocks(df)]
    joined = [block for block in blocks if isinstance(block, JoinBlock)]
    said = [line for block in blocks for line in said_of(block)]
    ways: set[StrEnum] = {means for means in Means for line in said if is_by(means, line)}
    ways |= {rule for rule in Rule for line in said if line.endswith(f": {rule}")}
    if joined:
        ways.add(Way.SHUFFLED if "one shuffle" in joined[0].layout else Way.IN_PLACE)
    elif any("Spark joins around it" in line for line in said):
        ways.add(Way.AROUND)
    else:
        ways.add(Way.PLAIN)
    if any("carry the error" in line for line in said):
        ways.add(Way.TRAVELS)
    plan = df._jdf.queryExecution().optimizedPlan().toString()
    assert (Means.BLOOM in ways) == ("might_contain" in plan)
    assert (Way.TRAVELS in ways) == ("raise_error" in plan)
    assert "LeftSemi" in plan or not {Means.JOINED, Means.KEYS} & ways
    return ways


def said_of(block: Block) -> tuple[str, ...]:
    return block.notes if isinstance(block, JoinBlock) else block.joined


def is_by(means: Means, line: str) -> bool:
    """Whether a line says that an input is reduced by some means; it may say by which ones more."""
    return any(part.endswith(means) for part in line.replace(")", "").split(" (itself"))


def checked(
    spark: SparkSession, connection: duckdb.DuckDBPyConnection, query: RandomLayout
) -> set[StrEnum]:
    """Compare what a query gives with what it gives elsewhere; return how it was laid out."""
    spark.conf.set(THRESHOLD, query.reach)
    spark.conf.set(ADAPTIVE, str(query.adaptive).lower())
    frame = spark.sql(query.sql)
    adapted = eddyline.adapt(frame, **query.options)
    ways = ways_of(adapted)
    expected, found = query.expected(connection), rows(adapted)
    if found is None and Way.PLAIN in ways:
        assert rows(frame) is None  # as it asks about rows that are in no joined row
        return ways
    assert found == expected, f"{query}\n{query.sql}\n{ways}"
    if found is None:
        return ways | {Way.RAISED if Way.TRAVELS in ways else Way.FAILED}
    if not query.fails_somewhere:
        assert rows(frame) == expected, query.sql
    if Way.AROUND in ways:
        ways |= asked_about(adapted, ways, *query.rows_of_root(connection))
    return ways


def asked_about(adapted: DataFrame, ways: set[StrEnum], partners: int, alone: int) -> set[StrEnum]:
    """Check that a block gets each row that has ``partners`` in joined rows.

    And no other, if errors need not travel; there are so many rows of the root ``alone``.
    """
    (block,) = eddyline.report(adapted).blocks
    asked = 0 if block.record is None else block.record.rows_in  # there may be nothing to ask about
    if Way.TRAVELS not in ways:
        assert asked == partners
        return {Way.EXACT} if asked < alone else set()
    assert partners <= asked <= alone
    return {Way.FEWER} if asked < alone and Means.BLOOM in ways else set()


def ways_of_all(
    spark: SparkSession,
    connection: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
    queries: Iterable[RandomLayout],
) -> set[StrEnum]:
    """Compare all queries. Of the Bloom filters of some, half of all other keys pass."""
    ways: set[StrEnum] = set()
    for query in queries:
        monkeypatch.setattr(reducing, "BLOOM_BITS", 1 if query.lying else BLOOM_BITS)
        ways |= checked(spark, connection, query)
    return ways


def test_functions_over_one_input(
    spark: SparkSession, connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = [random_layout(seed, several=False) for seed in OVER_ONE]
    assert ways_of_all(spark, connection, monkeypatch, queries) == {*Way, *Means, *Rule}


def test_functions_over_several_inputs(
    spark: SparkSession, connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways: set[StrEnum] = set()
    for seed in OVER_SEVERAL:
        query = random_layout(seed, several=True)
        found = ways_of_all(spark, connection, monkeypatch, [query])
        if Way.PLAIN in found:  # there is nothing to reorder
            assert (len(query.inputs), list(map(len, query.asked))) == (2, [1])
        ways |= found
    assert ways >= {Way.IN_PLACE, Way.SHUFFLED, Way.FAILED, Means.KEYS, Means.BLOOM}
    assert not {Way.AROUND, Means.JOINED} & ways


def test_the_queries_are_of_every_sort() -> None:
    queries = [random_layout(seed, several=False) for seed in OVER_ONE]
    assert {query.reach for query in queries} == set(REACHES)
    assert {len(query.inputs) for query in queries} == {2, 3, 4}
    assert {query.lying for query in queries} == {True, False}
    assert {query.adaptive for query in queries} == {True, False}
    assert {query.options["remember"] for query in queries} == {True, False}
    assert {query.options["policy"] for query in queries} == set(PolicyName)
    assert {each.kind for query in queries for terms in query.asked for each in terms} == set(KINDS)
    assert any(len(set(query.inputs)) < len(query.inputs) for query in queries)  # with itself
