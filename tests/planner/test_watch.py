"""Watching: the rows that Spark gives, as they come; estimates that end exact; a brake."""

from __future__ import annotations

import io
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from rich.console import Console

import eddyline
from eddyline.errors import AggregateOverflowError, NotWatchableError, UnboundLookupError
from eddyline.watching.parts import Part

pytestmark = pytest.mark.slow(30)

ZIPS = [(f"1{n:04}", float(n * 10), "NY" if n % 3 else "NJ") for n in range(40)]
SCHEMA = "zip string, income double, state string"


def look_up(keys: list[str]) -> list[tuple[Any, ...]]:
    return [row for row in ZIPS if row[0] in keys]


@pytest.fixture(scope="module", autouse=True)
def tables(spark: SparkSession) -> None:
    """Tables to scan, and one that is looked up."""
    spark.createDataFrame(ZIPS, SCHEMA).createOrReplaceTempView("plain_zips")
    rows = [
        (n, f"1{n % 45:04}" if n % 11 else None, float(n % 100), f"{n % 7}.25") for n in range(3000)
    ]
    frame = spark.createDataFrame(rows, "id long, zip string, amount double, price string")
    frame = frame.withColumn("price", F.col("price").cast("decimal(10,2)"))
    frame.repartition(3).cache().createOrReplaceTempView("fec")
    eddyline.lookup_table(
        spark, "zips", SCHEMA, ["zip"], eddyline.PythonLookup(look_up), max_in_flight=4
    )


def watched(df: DataFrame, **options: Any) -> list[Part]:  # noqa: ANN401 - those of watch
    return list(eddyline.watch(df, every=0.0, **options))


def rows_of(parts: Sequence[Part]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for part in parts for row in part.rows.to_pylist())


QUERIES = """
SELECT * FROM fec;
SELECT id, amount * 2 AS twice FROM fec WHERE amount > 50;
SELECT f.id, z.income FROM fec f JOIN zips z ON f.zip = z.zip ;
SELECT upper(f.zip) AS u, z.state FROM fec f JOIN zips z ON f.zip = z.zip WHERE z.income > 100;
SELECT f.id + 1 AS next, z.income + f.amount AS both FROM fec f JOIN zips z ON f.zip = z.zip
    WHERE z.income + f.amount > 150;
SELECT a.id, b.id AS other FROM fec a JOIN zips z ON a.zip = z.zip JOIN fec b ON b.zip =
    z.zip WHERE a.id < 50 AND b.id < 90;
SELECT * FROM zips z WHERE z.zip IN ('10003', '10004', 'x');
SELECT m.zip, m.most, z.state FROM (SELECT zip, max(amount) AS most FROM fec GROUP BY zip) m
    JOIN zips z ON z.zip = m.zip ;
SELECT f.id, g.id AS other FROM fec f JOIN fec g ON f.id = g.id + 1 WHERE f.id < 100;
SELECT DISTINCT zip FROM fec;
SELECT f.id, z.income FROM fec f LEFT JOIN zips z ON f.zip = z.zip WHERE f.id < 100 AND
    z.income IS NULL;
SELECT f.id, g.id AS other, z.state FROM fec f JOIN fec g ON f.id = g.id + 1 LEFT JOIN zips z
    ON z.zip = f.zip WHERE f.id < 50;
SELECT f.id FROM fec f LEFT ANTI JOIN zips z ON z.zip = f.zip
"""


@pytest.mark.parametrize("sql", [" ".join(sql.split()) for sql in QUERIES.split(";")])
def test_the_rows_are_spark_s(spark: SparkSession, sql: str) -> None:
    parts = watched(spark.sql(sql))
    plain = spark.sql(sql.replace(" zips ", " plain_zips "))
    assert rows_of(parts) == Counter(tuple(row) for row in plain.collect())
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    assert parts[-1].rows.column_names == plain.columns
    assert parts[-1].total == sum(part.rows.num_rows for part in parts)
    assert all(source.ended for source in parts[-1].sources)


@pytest.mark.parametrize("sql", [q for q in QUERIES.split(";") if " JOIN " in q][:5:2])
def test_the_rows_are_spark_s_in_little_memory(spark: SparkSession, sql: str) -> None:
    parts = watched(spark.sql(sql), memory="20KB")
    plain = spark.sql(sql.replace(" zips ", " plain_zips "))
    assert rows_of(parts) == Counter(tuple(row) for row in plain.collect())
    assert all(source.ended for source in parts[-1].sources)


def test_a_join_with_itself_in_little_memory(spark: SparkSession) -> None:
    sql = "SELECT f.id, g.id AS other FROM fec f JOIN fec g ON f.id = g.id + 1"
    parts = watched(spark.sql(sql), memory="20KB")
    assert rows_of(parts) == Counter((n + 1, n) for n in range(2999))
    assert [source.rows for source in parts[-1].sources] == [3000, 3000]


def test_python_predicates_run_where_the_watcher_is(spark: SparkSession) -> None:
    seen: list[str] = []

    @F.udf("boolean")
    def odd(number: int) -> bool:
        seen.append(threading.current_thread().name)
        return number % 2 == 1

    parts = watched(spark.table("fec").where(odd("id")).select("id"))
    assert rows_of(parts) == Counter((n,) for n in range(1, 3000, 2))


def test_partial_rows_say_what_is_missing(spark: SparkSession) -> None:
    sql = "SELECT f.id, z.income FROM fec f JOIN zips z ON f.zip = z.zip"
    parts = watched(spark.sql(sql), partial=True)
    partial = [row for part in parts for row in part.partial.to_pylist()]
    of_fec = Counter(row["id"] for row in partial if row["missing"] == ["income"])
    assert of_fec == Counter(n for n in range(3000) if n % 11)
    assert all(row["income"] is None for row in partial if row["missing"] == ["income"])
    assert {tuple(row["missing"]) for row in partial} <= {("income",), ("id",)}


AGGREGATES = """
SELECT count(*) AS n FROM fec;
SELECT count(*) AS n, sum(amount) AS s, avg(amount) AS m FROM fec WHERE id < 0;
SELECT zip, count(*) AS n, sum(id) AS s, avg(price) AS m, sum(price) AS p FROM fec GROUP BY zip;
SELECT z.state, count(f.zip) AS n, avg(f.amount) AS m FROM fec f JOIN zips z ON f.zip = z.zip
    GROUP BY z.state;
SELECT avg(amount * 2) AS m, zip FROM fec GROUP BY zip;
SELECT m AS mean, k FROM (SELECT zip AS k, avg(id) AS m, count(id) AS n FROM fec GROUP BY zip);
SELECT count(*) AS n FROM fec f JOIN fec g ON f.zip = g.zip WHERE f.id < 200;
SELECT sum(amount) / count(*) AS r, avg(price) * 2 AS twice, zip FROM fec GROUP BY zip;
SELECT zip, max(amount) - min(amount) AS width, coalesce(max(price), 0) AS p, max(zip) AS z
    FROM fec GROUP BY zip;
SELECT n * 2 AS twice, s / nullif(n, 0) AS mean, k
    FROM (SELECT zip AS k, count(*) AS n, sum(id) AS s FROM fec GROUP BY zip);
SELECT max(id) AS m, min(zip) AS z, sum(id) + 1 AS s, sum(id) > 100 AS b FROM fec WHERE id < 0;
SELECT max(if(id = 5, double('nan'), id)) AS x, min(if(id = 5, double('nan'), -id)) AS y,
    max(date_add(date'2020-01-01', int(id))) AS d, min(id > 5) AS b, max(binary(zip)) AS bin
    FROM fec;
SELECT z.state, count(*) AS n, sum(f.amount) / nullif(count(z.income), 0) AS r
    FROM fec f LEFT JOIN zips z ON f.zip = z.zip GROUP BY z.state
"""


@pytest.mark.parametrize("sql", [" ".join(sql.split()) for sql in AGGREGATES.split(";")])
def test_estimates_end_exact(spark: SparkSession, sql: str) -> None:
    df = spark.sql(sql)
    parts = watched(df, units=7)
    last = parts[-1].estimates
    assert last is not None
    assert last.exact
    plain = spark.sql(sql.replace(" zips ", " plain_zips "))
    found = last.table.select(df.columns)

    def rounded(values: Sequence[Any]) -> tuple[Any, ...]:
        hashable = (bytes(v) if isinstance(v, bytearray) else v for v in values)
        numbers = (repr(round(v, 9)) if isinstance(v, float) else v for v in hashable)
        return tuple(numbers)  # as texts: NaN is equal to no other

    assert Counter(rounded(tuple(row.values())) for row in found.to_pylist()) == Counter(
        rounded(tuple(row)) for row in plain.collect()
    )
    for name in df.columns:
        if f"{name}_low" in last.table.column_names:
            bounds = [last.table.column(f"{name}_{end}").to_pylist() for end in ("low", "high")]
            values = last.table.column(name).to_pylist()
            assert repr(bounds) == repr([values, values])


def test_estimates_on_the_way_come_with_intervals(spark: SparkSession) -> None:
    df = spark.sql(
        "SELECT count(*) AS n, avg(amount) AS m, sum(id) / count(*) AS r, max(id) AS x FROM fec"
    )
    with eddyline.watch(df, units=40, every=0.0) as watch:
        found = [part.estimates for part in watch if part.estimates is not None]
    on_the_way = [each for each in found if 0.1 < each.fraction < 1.0]
    if not on_the_way:  # they came all at once
        pytest.skip("the machine was too quick to be looked at")
    (row,) = on_the_way[0].table.to_pylist()
    assert row["n_low"] < row["n"] < row["n_high"]
    assert row["m_low"] < row["m"] < row["m_high"]
    assert row["r_low"] < row["r"] < row["r_high"]
    assert on_the_way[0].so_far == {"x"}
    assert row["x_low"] is row["x_high"] is None
    assert not found[-1].so_far


@pytest.mark.parametrize(
    "sql",
    [
        (
            "SELECT p.state, count(f.zip) AS n, sum(f.id) / count(*) AS m FROM fec f "
            "JOIN plain_zips p ON f.zip = p.zip GROUP BY p.state"
        ),
        (
            "SELECT count(*) AS n, sum(f.id) AS s FROM fec f JOIN fec g ON f.zip = g.zip JOIN "
            "plain_zips p ON p.zip = g.zip WHERE upper(p.state) = 'NJ'"
        ),
        "SELECT count(*) AS n FROM fec f JOIN (SELECT * FROM fec WHERE id < 0) g ON f.id = g.id",
    ],
)
def test_two_large_scans_are_sampled_at_rates(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    monkeypatch.setattr("eddyline.watching.work.LARGE_BYTES", 0)
    monkeypatch.setattr("eddyline.watching.work.LARGE_PART", 0.0)
    parts = watched(spark.sql(sql), units=15)
    last = parts[-1]
    assert last.estimates is not None
    assert last.estimates.exact
    names = spark.sql(sql).columns
    found = last.estimates.table.select(names).to_pylist()
    assert rounded_rows(found) == rounded_rows([row.asDict() for row in spark.sql(sql).collect()])
    sampled = [source for source in last.sources if source.units is not None]
    assert [source.units for source in sampled] == [(15, 15)] * 2
    for part in parts:
        rates = [source.rate for source in part.sources if source.rate is not None]
        assert not rates or sum(rates) == pytest.approx(1.0)


def rounded_rows(rows: Sequence[dict[str, Any]]) -> Counter[tuple[str, ...]]:
    return Counter(
        tuple(repr(round(v, 9)) if isinstance(v, float) else str(v) for v in row.values())
        for row in rows
    )


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT max(array(amount)) FROM fec", r"max\(.*amount\)\) has no running estimate"),
        ("SELECT upper(state) FROM zips WHERE zip = '10003'", r"upper\(state\).*not understood"),
        ("SELECT count(DISTINCT zip) FROM fec", "has no running estimate"),
        ("SELECT 1 + stddev(amount) AS s FROM fec", r"stddev\(amount\) has no running estimate"),
        ("SELECT round(sum(amount)) AS s FROM fec", "Round.*; watch the aggregates in it"),
        ("SELECT sum(amount) FILTER (WHERE id > 5) AS s FROM fec", "without DISTINCT and FILTER"),
    ],
)
def test_what_cannot_be_watched_is_refused(spark: SparkSession, sql: str, message: str) -> None:
    with pytest.raises(NotWatchableError, match=message):
        eddyline.watch(spark.sql(sql))


def test_what_cannot_be_bound_is_refused(spark: SparkSession) -> None:
    with pytest.raises(UnboundLookupError, match="zips cannot be asked"):
        eddyline.watch(spark.sql("SELECT * FROM zips"))
    with pytest.raises(UnboundLookupError, match="zips"):
        eddyline.watch(spark.sql("SELECT f.id FROM fec f LEFT JOIN zips z ON f.id > z.income"))


def test_concurrent_functions_are_called_below(spark: SparkSession) -> None:
    @eddyline.concurrent(returns="long")
    async def twice(number: int) -> int:
        return 2 * number

    few = spark.table("fec").where("id < 9")
    assert rows_of(watched(few.where(twice("id") > 5).select("id"))) == Counter(
        (n,) for n in range(3, 9)
    )
    doubled = few.select(twice("id").alias("two")).groupBy().agg(F.sum("two").alias("s"))
    last = watched(doubled, units=3)[-1].estimates
    assert last is not None
    assert last.table.column("s").to_pylist() == [72]


def test_rows_without_columns_are_counted(spark: SparkSession) -> None:
    parts = watched(spark.table("fec").where("id < 7").select())
    assert parts[-1].total == 7
    assert sum(part.rows.num_rows for part in parts) == 7


def test_whoever_stops_in_the_middle_leaves_no_thread(spark: SparkSession) -> None:
    with eddyline.watch(spark.range(10**8), every=0.0) as watch:
        next(watch)
    for _ in range(100):
        left = [t.name for t in threading.enumerate() if t.name.startswith("eddyline-rows")]
        if not left:
            break
        time.sleep(0.05)
    assert not left


def test_a_large_sampled_scan_leaves_room_for_the_others(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eddyline.watching.arriving.HELD_ROWS", 100)
    sql = "SELECT count(*) AS n FROM fec f JOIN plain_zips p ON f.zip = p.zip"
    (last,) = [part.estimates for part in watched(spark.sql(sql), units=9) if part.done]
    assert last is not None
    assert last.table.column("n").to_pylist() == [spark.sql(sql).collect()[0].n]


def test_arguments_are_checked(spark: SparkSession) -> None:
    df = spark.table("fec")
    for options in (
        {"units": 0},
        {"units": 1_000_000},
        {"confidence": 1.0},
        {"seed": -1},
        {"policy": "none"},
        {"every": -1.0},
    ):
        with pytest.raises(ValueError, match=r"units|confidence|seed|policy|every"):
            eddyline.watch(df, **options)
    for wrong in ({"units": "5"}, {"units": 1.5}, {"every": None}, {"confidence": "high"}):
        with pytest.raises(TypeError, match=r"(units|every|confidence) is a"):
            eddyline.watch(df, **wrong)
    with pytest.raises(TypeError, match="DataFrame"):
        eddyline.watch("fec")  # type: ignore[arg-type]  # no DataFrame


def test_an_error_of_a_function_is_raised_where_rows_are_wanted(spark: SparkSession) -> None:
    @F.udf("boolean")
    def fails(number: int) -> bool:
        raise ValueError(f"no {number}")

    with pytest.raises(ValueError, match="no "):
        watched(spark.table("fec").where(fails("id")))


def test_an_error_of_a_scan_is_raised_where_rows_are_wanted(spark: SparkSession) -> None:
    df = spark.table("fec").select(F.raise_error(F.lit("no scan")).cast("int").alias("x"))
    with pytest.raises(Exception, match="no scan"):
        watched(df)


def test_a_paused_query_waits_and_a_stopped_one_ends(spark: SparkSession) -> None:
    gate = threading.Event()

    def wait(keys: list[int]) -> list[tuple[int, int]]:
        gate.wait(20)
        return [(key, key) for key in keys]

    eddyline.lookup_table(
        spark, "slow", "a long, b long", ["a"], eddyline.PythonLookup(wait), max_in_flight=2
    )
    df = spark.range(100).join(spark.table("slow"), F.col("id") == F.col("a"))
    with eddyline.watch(df, partial=True) as watch:
        part = next(watch)
        assert part.partial.num_rows
        watch.pause()
        assert watch.paused
        gate.set()
        time.sleep(0.3)
        held = watch.now().total
        time.sleep(0.2)
        assert watch.now().total == held < 100
        watch.resume()
        rest = list(watch)
        assert rest[-1].total == 100
    with eddyline.watch(spark.range(10**9).where("id % 2 = 0"), every=0.0) as endless:
        assert next(endless).rows.num_rows
    assert not endless.paused
    tracker = spark.sparkContext.statusTracker()
    for _ in range(200):
        if not tracker.getActiveJobsIds():
            break
        time.sleep(0.05)
    assert tracker.getActiveJobsIds() == []


def test_the_table_shows_what_has_come(spark: SparkSession) -> None:
    console = Console(file=io.StringIO(), width=80)
    eddyline.watch(spark.sql("SELECT id FROM fec WHERE id < 20")).show(rows=3, console=console)
    df = spark.sql("SELECT count(*) AS n FROM fec")
    eddyline.watch(df, units=3).show(console=console)
    text = console.file.getvalue()  # type: ignore[attr-defined]  # a text file in memory
    assert "20 rows in" in text
    assert "exact, in" in text
    assert "3 of 3 units" in text
    assert "3,000" in text


def test_preferred_rows_come_first(spark: SparkSession) -> None:
    gate = threading.Event()

    def wait(keys: list[int]) -> list[tuple[int, str]]:
        gate.wait(20)
        return [(key, "CA" if key % 10 == 0 else "NY") for key in keys]

    eddyline.lookup_table(
        spark, "states", "a long, state string", ["a"], eddyline.PythonLookup(wait), max_in_flight=1
    )
    df = spark.range(0, 400, 1, 1).join(spark.table("states"), F.col("id") == F.col("a"))
    with eddyline.watch(df, partial=True, every=0.0) as watch:
        watch.prefer("a % 10 = 0 AND id >= 100")
        next(watch)
        gate.set()
        parts = list(watch)
    ids = [row["id"] for part in parts for row in part.rows.to_pylist()]
    assert sorted(ids) == list(range(400))
    places = [place for place, number in enumerate(ids) if number >= 100 and number % 10 == 0]
    assert sum(places) / len(places) < 150  # of 400, in the middle 200 would be


def test_preferred_rows_of_a_scan_come_first(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eddyline.watching.arriving.LONGEST_WAIT", 60.0)
    df = spark.range(0, 400_000, 1, 4).withColumn("k", F.col("id") % 100)
    with eddyline.watch(df, every=0.0) as watch:
        watch.prefer("k = 7")
        rows = pa.concat_tables(part.rows for part in watch)
    assert sorted(rows.column("id").to_pylist()) == list(range(400_000))
    first = rows.column("k").slice(0, 4_000).to_pylist()
    assert first == [7] * 4_000  # all that there are: one in a hundred
    with eddyline.watch(df, every=0.0) as watch:
        watch.prefer("k < 50", weight=0.1)
        rows = pa.concat_tables(part.rows for part in watch)
    assert min(rows.column("k").slice(0, 200_000).to_pylist()) == 50


@pytest.mark.parametrize(
    ("condition", "weight", "message"),
    [
        ("amount", 1.0, "."),
        ("nothing = 1", 1.0, "nothing"),
        ("id = 1", 0.0, "weight is a number above 0"),
        ("id = 1", "x", "weight is a number above 0, not 'x'"),
        ("rand() > 0.5", 1.0, r"cannot be preferred: an expression is not understood \(.*Rand"),
        (5, 1.0, "a condition is SQL"),
    ],
)
def test_what_cannot_be_preferred_is_refused(
    spark: SparkSession, condition: str, weight: float, message: str
) -> None:
    watch = eddyline.watch(spark.table("fec"))
    with pytest.raises(Exception, match=message):
        watch.prefer(condition, weight)
    aggregate = eddyline.watch(spark.sql("SELECT count(*) AS n FROM fec"))
    with pytest.raises(NotWatchableError, match="no rows"):
        aggregate.prefer("n > 1")


def test_rows_that_a_slow_scan_has_not_brought_are_looked_up(spark: SparkSession) -> None:
    """The index/hash hybrid of Raman, Deshpande and Hellerstein (2003), Section 4.5."""
    asked: list[int] = []

    def look(keys: list[int]) -> list[tuple[int, str]]:
        asked.extend(keys)
        return [(key, f"r{key}") for key in keys]

    @F.udf("long")
    def slowly(number: int) -> int:
        time.sleep(0.01)
        return number

    scan = spark.range(0, 300, 1, 1).select(
        slowly("id").alias("a"), F.concat(F.lit("r"), "id").alias("b")
    )
    eddyline.lookup_table(
        spark, "both", "a long, b string", ["a"], eddyline.PythonLookup(look), key=["a"], scan=scan
    )
    df = spark.range(0, 100, 1, 1).join(spark.table("both"), F.col("id") == F.col("a"))
    parts = watched(df)
    assert rows_of(parts) == Counter((n, n, f"r{n}") for n in range(100))
    assert asked
    assert len(asked) == len(set(asked)) <= 100


def test_each_way_of_a_table_says_what_it_was_asked(spark: SparkSession) -> None:
    pairs = [(n, n % 3) for n in range(12)]

    def by(column: int) -> eddyline.PythonLookup:
        return eddyline.PythonLookup(lambda keys: [row for row in pairs if row[column] in keys])

    also = [eddyline.LookupMethod(["b"], by(1))]
    eddyline.lookup_table(
        spark, "pairs", "a long, b long", ["a"], by(0), key=["a"], also=[*also, *also]
    )
    eddyline.lookup_table(spark, "single", "a long, b long", ["a"], by(0))
    df = (
        spark.range(0, 6, 1, 1)
        .join(spark.table("single").alias("s"), F.col("id") == F.col("s.a"))
        .join(spark.table("pairs").alias("x"), F.col("id") == F.col("x.a"))
        .join(spark.table("pairs").alias("y"), F.col("x.b") == F.col("y.b"))
    )
    with eddyline.watch(df.select("id", F.col("y.a").alias("other"))) as watch:
        assert watch.lookups() == {}
        assert sum(part.rows.num_rows for part in watch) == 6 * 4
        asked = watch.lookups()
    assert set(asked) <= {"single", "pairs(a)", "pairs(b)", "pairs(b) 2"}
    assert asked["single"].keys == 6
    assert 1 <= asked["pairs(a)"].keys <= 6  # rows that came by b need not be asked for
    assert sum(each.keys for name, each in asked.items() if "(b)" in name) >= 3


def test_a_query_without_lookups_asks_nothing(spark: SparkSession) -> None:
    with eddyline.watch(spark.range(5)) as watch:
        assert watch.lookups() == {}
        assert list(watch)[-1].total == 5
        assert watch.lookups() == {}


def test_a_group_that_is_selected_twice_is_there_twice(spark: SparkSession) -> None:
    df = spark.sql(
        "SELECT id % 2 AS k, count(*) AS n, id % 2 AS again FROM range(9) GROUP BY id % 2"
    )
    (last,) = [part.estimates for part in watched(df, units=3) if part.done]
    assert last is not None
    assert last.table.column_names == ["k", "n", "n_low", "n_high", "again"]
    assert sorted(map(tuple, last.table.select(df.columns).to_pandas().values.tolist())) == [
        (0, 5, 0),
        (1, 4, 1),
    ]


def test_a_sum_that_does_not_fit_its_type_says_so(spark: SparkSession) -> None:
    df = spark.range(8).selectExpr("id + 4611686018427387904 AS s").agg({"s": "sum"}).toDF("s")
    with pytest.raises(AggregateOverflowError, match="s is a sum that does not fit int64"):
        list(eddyline.watch(df, units=4, every=0.0))
    with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
        df.collect()
