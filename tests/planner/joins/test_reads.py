"""A source is read as often as plain Spark reads it, whoever joins and whatever reduces."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

import eddyline
from eddyline.planner.adapt import adapted_blocks
from eddyline.planner.rewrite import reducing, sampled_keys
from tests.planner.joins.broadcasting import THRESHOLD

# Workers cannot import the tests, so the functions travel whole.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]

REUSE = "spark.sql.exchange.reuse"
SIZE = "spark.sql.defaultSizeInBytes"

FACTS, COLOURS = 200, 20
PARTS = 2


class CountedSource(DataSource):
    """Numbers in two partitions; each read of one leaves a file behind in the folder ``seen``."""

    @classmethod
    def name(cls) -> str:
        return "counted_in_tests"

    def schema(self) -> str:
        return "colour long, number long"

    def reader(self, schema: object) -> DataSourceReader:  # noqa: ARG002 - the protocol's
        return CountedReader(Path(self.options["seen"]), int(self.options["rows"]))


class CountedReader(DataSourceReader):
    """Reads every other number."""

    def __init__(self, seen: Path, rows: int) -> None:
        self._seen = seen
        self._rows = rows

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(part) for part in range(PARTS)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int, int]]:
        with (self._seen / f"{partition.value}").open("a") as file:
            file.write(".")
        return ((n % COLOURS, n) for n in range(partition.value, self._rows, PARTS))


@pytest.fixture(autouse=True)
def tables(spark: SparkSession, tmp_path: Path) -> None:
    """Make views of a file of facts, of one of colours, and of sources with the same columns."""
    spark.dataSource.register(CountedSource)
    for name, rows in (("facts", FACTS), ("colours", COLOURS)):
        path = tmp_path / f"{name}.parquet"
        numbers = range(rows)
        pq.write_table(
            pa.table({"colour": [n % COLOURS for n in numbers], "number": numbers}), path
        )
        spark.read.parquet(str(path)).createOrReplaceTempView(f"read_{name}")
        seen = tmp_path / name
        seen.mkdir()
        source = spark.read.format("counted_in_tests").options(seen=str(seen), rows=rows)
        source.load().createOrReplaceTempView(f"asked_{name}")
    spark.udf.register("reads_even", F.udf(lambda number: number % 2 == 0, "boolean"))
    spark.udf.register("reads_less", F.udf(lambda one, other: one < other, "boolean"))


@pytest.fixture(autouse=True)
def _small_inputs_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reducing, "WORTH_REDUCING", 1)
    monkeypatch.setattr(sampled_keys, "WORTH_SAMPLING", 0)


def reads(folder: Path) -> Counter[str]:
    """Return how often each partition of a source was read since the last time."""
    files = list(folder.glob("*/?"))
    found = Counter({file.name: len(file.read_text()) for file in files})
    for file in files:
        file.unlink()
    return found


def scans(df: DataFrame) -> int:
    """Return how many scans of files have run; what was found again did not."""
    plan = df._jdf.queryExecution().executedPlan().toString()
    return str(plan.partition("Initial Plan")[0]).count("FileScan")


@contextmanager
def given(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Have some settings of the session for a while."""
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in settings:
            spark.conf.unset(key)


PYTHON = {
    "what could reduce": "read_facts f JOIN asked_colours c ON f.colour = c.colour",
    "what is reduced": "asked_facts f JOIN read_colours c ON f.colour = c.colour",
    "what stands between": "read_facts f JOIN asked_colours x ON f.colour = x.colour "
    "JOIN read_colours c ON x.number = c.number",
}
"""Joins in which a source has some part to play, if everybody may have one."""

ASKED = {
    "one input": "reads_even(f.number) AND reads_less(f.colour, f.number)",
    "two inputs": "reads_less(c.number, f.number)",
}


def query(inputs: str, asked: str) -> str:
    return f"SELECT f.number AS n, c.number AS m FROM {inputs} WHERE {asked} AND c.number < 5"  # noqa: S608 - made here


@pytest.mark.parametrize("inputs", PYTHON)
@pytest.mark.parametrize(
    ("asked", "reach"), [("one input", "10MB"), ("one input", "-1"), ("two inputs", "10MB")]
)
def test_a_python_source_is_read_as_often_as_by_plain_spark(
    spark: SparkSession, tmp_path: Path, inputs: str, asked: str, reach: str
) -> None:
    """Though it is small, and could be broadcast, as far as Spark knows."""
    text = query(PYTHON[inputs], ASKED[asked])
    with given(spark, {THRESHOLD: reach, SIZE: "1000"}):
        expected = sorted(spark.sql(text).collect())
        assert expected
        plain = reads(tmp_path)
        adapted = eddyline.adapt(spark.sql(text))
        assert adapted_blocks(adapted)
        assert not reads(tmp_path)
        assert sorted(adapted.collect()) == expected
        assert reads(tmp_path) == plain
        assert plain == {"0": 1, "1": 1}


COSTLY = "(SELECT colour, max(number) AS number FROM read_colours GROUP BY colour)"


@pytest.mark.parametrize(("reach", "reuse"), [("10MB", "true"), ("10MB", "false"), ("-1", "true")])
def test_what_is_costly_to_compute_is_computed_once(
    spark: SparkSession, reach: str, reuse: str
) -> None:
    """It reduces only where Spark finds it again, as it does what it has broadcast."""
    text = query(f"read_facts f JOIN {COSTLY} c ON f.colour = c.colour", ASKED["one input"])
    with given(spark, {THRESHOLD: reach, REUSE: reuse}):
        frame = spark.sql(text)
        adapted = eddyline.adapt(frame)
        assert sorted(adapted.collect()) == sorted(frame.collect())
        assert scans(adapted) == scans(frame) == 2
        (block,) = eddyline.explain(adapted).blocks
        reduces = any("is reduced by" in line for line in block.joined)
        assert reduces == (reach != "-1" and reuse == "true")
