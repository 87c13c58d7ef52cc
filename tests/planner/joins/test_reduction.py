"""Inputs that are reduced natively by the others before functions are asked about their rows."""

from __future__ import annotations

import functools
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

import eddyline
from eddyline import catalyst
from eddyline.host.classic import classic
from eddyline.planner.claim import reduction
from eddyline.planner.rewrite import reducing
from tests.oracle.plain_values import plain
from tests.planner.joins.broadcasting import THRESHOLD, broadcasting

pytestmark = pytest.mark.slow(50)

# Workers cannot import the tests, so the functions travel whole.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]

FACTS = 400


def is_even(number: int) -> bool:
    """Fail where there is no number: whoever is asked about such a row finds out."""
    if number < 0:
        raise ValueError("a negative number")
    return number % 2 == 0


@pytest.fixture(scope="module", autouse=True)
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Write a fact table of 400 rows and three dimensions, and make views of them.

    A tenth of the facts have a colour that is wanted, and each fourth shape is missing.
    """
    numbers = range(FACTS)
    written = {
        "facts": {
            "id": list(numbers),
            "colour": [n % 40 if n % 17 else None for n in numbers],
            "shape": [n % 12 for n in numbers],
            "place": [n % 25 for n in numbers],
            "value": [-1 if n % 40 == 7 else n for n in numbers],
        },
        "colours": {"colour": list(range(40)), "hue": [n % 10 for n in range(40)]},
        "shapes": {
            "shape": [n for n in range(12) if n % 4],
            "corners": [n for n in range(12) if n % 4],
        },
        "places": {"place": list(range(25)), "land": [n % 5 for n in range(25)]},
        "lands": {"land": list(range(5)), "size": list(range(5))},
    }
    folder = tmp_path_factory.mktemp("reduced")
    for name, columns in written.items():
        path = folder / f"{name}.parquet"
        pq.write_table(pa.table(columns), path)
        spark.read.parquet(str(path)).createOrReplaceTempView(f"reduced_{name}")
    spark.udf.register("reduced_is_even", F.udf(is_even, "boolean"))


STAR = """
    SELECT id, hue, corners FROM reduced_facts f
    JOIN reduced_colours c ON f.colour = c.colour JOIN reduced_shapes s ON f.shape = s.shape
    WHERE reduced_is_even(value) AND hue = 4
"""


def physical(df: DataFrame) -> str:
    """Return the plan that has run."""
    return str(df._jdf.queryExecution().executedPlan().toString().partition("Initial Plan")[0])


def same(spark: SparkSession, sql: str, **options: Any) -> DataFrame:  # noqa: ANN401 - of adapt
    """Compare a query with plain Spark; return it adapted and run."""
    fast = eddyline.adapt(spark.sql(sql), **options)
    found = Counter(tuple(map(plain, row)) for row in fast.collect())
    assert found == Counter(tuple(map(plain, row)) for row in spark.sql(sql).collect())
    return fast


def rows_asked_about(df: DataFrame) -> int:
    """Return how many rows came into the only block of a DataFrame that has run."""
    (block,) = eddyline.report(df).blocks
    assert block.record is not None
    return block.record.rows_in


def test_what_cannot_match_is_not_asked_about(spark: SparkSession) -> None:
    sql = STAR.replace("reduced_is_even(value)", "reduced_is_even(id)")
    fast = same(spark, sql)
    without = spark.sql(sql.replace("reduced_is_even(id) AND", "")).count()
    assert rows_asked_about(fast) == without


def test_an_input_is_read_once(spark: SparkSession) -> None:
    fast = same(spark, STAR.replace("reduced_is_even(value)", "reduced_is_even(id)"))
    text = physical(fast)
    assert text.count("ReusedExchange") == 2, text
    assert text.count("FileScan") == 3, text


def test_errors_of_rows_without_partners_do_not_surface(spark: SparkSession) -> None:
    """Rows with hue 7 fail, and are wanted by nobody."""
    rows = eddyline.adapt(spark.sql(STAR)).collect()
    expected = spark.sql(STAR.replace("reduced_is_even(value)", "id % 2 = 0")).collect()
    assert sorted(rows) == sorted(expected)


def test_errors_of_rows_with_partners_do(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="a negative number"):
        eddyline.adapt(spark.sql(STAR.replace("hue = 4", "hue = 7"))).collect()


NOT_EXACT = """
    SELECT id, hue, pl.place FROM reduced_facts f
    JOIN reduced_colours c ON f.colour = c.colour JOIN {other} pl ON f.place = pl.place
    WHERE reduced_is_even(value) AND hue {hue}
"""


@pytest.fixture
def once(spark: SparkSession) -> str:
    """Return a view of the places that gives other rows each time, as far as Spark can tell."""

    def some(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.filter(pc.greater(batch.column(0), 20))

    places = spark.table("reduced_places")
    places.mapInArrow(some, places.schema).createOrReplaceTempView("reduced_once")
    return "reduced_once"


def test_errors_travel_where_the_reduction_is_not_exact(spark: SparkSession, once: str) -> None:
    """The rows that fail have hue 7; of their places the join keeps only number 22."""
    df = eddyline.adapt(spark.sql(NOT_EXACT.format(other=once, hue="= 7")))
    explanation = str(eddyline.explain(df))
    assert "carry the error above the joins" in explanation
    assert "places does not reduce facts: it may give other rows the second time" in explanation
    with pytest.raises(Exception, match="ValueError: a negative number"):
        df.collect()


def test_errors_that_joins_drop_do_not_surface(spark: SparkSession, once: str) -> None:
    sql = NOT_EXACT.format(other=once, hue="= 7") + " AND pl.place <> 22"
    expected = spark.sql(sql.replace("reduced_is_even(value)", "value % 2 = 0")).collect()
    assert sorted(eddyline.adapt(spark.sql(sql)).collect()) == sorted(expected)


def thrice(number: int) -> int:
    """Fail where there is no number."""
    if number < 0:
        raise ValueError("a negative number")
    return 3 * number


@pytest.fixture
def valued(spark: SparkSession) -> str:
    """Return a view of the facts with a value that a function makes of each."""
    facts = spark.table("reduced_facts").withColumn("made", F.udf(thrice, "int")("value"))
    facts.createOrReplaceTempView("reduced_valued")
    return "reduced_valued f JOIN reduced_colours c ON f.colour = c.colour"


WANTED = 37
"""The facts with hue 4: a tenth of those that have a colour."""


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, made FROM {} WHERE hue = 4",
        "SELECT id, made + 1, hue FROM {} WHERE hue = 4 AND made % 2 = 0",
        "SELECT id, made FROM {} WHERE hue = 4 AND reduced_is_even(id)",
        "SELECT id, made, reduced_is_even(id + hue) FROM {} WHERE hue = 4 AND made > 9",
    ],
)
def test_values_that_the_result_wants_are_made_of_what_is_left(
    spark: SparkSession, valued: str, query: str
) -> None:
    facts = spark.table("reduced_facts").withColumn("made", F.udf(thrice, "int")("id"))
    facts.createOrReplaceTempView("reduced_valued")  # for no row the function fails
    fast = same(spark, query.format(valued))
    records = [block.record for block in eddyline.report(fast).blocks]
    assert max(record.rows_in for record in records if record is not None) == WANTED


def test_values_without_a_condition_that_drops_rows_are_sparks(
    spark: SparkSession, valued: str
) -> None:
    query = "SELECT id, reduced_is_even(id), hue FROM {}"
    fast = same(spark, query.format(valued))
    assert "reduced by" not in str(eddyline.explain(fast))


TRAVELLING = "SELECT id, made FROM {} JOIN {} pl ON f.place = pl.place WHERE hue = 7 {}"


@pytest.mark.parametrize("condition", ["", "AND made >= 0", "AND reduced_is_even(2 * id)"])
def test_errors_of_values_travel_as_those_of_predicates(
    spark: SparkSession, valued: str, once: str, condition: str
) -> None:
    """Rows with hue 7 fail; of their places the join keeps only number 22."""
    sql = TRAVELLING.format(valued, once, condition)
    with pytest.raises(Exception, match="ValueError: a negative number"):
        eddyline.adapt(spark.sql(sql)).collect()
    assert eddyline.adapt(spark.sql(sql + " AND pl.place <> 22")).collect() == []
    assert eddyline.adapt(spark.sql(sql.replace("hue = 7", "hue = 4"))).count() > 0


def test_a_constant_argument_is_of_no_input(spark: SparkSession) -> None:
    spark.udf.register("reduced_is_over", lambda number, other: number > other, "boolean")
    fast = same(
        spark,
        """
        SELECT id FROM reduced_colours c JOIN reduced_facts f ON f.colour = c.colour
        WHERE hue = 4 AND reduced_is_over(id, 2)
        """,
    )
    assert rows_asked_about(fast) == WANTED


def test_what_may_give_other_rows_is_read_once(spark: SparkSession) -> None:
    read = spark.sparkContext.accumulator(0)

    def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            read.add(batch.num_rows)
            yield batch

    colours = spark.table("reduced_colours")
    colours.mapInArrow(counted, colours.schema).createOrReplaceTempView("reduced_counted")
    sql = STAR.replace("reduced_colours", "reduced_counted").replace("(value)", "(id)")
    assert eddyline.adapt(spark.sql(sql)).count() > 0
    assert read.value == 40


@pytest.mark.parametrize(
    ("made", "repeatable"),
    [
        ("SELECT * FROM reduced_colours WHERE hue > 3", True),
        ("SELECT DISTINCT colour FROM reduced_colours", True),
        ("SELECT colour, avg(hue) AS a FROM reduced_colours GROUP BY colour", False),
        ("SELECT colour, max(hue) AS a FROM reduced_colours GROUP BY colour", True),
        ("SELECT * FROM reduced_colours LIMIT 5", False),
        ("SELECT * FROM reduced_colours WHERE rand() > 0.5", False),
        ("SELECT * FROM reduced_colours TABLESAMPLE (50 PERCENT)", False),
        ("SELECT * FROM reduced_colours WHERE reduced_is_even(hue)", False),
        ("SELECT * FROM range(10)", True),
        ("SELECT * FROM VALUES (1, 2), (3, 4) AS v(a, b)", True),
    ],
)
def test_only_what_is_known_to_be_so_is_repeatable(
    spark: SparkSession, made: str, *, repeatable: bool
) -> None:
    plan = catalyst.optimized_plan(classic(spark.sql(made)))
    assert (catalyst.unrepeatable(plan) is None) == repeatable


SNOWFLAKE = """
    SELECT id, size FROM reduced_facts f
    JOIN reduced_places p ON f.place = p.place JOIN reduced_lands l ON p.land = l.land
    WHERE reduced_is_even(id) AND size > 2
"""


def test_reductions_go_along_the_graph(spark: SparkSession) -> None:
    fast = same(spark, SNOWFLAKE)
    assert "itself reduced by" in str(eddyline.explain(fast))
    assert rows_asked_about(fast) == FACTS * 2 // 5


@pytest.mark.parametrize("policy", ["adaptive", "lottery"])
def test_a_filter_that_lies_changes_no_answer(
    spark: SparkSession, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One bit a key: about half of all other keys pass."""
    monkeypatch.setattr("eddyline.planner.rewrite.reducing.BLOOM_BITS", 1)
    monkeypatch.setattr(reduction, "LARGEST_FILTER", 10**9)
    with broadcasting(spark, allowed=False):
        fast = same(spark, STAR.replace("(value)", "(id)"), policy=policy)
        assert "Bloom" in str(eddyline.explain(fast))
        with pytest.raises(Exception, match="a negative number"):
            eddyline.adapt(spark.sql(STAR.replace("hue = 4", "hue = 7"))).collect()


def test_keys_alone_are_broadcast_where_the_rows_are_too_large(spark: SparkSession) -> None:
    sql = STAR.replace("(value)", "(id)")
    size = catalyst.size_in_bytes(catalyst.optimized_plan(classic(spark.table("reduced_colours"))))
    spark.conf.set(THRESHOLD, str(size - 1))
    try:
        fast = same(spark, sql)
        assert "by its keys" in str(eddyline.explain(fast))
    finally:
        spark.conf.unset(THRESHOLD)


AWKWARD: dict[str, list[Any]] = {
    "double": [math.nan, -0.0, 0.0, 1.5, None],
    "float": [math.nan, -0.0, 0.0, 1.5, None],
    "string": ["", "a", "A", "ä", None],
    "string collate UTF8_LCASE": ["", "a", "A", "ä", None],
    "int": [0, 1, -(2**31), 2**31 - 1, None],
    "decimal(10,2)": [Decimal(0), Decimal(1), Decimal("2.5"), Decimal(-3), None],
    "boolean": [True, False, None, True, None],
    "struct<a:int,b:string>": [(1, "x"), (1, None), (None, "x"), None, (2, "y")],
    "binary": [b"", b"\0", b"a", b"A", None],
}


@pytest.fixture(scope="module")
def awkward(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], None]:
    """Return what makes views of two tables with keys of a kind, which are written once."""

    @functools.cache
    def written(stored: str) -> Path:
        folder = tmp_path_factory.mktemp("awkward")
        values = next(values for kind, values in AWKWARD.items() if kind.startswith(stored))
        left = [(n, values[n % 5]) for n in range(20)]
        right = [(n, values[(3 * n) % 5]) for n in range(4)]
        for name, rows in (("left", left), ("right", right)):
            spark.createDataFrame(rows, f"id int, k {stored}").write.parquet(str(folder / name))
        return folder

    def offer(stored: str) -> None:
        for name in ("left", "right"):
            path = str(written(stored) / name)
            table = spark.read.schema(f"id int, k {stored}").parquet(path)
            table.createOrReplaceTempView(f"awkward_{name}")

    return offer


@pytest.mark.parametrize("kind", AWKWARD)
@pytest.mark.parametrize("operator", ["=", "<=>"])
@pytest.mark.parametrize("broadcast", [True, False])
def test_keys_of_awkward_values(
    spark: SparkSession,
    awkward: Callable[[str], None],
    kind: str,
    operator: str,
    *,
    broadcast: bool,
) -> None:
    stored = kind.partition(" ")[0]
    awkward(stored)
    left_key = f"CAST(l.k AS {stored})" if stored == kind else "l.k COLLATE UTF8_LCASE"
    right_key = left_key.replace("l.k", "r.k")
    sql = f"""SELECT l.id AS a, r.id AS b FROM awkward_left l JOIN awkward_right r
        ON {left_key} {operator} {right_key} WHERE reduced_is_even(l.id) AND r.id < 3"""  # noqa: S608
    with broadcasting(spark, allowed=broadcast):
        same(spark, sql)


def test_casts_and_expressions_as_keys(spark: SparkSession) -> None:
    same(
        spark,
        """SELECT f.id, c.hue FROM reduced_facts f
        JOIN reduced_colours c ON f.colour % 7 = CAST(c.colour AS INT) + 1
        WHERE reduced_is_even(f.id) AND hue < 5""",
    )


@pytest.mark.parametrize(
    "sql",
    [
        # with itself
        """SELECT a.id, b.id AS other FROM reduced_facts a JOIN reduced_facts b
        ON a.colour = b.colour WHERE reduced_is_even(a.id) AND b.place = 3""",
        # a cycle
        """SELECT f.id FROM reduced_facts f JOIN reduced_places p ON f.place = p.place
        JOIN reduced_lands l ON p.land = l.land AND l.size = f.shape
        WHERE reduced_is_even(f.id) AND l.size < 3""",
        # a range beside an equality, and one that alone relates
        """SELECT f.id, p.place FROM reduced_facts f
        JOIN reduced_colours c ON f.colour = c.colour AND f.shape < c.hue
        JOIN reduced_places p ON f.place > p.place + 21
        WHERE reduced_is_even(f.id) AND c.hue > 5""",
        # an empty input
        """SELECT f.id FROM reduced_facts f JOIN reduced_colours c ON f.colour = c.colour
        WHERE reduced_is_even(f.id) AND hue = 99""",
        # two keys of one pair
        """SELECT f.id FROM reduced_facts f JOIN reduced_colours c
        ON f.colour = c.colour AND f.shape = c.hue WHERE reduced_is_even(f.id) AND hue > 1""",
        # one that expands
        """SELECT f.id, g.id AS other FROM reduced_facts f JOIN reduced_facts g
        ON f.place = g.place JOIN reduced_colours c ON g.colour = c.colour
        WHERE reduced_is_even(f.id) AND hue = 1""",
        # several functions over one input, with OR
        """SELECT f.id FROM reduced_facts f JOIN reduced_colours c ON f.colour = c.colour
        WHERE (reduced_is_even(f.id) OR reduced_is_even(f.shape)) AND reduced_is_even(f.place)
        AND hue > 5""",
        # functions over two inputs
        """SELECT f.id FROM reduced_facts f JOIN reduced_colours c ON f.colour = c.colour
        WHERE reduced_is_even(f.id) AND reduced_is_even(c.hue) AND hue > 5""",
        # the function's value is wanted
        """SELECT f.id, reduced_is_even(f.id) AS e FROM reduced_facts f
        JOIN reduced_colours c ON f.colour = c.colour WHERE reduced_is_even(f.id) AND hue > 5""",
        # only the number of rows is
        """SELECT count(*) FROM reduced_facts f JOIN reduced_colours c ON f.colour = c.colour
        WHERE reduced_is_even(f.id) AND hue > 5""",
    ],
)
@pytest.mark.parametrize("broadcast", [True, False])
def test_whatever_the_graph(
    spark: SparkSession,
    sql: str,
    monkeypatch: pytest.MonkeyPatch,
    *,
    broadcast: bool,
) -> None:
    monkeypatch.setattr(reducing, "WORTH_REDUCING", 1)
    with broadcasting(spark, allowed=broadcast):
        same(spark, sql)
        same(spark, sql, joins="always")


def test_inputs_of_the_eddy_are_reduced(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reducing, "WORTH_REDUCING", 1)
    sql = STAR.replace("(value)", "(f.id + c.hue)").replace("f.shape", "f.shape")
    fast = same(spark, sql)
    explanation = str(eddyline.explain(fast))
    assert "functions look at several inputs" in explanation
    assert "facts is reduced by colours exactly, by its keys" in explanation


def test_what_says_nothing_is_left_to_the_eddy(spark: SparkSession) -> None:
    """Colours are asked about, of which each has ten facts: nobody knows what the join does."""
    sql = """SELECT f.id FROM reduced_facts f JOIN reduced_colours c ON f.colour = c.colour
        WHERE reduced_is_even(c.hue)"""
    assert "no condition says whether the join with facts" in str(
        eddyline.explain(same(spark, sql))
    )
