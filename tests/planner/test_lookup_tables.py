"""Lookup tables in Spark SQL: the same rows as of ordinary tables, each key asked for once."""

from __future__ import annotations

import itertools
import time
from collections import Counter, namedtuple
from datetime import datetime
from functools import partial
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from pyspark.sql.types import BooleanType

import eddyline
from eddyline.errors import ConnectNotSupportedError, UnboundLookupError
from eddyline.planner.declare.lookup_tables import lookup_tables_of
from tests.http_service import HttpService, Reply, Request
from tests.planner.recording_source import RecordingSource

pytestmark = pytest.mark.slow(30)

NAMES = itertools.count()

ZIPS = [(f"1{n:04}", float(n * 10), "NY" if n % 3 else "NJ") for n in range(40)]
CRIMES = [(f"1{n:04}", n % 5, f"town {n % 7}") for n in range(0, 60, 2)]
TOWNS = [(f"town {n}", n * 100) for n in range(7)]

SCHEMAS = {
    "zips": "zip string, income double, state string",
    "crimes": "zip string, rating int, town string",
    "towns": "town string, people long",
}
ROWS: dict[str, list[tuple[Any, ...]]] = {"zips": ZIPS, "crimes": CRIMES, "towns": TOWNS}


@pytest.fixture(scope="module", autouse=True)
def plain_tables(spark: SparkSession) -> None:
    """The tables as ordinary ones, ``plain_…``, and one that can only be scanned."""
    for name, schema in SCHEMAS.items():
        spark.createDataFrame(ROWS[name], schema).createOrReplaceTempView(f"plain_{name}")
    contributors = [(n, f"1{n % 45:04}" if n % 11 else None, float(n % 100)) for n in range(400)]
    frame = spark.createDataFrame(contributors, "id long, zip string, amount double")
    frame.repartition(3).cache().createOrReplaceTempView("fec")


@pytest.fixture(autouse=True)
def tables(spark: SparkSession) -> dict[str, RecordingSource]:
    """Tables for lookups under their names."""
    sources = {}
    for name, schema in SCHEMAS.items():
        sources[name] = RecordingSource(ROWS[name], [0])
        column = schema.split()[0]
        eddyline.lookup_table(
            spark, name, schema, [column], eddyline.PythonLookup(sources[name]), max_in_flight=4
        )
    return sources


def same(spark: SparkSession, sql: str, **options: Any) -> DataFrame:  # noqa: ANN401 - those of adapt
    """Run a query over lookup tables, and over plain ones; return the adapted one."""
    adapted = eddyline.adapt(spark.sql(sql), **options)
    plain = sql
    for name in SCHEMAS:
        plain = plain.replace(f" {name} ", f" plain_{name} ")
    assert Counter(adapted.collect()) == Counter(spark.sql(plain).collect())
    return adapted


def test_a_lookup_table_is_joined_like_any_other(
    spark: SparkSession, tables: dict[str, RecordingSource]
) -> None:
    same(spark, "SELECT f.id, f.amount, z.income FROM fec f JOIN zips z ON f.zip = z.zip ")
    assert set(tables["zips"].keys) == {f"1{n:04}" for n in range(45)}
    assert max(tables["zips"].keys.values()) == 1


QUERIES = """
SELECT * FROM zips z WHERE z.zip = '10003';
SELECT * FROM zips z WHERE z.zip IN ('10003', '10004', '99999', NULL);
SELECT income FROM zips z WHERE (z.zip = '10003' OR z.zip = '10004') AND income > 30;
SELECT count(*), sum(income) FROM zips z WHERE z.zip IN ('10003', '10004');
SELECT * FROM zips z WHERE z.zip = '10003' AND z.zip IN ('10003', '10004');
SELECT f.*, z.*, c.* FROM fec f JOIN zips z ON f.zip = z.zip JOIN crimes c ON f.zip =
    c.zip;
SELECT f.id, c.town, t.people FROM fec f JOIN crimes c ON f.zip = c.zip JOIN towns t ON
    c.town = t.town WHERE t.people > 200;
SELECT t.* FROM crimes c JOIN towns t ON c.town = t.town WHERE c.zip = '10006';
SELECT f.id, z.income * 2 AS twice FROM fec f JOIN zips z ON f.zip = z.zip WHERE
    upper(z.state) = 'NY' AND z.income + f.amount > 150;
SELECT z.state, count(*), avg(f.amount) FROM fec f JOIN zips z ON f.zip = z.zip GROUP BY
    z.state;
SELECT a.id, b.id FROM fec a JOIN zips z ON a.zip = z.zip JOIN fec b ON b.zip = z.zip
    WHERE a.id < 20 AND b.id < 90;
SELECT f.id, z.state, y.state FROM fec f JOIN zips z ON f.zip = z.zip JOIN zips y ON y.zip
    = z.zip;
SELECT f.id, z.income FROM fec f, zips z WHERE f.zip = z.zip AND z.zip = '10005';
SELECT f.id, z.income FROM fec f, zips z WHERE z.zip = '10005' AND f.amount < z.income;
SELECT * FROM (SELECT zip, max(amount) AS most FROM fec GROUP BY zip) m JOIN zips z ON
    z.zip = m.zip;
SELECT f.id FROM fec f JOIN zips z ON concat(substr(f.zip, 1, 4), '3') = z.zip;
SELECT income FROM zips z WHERE zip = '10003' UNION ALL SELECT income FROM zips z WHERE
    zip = '10004';
SELECT f.id FROM fec f WHERE f.amount > (SELECT max(income) FROM zips z WHERE z.zip =
    '10003')
"""


@pytest.mark.parametrize("sql", [" ".join(sql.split()) + " " for sql in QUERIES.split(";")])
def test_rows_are_those_of_ordinary_tables(
    spark: SparkSession, tables: dict[str, RecordingSource], sql: str
) -> None:
    same(spark, sql)
    for source in tables.values():
        assert set(source.keys.values()) <= {1}


@pytest.mark.parametrize(
    ("policy", "joins"),
    [
        ("static", "auto"),
        ("naive", "always"),
        ("lottery", "never"),
        ("windowed_lottery", "auto"),
        ("rank", "always"),
        ("adaptive", "auto"),
        ("adaptive", "never"),
    ],
)
def test_no_choice_changes_the_rows(spark: SparkSession, joins: str, policy: str) -> None:
    same(
        spark,
        "SELECT f.id, c.town, t.people FROM fec f JOIN crimes c ON f.zip = c.zip "
        "JOIN towns t ON c.town = t.town ",
        joins=joins,
        policy=policy,
    )


def test_python_predicates_are_asked_in_the_same_eddy(
    spark: SparkSession, tables: dict[str, RecordingSource]
) -> None:
    @F.udf(BooleanType())
    def odd(number: int) -> bool:
        return number % 2 == 1

    frame = spark.table("fec").alias("f")
    zips, plain = spark.table("zips").alias("z"), spark.table("plain_zips").alias("z")

    def query(other: DataFrame) -> DataFrame:
        joined = frame.join(other, F.col("f.zip") == F.col("z.zip"))
        return joined.where(odd("id") & odd(F.col("income").cast("int")) | (F.col("id") < 9))

    found = eddyline.adapt(query(zips))
    assert Counter(found.collect()) == Counter(query(plain).collect())
    assert max(tables["zips"].keys.values()) == 1


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT * FROM zips", "zips cannot be asked.*values for zip"),
        ("SELECT * FROM zips WHERE income > 5", "zips cannot be asked"),
        ("SELECT income FROM zips", "zips is a lookup table.*given values of zip"),
        (
            "SELECT * FROM fec f JOIN zips z ON f.zip > z.zip",
            "zips cannot be asked.*values for zip",
        ),
        (
            "SELECT * FROM crimes c JOIN towns t ON c.town = t.town",
            "crimes",
        ),
        ("SELECT f.id FROM fec f FULL JOIN zips z ON f.zip = z.zip", "zips"),
    ],
)
def test_what_cannot_be_bound_is_refused(spark: SparkSession, sql: str, message: str) -> None:
    with pytest.raises(UnboundLookupError, match=message):
        eddyline.adapt(spark.sql(sql))


def test_without_adapt_such_a_table_says_so(spark: SparkSession) -> None:
    with pytest.raises(Exception, match=r"zips is a lookup table.*eddyline\.adapt"):
        spark.sql("SELECT * FROM zips WHERE zip = '10003'").collect()


def test_a_key_is_asked_for_once_on_any_number_of_tasks(spark: SparkSession) -> None:
    def answer(request: Request) -> Reply:
        number = int(request.path.rpartition("/")[2])
        return Reply([{"square": number * number}] if number % 7 else None, delay=0.002)

    with HttpService(answer) as service:
        eddyline.lookup_table(
            spark,
            "squares",
            "number long, square long",
            ["number"],
            eddyline.HttpLookup(service.url + "/{number}"),
            max_in_flight=8,
        )
        numbers = spark.range(0, 3000, 1, 7).selectExpr("id", "id % 300 AS number")
        joined = numbers.join(spark.table("squares"), "number")
        rows = eddyline.adapt(joined).select("id", "number", "square").collect()
        kept = [n for n in range(3000) if n % 300 % 7]
        assert sorted(rows) == [(n, n % 300, (n % 300) ** 2) for n in kept]
        assert sorted(service.paths) == sorted(f"/{n}" for n in range(300))
        assert 4 <= service.most <= 8


def test_a_failure_names_source_and_key(spark: SparkSession) -> None:
    with HttpService(lambda _: Reply(None, 400)) as service:
        eddyline.lookup_table(
            spark, "bad", "a long, b long", ["a"], eddyline.HttpLookup(service.url + "/{a}")
        )
        df = spark.range(3).join(spark.table("bad"), F.col("id") == F.col("a"))
        with pytest.raises(Exception, match=r"/\{a\}, asked for bad a=[012]: HTTP 400"):
            eddyline.adapt(df).collect()


@pytest.mark.parametrize(("on_error", "found"), [("null", [(0, None), (1, None)]), ("skip", [])])
def test_a_key_without_an_answer_may_do(
    spark: SparkSession, on_error: str, found: list[Any]
) -> None:
    with HttpService(lambda _: Reply(None, 400)) as service:
        source = eddyline.HttpLookup(service.url + "/{a}")
        eddyline.lookup_table(spark, "bad", "a long, b long", ["a"], source, on_error=on_error)
        df = spark.range(2).join(spark.table("bad"), F.col("id") == F.col("a"))
        assert sorted(eddyline.adapt(df.select("a", "b")).collect()) == found


def test_a_job_that_is_over_leaves_no_connection_open(spark: SparkSession) -> None:
    with HttpService(lambda _: Reply([])) as service:
        eddyline.lookup_table(
            spark, "none", "a long", ["a"], eddyline.HttpLookup(service.url + "/{a}")
        )
        df = spark.range(9).join(spark.table("none"), F.col("id") == F.col("a"))
        assert eddyline.adapt(df).count() == 0
        assert service.connections
        server = lookup_tables_of(spark.sparkContext).server
        for _ in range(100):  # the tasks may not have hung up yet
            server.rest()
            if not service.connections:
                break
            time.sleep(0.05)
        assert service.connections == 0


def test_an_action_that_is_none_on_a_dataframe_asks_anew(
    spark: SparkSession, tables: dict[str, RecordingSource]
) -> None:
    joined = eddyline.adapt(spark.sql("SELECT income FROM zips z WHERE z.zip = '10003'"))
    for turn in (1, 2):
        assert joined.rdd.count() == 1
        assert tables["zips"].keys == {"10003": turn}
    assert joined.count() == 1
    assert tables["zips"].keys == {"10003": 3}


def test_a_table_may_be_registered_again(
    spark: SparkSession, tables: dict[str, RecordingSource]
) -> None:
    before = eddyline.adapt(spark.sql("SELECT * FROM zips WHERE zip = '10003'"))
    other = RecordingSource([("10003", 7.0, "CA")], [0])
    eddyline.lookup_table(spark, "zips", SCHEMAS["zips"], ["zip"], eddyline.PythonLookup(other))
    after = eddyline.adapt(spark.sql("SELECT * FROM zips WHERE zip = '10003'"))
    assert [tuple(row) for row in after.collect()] == [("10003", 7.0, "CA")]
    assert [tuple(row) for row in before.collect()] == [ZIPS[3]]
    assert (tables["zips"].keys, other.keys) == ({"10003": 1}, {"10003": 1})


def test_explain_refuses_what_adapt_refuses(spark: SparkSession) -> None:
    with pytest.raises(UnboundLookupError, match="zips cannot be asked"):
        eddyline.explain(spark.sql("SELECT * FROM zips"))


def test_explain_says_what_is_looked_up(spark: SparkSession) -> None:
    explanation = eddyline.explain(
        spark.sql(
            "SELECT f.id, c.town, t.people FROM fec f JOIN crimes c ON f.zip = c.zip "
            "JOIN towns t ON c.town = t.town"
        )
    )
    (block,) = explanation.claimable
    assert block.looked_up == ("crimes by zip", "towns by town")
    assert "and looks up towns by town" in str(explanation)


def test_spark_connect_has_no_lookup_tables() -> None:
    remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    source = eddyline.PythonLookup(len)
    with pytest.raises(ConnectNotSupportedError, match="Spark Connect"):
        eddyline.lookup_table(remote, "t", "a int", ["a"], source)


class Connecting:
    """Has one of the methods of a source."""

    def connect(self, table: object, gate: object) -> None: ...


def test_tables_are_checked_when_they_are_registered(spark: SparkSession) -> None:
    source = eddyline.PythonLookup(len)
    for arguments, kind, message in (
        (("t", "a int", ["b"], source), ValueError, "t has no column b"),
        (("t", "a int", [], source), ValueError, "needs a bind column"),
        (("t", "a int", "a", source), TypeError, "bind is a list of columns"),
        (("t", 5, ["a"], source), TypeError, "a schema is"),
        (("t", "a int", ["a"], []), ValueError, "needs a source"),
        (("t", "a int", ["a"], None), TypeError, "a source is an HttpLookup.*not None"),
        (("t", "a int", ["a"], [source, "http://x"]), TypeError, "a source is.*not 'http://x'"),
        (("t", "a int", ["a"], eddyline.PythonLookup), TypeError, "not the class PythonLookup"),
        (("t", "a int", ["a"], Connecting()), TypeError, "lacks label, keys_per_call, check$"),
        (("t", "a int", None, source), TypeError, "bind is a list of columns, not None"),
        (("t", "a int", [1], source), TypeError, "of which 1 is none"),
        (("t", "a int", ["a", "A"], source), ValueError, "bind of t names A twice"),
        ((None, "a int", ["a"], source), TypeError, "a table's name is a text, not None"),
        (("t", "", ["a"], source), ValueError, "t has no column a"),
        (("t", "a int, A int", ["a"], source), ValueError, "names each column once"),
        (("t", "a array<int>", ["a"], source), ValueError, "array<int>, of which no key"),
        (("t", "a struct<b:int>", ["a"], source), ValueError, "struct<b:int>, of which no key"),
        (("t", "a int, v variant", ["a"], source), ValueError, "v is of type variant"),
        (("t", "a interval year", ["a"], source), ValueError, "interval year, which cannot"),
    ):
        with pytest.raises(kind, match=message):
            eddyline.lookup_table(spark, *arguments)
    other = eddyline.LookupMethod(["a"], source)
    with pytest.raises(ValueError, match="several ways to its rows and needs a key"):
        eddyline.lookup_table(spark, "t", "a int", ["a"], source, also=[other])
    given = ("t", "a int, b map<int,int>", ["a"], source)
    for options, kind, message in (
        ({"key": None}, TypeError, "key is a list of columns"),
        ({"key": ["b"]}, ValueError, "map<int,int>, of which no key"),
        ({"key": ["a"] * 64}, ValueError, "key of t has 64 columns: 63 at the most"),
        ({"also": None}, TypeError, "also is a list of LookupMethods"),
        ({"also": [source]}, TypeError, "also is a list of LookupMethods"),
        ({"on_error": "FAIL"}, ValueError, "on_error is 'fail', 'null' or 'skip', not 'FAIL'"),
        ({"max_in_flight": 1.5}, TypeError, "max_in_flight is a whole number from 1 on, not 1.5"),
        ({"max_in_flight": 0}, ValueError, "max_in_flight is a whole number from 1 on, not 0"),
        ({"rate": "3"}, TypeError, "rate is a number of requests a second above 0, not '3'"),
        ({"timeout": None}, TypeError, "timeout is a number of seconds above 0, not None"),
        ({"timeout": float("nan")}, ValueError, "timeout is a number of seconds above 0, not nan"),
        ({"retries": True}, TypeError, "retries is a whole number from 0 on, not True"),
    ):
        with pytest.raises(kind, match=message):
            eddyline.lookup_table(spark, *given, **options)
    unknown = eddyline.LookupMethod(["b"], source)
    with pytest.raises(ValueError, match="t has no column b"):
        eddyline.lookup_table(spark, "t", "a int", ["a"], source, key=["a"], also=[unknown])


def test_mirrors_share_the_keys(spark: SparkSession) -> None:
    mirrors = [RecordingSource(ZIPS, [0]), RecordingSource(ZIPS, [0])]
    sources = [eddyline.PythonLookup(each) for each in mirrors]
    eddyline.lookup_table(spark, "zips", SCHEMAS["zips"], ["zip"], sources, max_in_flight=2)
    same(spark, "SELECT f.id, z.income FROM fec f JOIN zips z ON f.zip = z.zip ")
    asked = mirrors[0].keys + mirrors[1].keys
    assert set(asked) == {f"1{n:04}" for n in range(45)}
    assert set(asked.values()) == {1}
    assert all(each.keys for each in mirrors)


WAYS = """
SELECT f.id, c.rating FROM fec f JOIN crimes c ON f.zip = c.zip;
SELECT c.zip, t.people FROM plain_towns t JOIN crimes c ON t.town = c.town;
SELECT c.* FROM crimes c WHERE c.town = 'town 3';
SELECT c.* FROM crimes c WHERE c.zip = '10006' AND c.town = 'town 6';
SELECT f.id, t.people FROM fec f JOIN crimes c ON f.zip = c.zip JOIN plain_towns t ON
    c.town = t.town;
SELECT a.zip, b.zip FROM crimes a JOIN crimes b ON a.town = b.town WHERE a.zip = '10006'
"""


@pytest.mark.parametrize("sql", [" ".join(sql.split()) + " " for sql in WAYS.split(";")])
@pytest.mark.parametrize("policy", ["naive", "adaptive", "lottery"])
def test_a_table_may_be_looked_up_by_either_column(
    spark: SparkSession, sql: str, policy: str
) -> None:
    by_zip, by_town = RecordingSource(CRIMES, [0]), RecordingSource(CRIMES, [2])
    eddyline.lookup_table(
        spark,
        "crimes",
        SCHEMAS["crimes"],
        ["zip"],
        eddyline.PythonLookup(by_zip),
        key=["zip"],
        also=[eddyline.LookupMethod(["town"], eddyline.PythonLookup(by_town))],
    )
    same(spark, sql, policy=policy)
    assert by_zip.keys or by_town.keys
    assert set(by_zip.keys.values()) | set(by_town.keys.values()) <= {1}


def test_a_query_that_binds_no_way_says_which_there_are(spark: SparkSession) -> None:
    source = eddyline.PythonLookup(RecordingSource(CRIMES, [0]))
    other = eddyline.LookupMethod(["rating", "town"], source)
    schema = SCHEMAS["crimes"]
    eddyline.lookup_table(spark, "crimes", schema, ["zip"], source, key=["zip"], also=[other])
    ways = r"given values of zip or rating and town"
    with pytest.raises(UnboundLookupError, match="no values for"):
        eddyline.adapt(spark.sql("SELECT count(1) FROM crimes WHERE town = 'town 3'"))
    with pytest.raises(Exception, match=ways):
        spark.sql("SELECT * FROM crimes").collect()


BOTH_WAYS = [
    "SELECT * FROM zips ",
    "SELECT f.id, z.income FROM fec f LEFT JOIN zips z ON f.zip = z.zip ",
    "SELECT a.zip, b.income FROM zips a JOIN zips b ON a.zip = b.zip WHERE a.state = 'NY' ",
    "SELECT f.id FROM fec f WHERE f.amount > (SELECT max(income) / 10 FROM zips ) ",
    "SELECT f.id, c.town FROM fec f JOIN crimes c ON f.zip = c.zip JOIN zips z ON z.zip = c.zip ",
]


@pytest.mark.parametrize("sql", BOTH_WAYS)
def test_a_table_with_a_scan_is_one_like_any_other(spark: SparkSession, sql: str) -> None:
    asked = RecordingSource(ZIPS, [0])
    eddyline.lookup_table(
        spark,
        "zips",
        SCHEMAS["zips"],
        ["zip"],
        eddyline.PythonLookup(asked),
        key=["zip"],
        scan=spark.table("plain_zips").select("state", "zip", "income"),
    )
    same(spark, sql)
    assert not asked.keys
    if " crimes " not in sql:  # which is only looked up
        plain = spark.sql(sql.replace(" zips ", " plain_zips "))
        assert Counter(spark.sql(sql).collect()) == Counter(plain.collect())
    watched = list(eddyline.watch(spark.sql(sql)))
    rows = [tuple(row.values()) for part in watched for row in part.rows.to_pylist()]
    plain_sql = sql.replace(" zips ", " plain_zips ").replace(" crimes ", " plain_crimes ")
    assert Counter(rows) == Counter(map(tuple, spark.sql(plain_sql).collect()))
    assert set(asked.keys.values()) <= {1}


def test_what_a_scan_lacks_is_said(spark: SparkSession) -> None:
    source = eddyline.PythonLookup(len)
    frame = spark.range(3)
    with pytest.raises(ValueError, match="needs a key"):
        eddyline.lookup_table(spark, "t", "a int", ["a"], source, scan=frame)
    with pytest.raises(ValueError, match="the scan of t has no column a"):
        eddyline.lookup_table(spark, "t", "a int", ["a"], source, key=["a"], scan=frame)


def test_the_report_says_what_was_asked(
    spark: SparkSession, tables: dict[str, RecordingSource]
) -> None:
    del tables
    mirrors = [eddyline.PythonLookup(RecordingSource(ZIPS, [0])) for _ in range(2)]
    eddyline.lookup_table(spark, "mirrored", SCHEMAS["zips"], ["zip"], mirrors, max_in_flight=2)
    adapted = eddyline.adapt(
        spark.sql(
            "SELECT f.id, c.town FROM fec f JOIN mirrored z ON f.zip = z.zip "
            "JOIN crimes c ON z.zip = c.zip"
        )
    )
    assert eddyline.report(adapted).asked == ()
    runs = 2
    for run in range(1, runs + 1):
        adapted.collect()
        asked = {each.name: each for each in eddyline.report(adapted).asked}
        assert set(asked) == {"mirrored", "crimes"}
        assert asked["mirrored"].keys == run * 45
        assert sum(keys for _, keys in asked["mirrored"].by_source) >= run * 45
        assert asked["crimes"].keys == asked["crimes"].requests
        assert 1 <= asked["mirrored"].at_a_time <= 2
    lookup_tables_of(spark.sparkContext).server.rest()
    report = eddyline.report(adapted)
    assert {each.name: each.keys for each in report.asked} == {
        name: each.keys for name, each in asked.items()
    }
    for text in (str(report), report._repr_html_()):
        assert "Looked up" in text
        assert "mirrored" in text


def test_columns_are_named_as_spark_resolves_names(spark: SparkSession) -> None:
    source = eddyline.PythonLookup(lambda keys: [(key, -key) for key in keys])
    table = eddyline.lookup_table(spark, "cased", "Key int, Value int", ["KEY"], source)
    assert eddyline.adapt(table.where("key = 3")).collect() == [(3, -3)]
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(ValueError, match="cased has no column KEY; it has Key, Value"):
            eddyline.lookup_table(spark, "cased", "Key int, Value int", ["KEY"], source)
        eddyline.lookup_table(spark, "cased", "k int, K int", ["k"], source)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_times_without_a_zone_are_bound_by_constants(spark: SparkSession) -> None:
    seen: list[object] = []

    def answer(keys: list[datetime]) -> list[tuple[datetime, int]]:
        seen.extend(keys)
        return [(key, 5) for key in keys]

    source = eddyline.PythonLookup(answer)
    eddyline.lookup_table(spark, "moments", "k timestamp_ntz, v int", ["k"], source)
    ten = datetime(2024, 1, 1, 10)  # noqa: DTZ001 - it has none
    for kind in ("timestamp_ntz", "timestamp"):
        found = spark.table("moments").where(f"k = {kind}'2024-01-01 10:00:00'")
        assert eddyline.adapt(found).collect() == [(ten, 5)]
    assert seen == [ten, ten]


def test_rows_with_names_go_by_their_names(spark: SparkSession) -> None:
    named = namedtuple("named", "v k")  # noqa: PYI024 - as people have them

    def answer(row: object, _: list[int]) -> list[object]:
        return [row]

    for row in (Row(v=2, k=1), named(v=2, k=1), (1, 2), [1, 2], {"v": 2, "k": 1}, {"v": 2}):
        source = eddyline.PythonLookup(partial(answer, row))
        table = eddyline.lookup_table(spark, "by_name", "k int, v int", ["k"], source)
        assert eddyline.adapt(table.where("k = 1")).collect() == [(1, 2)], row


def test_a_value_that_would_be_cast_binds_nothing_and_the_error_says_so(
    spark: SparkSession,
) -> None:
    eddyline.lookup_table(spark, "whole", "k long", ["k"], eddyline.PythonLookup(list))
    said = (
        r"gives none: .*k.* = 1\.5.*Where Spark casts k, as for values of another type, cast these"
    )
    with pytest.raises(UnboundLookupError, match=said):
        eddyline.adapt(spark.sql("SELECT * FROM whole WHERE k = 1.5D"))
