"""Large inputs that are read when the rows that they are joined with have been measured."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

import eddyline
from eddyline.planner.claim import native_choice
from tests.oracle.plain_values import plain
from tests.planner.joins.broadcasting import THRESHOLD

pytestmark = pytest.mark.slow(40)

# Workers cannot import the tests, so the functions travel whole.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]

FACTS = 400
SMALL = 2_500  # bytes: more than the file of the colours or a tenth of the facts, less than others


def is_even(number: int) -> bool:
    """Fail where a number is negative: whoever is asked about such a row finds out."""
    if number < 0:
        raise ValueError("a negative number")
    return number % 2 == 0


@pytest.fixture(scope="module", autouse=True)
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Write facts, of which a tenth have a colour that is wanted, and two tables about them."""
    numbers = range(FACTS)
    written = {
        "facts": {
            "id": list(numbers),
            "colour": [n % 40 if n % 17 else None for n in numbers],
            "item": [n % 100 for n in numbers],
            "place": [n % 25 if n % 3 else None for n in numbers],
            "value": [-1 if n % 40 == 7 else n for n in numbers],
        },
        "colours": {"colour": list(range(40)), "hue": [n % 10 for n in range(40)]},
        "items": {
            "item": list(range(5, 605)),
            "price": [n * 7919 % 10007 for n in range(600)],
        },
        "places": {"place": list(range(25)) * 16, "land": [n * 7 % 401 for n in range(400)]},
    }
    folder = tmp_path_factory.mktemp("measured")
    for name, columns in written.items():
        path = folder / f"{name}.parquet"
        pq.write_table(pa.table(columns), path)
        spark.read.parquet(str(path)).createOrReplaceTempView(f"measured_{name}")
        assert (path.stat().st_size <= SMALL) == (name == "colours"), path.stat().st_size
    spark.udf.register("measured_is_even", F.udf(is_even, "boolean"))


@pytest.fixture(autouse=True)
def all_wait(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have Spark broadcast the colours alone by their size, and more by what was measured."""
    monkeypatch.setattr(native_choice, "WORTH_WAITING", 1)
    spark.conf.set(THRESHOLD, str(SMALL))
    yield
    spark.conf.unset(THRESHOLD)


ONE = """
    SELECT f.id, c.hue, i.price FROM measured_facts f
    JOIN measured_items i ON f.item = i.item JOIN measured_colours c ON f.colour = c.colour
    WHERE measured_is_even({of}) AND c.hue {hue}
"""

TWO = """
    SELECT f.id, c.hue, i.price, p.land FROM measured_facts f
    JOIN measured_items i ON f.item = i.item JOIN measured_colours c ON f.colour = c.colour
    JOIN measured_places p ON p.place = f.place AND p.land > f.id
    WHERE measured_is_even({of}) AND c.hue {hue}
"""


def physical(df: DataFrame) -> str:
    """Return the plan that has run."""
    return str(df._jdf.queryExecution().executedPlan().toString().partition("Initial Plan")[0])


def same(spark: SparkSession, sql: str) -> DataFrame:
    """Compare a query with plain Spark; return it adapted and run."""
    fast = eddyline.adapt(spark.sql(sql))
    found = Counter(tuple(map(plain, row)) for row in fast.collect())
    assert found == Counter(tuple(map(plain, row)) for row in spark.sql(sql).collect())
    return fast


def asked_about(df: DataFrame) -> int:
    """Return how many rows came into the only block of a DataFrame that has run."""
    (block,) = eddyline.report(df).blocks
    assert block.record is not None
    return block.record.rows_in


def waited(df: DataFrame) -> list[tuple[str, int | None, str]]:
    """Return what the report says of inputs that have waited: which, for how many rows, and how.

    They were joined as it says.
    """
    (block,) = eddyline.report(df).blocks
    assert all(one.seconds is not None and one.bytes >= 0 for one in block.measured)
    return [(one.input.split(".")[0], one.rows, one.joined.value) for one in block.measured]


def scans(text: str) -> Counter[str]:
    """Return how often a plan that has run reads each table."""
    return Counter(re.findall(r"FileScan parquet .*?/(\w+)\.parquet", text))


@pytest.mark.parametrize(("sql", "large"), [(ONE, 1), (TWO, 2)])
def test_few_rows_are_broadcast_to_what_is_large(spark: SparkSession, sql: str, large: int) -> None:
    fast = same(spark, sql.format(of="f.id", hue="= 4"))
    text = physical(fast)
    assert "SortMergeJoin" not in text
    # Nothing is shuffled but the measured rows, and nobody waits any more.
    assert text.count("ShuffleQueryStage") == large, text
    assert text.count("LeftSemi") == 1, text
    assert set(scans(text).values()) == {1}, text
    of_colour = "SELECT 1 FROM measured_facts JOIN measured_colours USING (colour) WHERE hue = 4"
    assert asked_about(fast) <= spark.sql(of_colour).count()
    assert "is read when the rows left of facts have been measured" in str(eddyline.explain(fast))
    told = waited(fast)
    # What comes out of the first join with a large input is measured for the next one.
    assert [how for _, _, how in told] == ["rows broadcast"] * large
    left = f"{of_colour} AND id % 2 = 0 AND (place IS NOT NULL OR {large} = 1)"
    assert spark.sql(left).count() in {rows for _, rows, _ in told}
    fast.write.format("noop").mode("overwrite").save()
    assert waited(fast) == told


@pytest.mark.parametrize("sql", [ONE, TWO])
def test_many_rows_are_shuffled_as_they_would_have_been(spark: SparkSession, sql: str) -> None:
    fast = same(spark, sql.format(of="f.id", hue="< 9"))
    text = physical(fast)
    assert "SortMergeJoin" in text or "ShuffledHashJoin" in text
    assert set(scans(text).values()) == {1}, text
    assert "both shuffled" in {how for _, _, how in waited(fast)}


def test_nothing_is_read_of_what_nobody_waits_for(spark: SparkSession) -> None:
    """What has an odd hue has an odd number."""
    fast = same(spark, TWO.format(of="f.id", hue="= 3"))
    assert not {"items", "places"} & set(scans(physical(fast)))
    assert (0, "not joined") in {(rows, how) for _, rows, how in waited(fast)}


def test_errors_travel_with_measured_rows(spark: SparkSession) -> None:
    """Rows with hue 7 fail, and are wanted by nobody."""
    rows = eddyline.adapt(spark.sql(ONE.format(of="f.value", hue="= 4"))).collect()
    assert sorted(rows) == sorted(spark.sql(ONE.format(of="f.id", hue="= 4")).collect())
    with pytest.raises(Exception, match="a negative number"):
        eddyline.adapt(spark.sql(ONE.format(of="f.value", hue="= 7"))).collect()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("spark.sql.adaptive.enabled", "false"),
        ("spark.sql.exchange.reuse", "false"),
        (THRESHOLD, "-1"),
    ],
)
def test_nothing_waits_where_nothing_could_come_of_it(
    spark: SparkSession, setting: str, value: str
) -> None:
    spark.conf.set(setting, value)
    try:
        explained = str(eddyline.explain(spark.sql(ONE.format(of="f.id", hue="= 4"))))
    finally:
        spark.conf.unset(setting)
    assert "is read when" not in explained
    assert "facts is reduced by colours" in explained
