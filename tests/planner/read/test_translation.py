"""Filters that Spark planned, translated and evaluated, keep the rows that Spark keeps."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from eddyline.blocks.column_types import arrow_type
from eddyline.blocks.decline import DeclinedError, DeclineReason
from eddyline.expressions import (
    And,
    Argument,
    Arithmetic,
    Call,
    Cast,
    Comparison,
    ComparisonOperator,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    evaluate,
)
from eddyline.expressions.families import FAMILIES
from eddyline.expressions.strings import Length
from eddyline.planner.read.translation import (
    CatalystNode,
    Path,
    parse,
    translate,
)
from eddyline.quirks.pyspark_at_hand import MINOR
from tests.oracle.awkward_values import VALUES, Columns

ROWS = 300
# Two columns of each of these types: b, b2, t, t2, …
NAMES = {
    "b": pa.bool_(), "t": pa.int8(), "s": pa.int16(), "i": pa.int32(), "l": pa.int64(),
    "f": pa.float32(), "d": pa.float64(), "txt": pa.string(), "bin": pa.binary(),
    "dec": pa.decimal128(10, 2), "wide": pa.decimal128(24, 6), "dt": pa.date32(),
    "ts": pa.timestamp("us", "UTC"), "ntz": pa.timestamp("us"),
}  # fmt: skip
COLUMNS = {name + suffix: kind for name, kind in NAMES.items() for suffix in ("", "2")}


def table() -> pa.Table:
    generator = random.Random(11)
    arrays = {
        name: pa.array([generator.choice([None, *VALUES[kind]]) for _ in range(ROWS)], kind)
        for name, kind in COLUMNS.items()
    }
    return pa.table({**arrays, "row": pa.array(range(ROWS))})


TABLE = table()


@pytest.fixture(scope="module")
def frame(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataFrame]:
    path: FilePath = tmp_path_factory.mktemp("translation") / "table.parquet"
    pq.write_table(TABLE, path)
    yield spark.read.parquet(str(path))
    for key in ("spark.sql.ansi.enabled", "spark.sql.session.timeZone"):
        spark.conf.unset(key)


@dataclass(frozen=True)
class Handles:
    """The details of a condition, asked from its handle in the JVM."""

    condition: Any

    def _at(self, path: Path) -> Any:  # noqa: ANN401  # Py4J has no types
        node = self.condition
        for index in path:
            node = node.children().apply(index)
        return node

    def field(self, path: Path, name: str) -> str:
        return str(getattr(self._at(path), name)())

    def value(self, path: Path) -> object:
        return self._at(path).value()

    def members(self, path: Path) -> Sequence[object]:
        members = self._at(path).hset().toSeq()
        found = [members.apply(index) for index in range(members.size())]
        plain = (int, float, bool, bytes, bytearray, type(None))
        return [member if isinstance(member, plain) else str(member) for member in found]


@dataclass(frozen=True)
class Silent:
    """Details that nobody should need."""

    def field(self, path: Path, name: str) -> str:
        raise AssertionError(path, name)

    def value(self, path: Path) -> object:
        raise AssertionError(path)

    def members(self, path: Path) -> Sequence[object]:
        raise AssertionError(path)


def condition_of(df: DataFrame) -> Any:  # noqa: ANN401  # Py4J has no types
    node: Any = df._jdf.queryExecution().optimizedPlan()
    while str(node.nodeName()) != "Filter":
        assert node.children().size(), f"no filter is left: {df}"
        node = node.children().apply(0)
    return node.condition()


def translated(df: DataFrame, time_zone: str = "UTC") -> Expression:
    """Translate the filter of a plan; columns become arguments."""

    def leaf(node: CatalystNode, path: Path) -> Expression | None:
        assert str(type_name(at(root, path))) == node.class_name  # paths lead where they say
        if node.name != "AttributeReference":
            return None
        name = node.fields["name"]
        assert isinstance(name, str)
        kind = COLUMNS[name]
        if kind == NAMES["ts"]:
            kind = arrow_type('"timestamp"', time_zone)
        return Argument(list(COLUMNS).index(name), kind)

    condition = condition_of(df)
    root = parse(str(condition.toJSON()))
    return translate(root, leaf, Handles(condition), time_zone=time_zone)


def at(node: CatalystNode, path: Path) -> CatalystNode:
    for index in path:
        node = node.children[index]
    return node


def type_name(node: CatalystNode) -> str:
    return node.class_name


def kept(expression: Expression, time_zone: str = "UTC") -> list[int]:
    arrays = [
        TABLE.column(name).combine_chunks().cast(arrow_type('"timestamp"', time_zone))
        if kind == NAMES["ts"]
        else TABLE.column(name).combine_chunks()
        for name, kind in COLUMNS.items()
    ]
    vector = evaluate(expression, Columns(arrays))
    assert not vector.errors
    return [row for row, value in enumerate(vector.values.to_pylist()) if value]


CONDITIONS = """
b and b2
length(txt) = length(txt2)
length(bin) > 1 or length(txt) < l
b or not b2
(b or i > 3) and not (b2 and i2 <= 3)
i = i2
i <=> i2
not (txt <=> txt2)
l < l2 or l >= 7
f > 1.5
f < f2
d = double('NaN')
d > double('NaN')
d < double('Infinity') and d > -double('Infinity')
d >= -0.0D
d in (0.0D, double('NaN'))
txt = 'é'
txt > '😀'
txt < txt2
bin > X'7f'
bin = X''
bin <= bin2
dec > 0.1
dec + dec2 > wide
dec * dec2 = 0
dec = i
wide >= dec
-dec > 1 or abs(wide) <= 1
d > dec
dt > date'2000-01-01'
dt = date'0001-01-01' or dt = date'9999-12-31'
ts > timestamp'1969-12-31 23:59:59.999999 UTC'
ts in (timestamp'2024-10-27 01:30:00 UTC', null)
ts <= ts2
ntz < timestamp_ntz'1970-01-01 00:00:00'
ntz = ntz2
t = 3Y or s = -100S
t = s
i = l
i = d
f = d
t is null
txt is not null and d is null
isnan(d) or isnan(f)
i in (1, 2, -3)
i in (1, 2, null)
(i in (1, 2, null)) is null
not (i in (1, 2))
i in (i2, 7)
i in (0, 1, 2, 3, 7, 10, 11, 12, 13, 14, 15)
i in (0, 1, 2, 3, 7, 10, 11, 12, 13, 14, 15, null)
txt in ('', 'a', 'b', 'ab', 'A', 'a%', 'é', '😀', 'z', 'ß', '中文')
d in (0D, 1D, 2D, 3D, 4D, 5D, 6D, 7D, 8D, 9D, double('NaN'), double('Infinity'))
dec in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0.1, 12345.67)
dt in (date'1970-01-01', date'1970-01-02', date'1970-01-03', date'1970-01-04', date'1970-01-05', \
date'1970-01-06', date'1970-01-07', date'1970-01-08', date'1582-10-15', date'0001-01-01', null)
i between -1 and 7
i2 is distinct from 3
txt like 'a%b_c'
txt like 'a!%' escape '!'
txt like '_'
txt like 'a%'
txt like '%b'
txt like '%a%'
txt like 'a%b'
txt rlike '^[a-c]|B$'
txt like 'a%' and not (txt2 like '%b')
startswith(txt, 'a') or endswith(txt, 'b') or contains(txt, '😀')
case when i = 1 then b when i2 = 2 then not b end
case i when 1 then 'a' when 2 then 'b' else 'c' end = txt
if(b, i, i2) = 7
coalesce(b, i = 2, true)
coalesce(i, i2, 0) > 0
nullif(i, 0) = i2
ifnull(txt, 'a') = 'a'
nvl2(b, i, i2) = 1
i / 2 > 1
d / 2 > 1
i % 7 = 3
i % 7 = -3
f % 2 = 0
d * 2 + 1 > d2 - 1
-d > 0
abs(d) <= 1
cast(b as int) = 1
cast(i as boolean)
cast(d as boolean)
cast(t as string) = txt
cast(i as decimal(12,2)) > dec
cast(b as string) = 'true'
try_divide(d, d2) > 1
try_mod(i, i2) = 1
try_add(d, 1D) > 0
"""
COLLATED = pytest.mark.skipif(MINOR < (4, 0), reason="no collations in this Spark")

ANSI_OR_NOT = [
    condition
    for condition in CONDITIONS.replace("\\\n", "").strip().splitlines()
    if MINOR >= (4, 0) or "try_mod" not in condition  # which came with 4.0
]
LEGACY_ONLY = [
    "i + 1 > i2",
    "i - i2 > 0",
    "l * l2 = -l",
    "abs(t) < 0",
    "cast(d as int) = 0",
    "cast(d as tinyint) = cast(l as tinyint)",
    "d / d2 > 1",
    "l % l2 = 1",
    "d % d2 = 0",
]


@pytest.mark.parametrize("ansi", [True, False], ids=["ansi", "legacy"])
def test_a_translated_filter_keeps_sparks_rows(frame: DataFrame, *, ansi: bool) -> None:
    frame.sparkSession.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    texts = ANSI_OR_NOT if ansi else ANSI_OR_NOT + LEGACY_ONLY
    frames = [frame.where(text) for text in texts]
    # One job for all: a row of flags each, computed by Spark from the same texts.
    flags = frame.selectExpr("row", *texts).orderBy("row").toArrow()
    some = 0
    for number, (text, df) in enumerate(zip(texts, frames, strict=True)):
        expression = translated(df)
        expected = [row for row, flag in enumerate(flags.column(number + 1).to_pylist()) if flag]
        assert kept(expression) == expected, (text, expression)
        some += bool(expected)
    assert some > len(texts) * 0.8  # conditions that keep nothing would show little


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("try_add(i, 1) > 2", "try_add of integers"),
        ("try_cast(d as int) = 1", "try_cast to int32"),
        ("cast(txt as int) = 1", "cast of string to int32"),
        ("cast(d as string) = '1.0'", "cast of double to string"),
        ("cast(dt as timestamp) = ts", "cast of date32[day] to timestamp[us, tz=UTC]"),
        (r"txt rlike '\\ba'", r"\b in a regular expression"),
        ("txt rlike txt2", "RLIKE with a pattern that is not constant"),
        ("txt like txt2", "LIKE with a pattern that is not constant"),
        ("startswith(txt, txt2)", "StartsWith with a pattern that is not constant"),
        ("upper(txt) = 'A'", "the expression Upper"),
        ("lower(txt) = 'a'", "the expression Lower"),
        ("i div 2 = 1", "the expression IntegralDivide"),
        ("wide * wide > 1", "* of decimal128(24, 6), decimal128(24, 6)"),
        ("dec / dec2 > 1", "/ of decimal128"),
        pytest.param("txt collate unicode_ci = 'A'", "the expression Collate", marks=COLLATED),
        ("make_dt_interval(i) > interval '1' day", "the expression MakeDTInterval"),
        ("txt = 'a\ufffdb'", "a string that may hold bytes other than UTF-8"),
    ],
)
def test_what_is_not_exact_stays_with_spark(frame: DataFrame, text: str, reason: str) -> None:
    frame.sparkSession.conf.set("spark.sql.ansi.enabled", "true")
    with pytest.raises(DeclinedError) as declined:
        translated(frame.where(text))
    assert declined.value.reason is DeclineReason.UNTRANSLATABLE
    assert reason in declined.value.detail


@COLLATED
def test_a_collated_column_is_refused_before_the_leaf_is_asked(frame: DataFrame) -> None:
    df = frame.selectExpr("txt collate unicode_ci as i").where("i is null").select("i")
    node = parse(str(df._jdf.queryExecution().analyzed().children().apply(0).condition().toJSON()))
    assert node.children[0].name == "AttributeReference"
    with pytest.raises(DeclinedError, match="a collated string in AttributeReference"):
        translate(node, lambda _, path: Argument(0, pa.string()) if path else None, Silent())


def test_modes_arrive_in_the_expression(frame: DataFrame) -> None:
    for ansi in (True, False):
        frame.sparkSession.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
        found = [
            node
            for text in ("i + 1 > 2", "-i = 3", "abs(i) = 3", "i % i2 = 0", "cast(d as int) = 3")
            for expression in [translated(frame.where(text))]
            for node in expression.walk()
            if isinstance(node, Arithmetic | Cast)
        ]
        assert [node.ansi for node in found] == [ansi] * 5


def test_an_ambiguous_local_time_is_the_instant_that_was_meant(frame: DataFrame) -> None:
    frame.sparkSession.conf.set("spark.sql.session.timeZone", "Europe/Paris")
    # 2:30 came twice that night; 1:30 UTC was the second time.
    for instant in ("2024-10-27 01:30:00 UTC", "2024-10-27 00:30:00 UTC"):
        df = frame.where(f"ts = timestamp'{instant}'")
        assert "2024-10-27 02:30:00" in str(condition_of(df).toJSON())
        expression = translated(df, "Europe/Paris")
        expected = sorted(row["row"] for row in df.collect())
        assert kept(expression, "Europe/Paris") == expected
        assert bool(expected) == ("01:30" in instant)


def test_dropna_is_translated(frame: DataFrame) -> None:
    for how in ("any", "all"):
        df = frame.dropna(how, subset=["d", "f", "i"])
        expression = translated(df)
        assert kept(expression) == sorted(row["row"] for row in df.collect())
    with pytest.raises(DeclinedError, match="a count of operands that are not NULL"):
        translated(frame.dropna(thresh=2, subset=["d", "f", "i"]))


# ---------------------------------------------------------------- without Spark

PACKAGE = "org.apache.spark.sql.catalyst.expressions."


def node(name: str, *children: CatalystNode, **fields: object) -> CatalystNode:
    return CatalystNode(PACKAGE + name, fields, children)


def attribute(number: int) -> CatalystNode:
    return node("AttributeReference", number=number, dataType="boolean")


def calls(found: CatalystNode, _: Path) -> Expression | None:
    number = found.fields.get("number")
    return Call(number, (), pa.bool_()) if isinstance(number, int) else None


def test_nested_connectives_become_one() -> None:
    tree = node("And", node("And", attribute(0), attribute(1)), node("Not", attribute(2)))
    a, b, c = (Call(number, (), pa.bool_()) for number in range(3))
    assert translate(tree, calls, Silent()) == And((a, b, Not(c)))


def test_a_leaf_may_stand_for_a_whole_condition() -> None:
    seen: list[Path] = []

    def leaf(found: CatalystNode, path: Path) -> Expression | None:
        seen.append(path)
        return Argument(0, pa.bool_()) if found.name == "RLike" else calls(found, path)

    tree = node("Or", attribute(0), node("RLike", attribute(1), attribute(2)))
    expression = translate(tree, leaf, Silent())
    assert expression.children == (Call(0, (), pa.bool_()), Argument(0, pa.bool_()))
    assert seen == [(), (0,), (1,)]


def test_markers_of_the_optimizer_change_nothing() -> None:
    tree = node("IsNull", node("KnownNotNull", attribute(0)))
    assert translate(tree, calls, Silent()) == IsNull(Call(0, (), pa.bool_()))


def test_details_are_asked_for_only_where_they_matter() -> None:
    double = node("Literal", value="1.5", dataType="double")
    total = node("Add", double, double, evalContext=None)
    long = node("Cast", node("Literal", value="1", dataType="integer"), dataType="long")
    tree = node(
        "And",
        node("EqualTo", total, double),
        node("EqualTo", long, node("Literal", value="1", dataType="long")),
    )
    expression = translate(tree, calls, Silent())
    assert isinstance(expression, And)
    assert all(isinstance(term, Comparison) for term in expression.terms)


def test_the_length_test_of_a_rewritten_like() -> None:
    text = node("AttributeReference", dataType="string")
    bound = node("Literal", value="2", dataType="integer")
    tree = node("GreaterThanOrEqual", node("Length", text), bound)
    column = Argument(0, pa.string())

    def leaf(found: CatalystNode, _: Path) -> Expression | None:
        return column if found == text else None

    assert translate(tree, leaf, Silent()) == Comparison(
        ComparisonOperator.GREATER_OR_EQUAL, Length(column), Literal(2, pa.int32())
    )


def test_an_unknown_literal_type_is_refused() -> None:
    tree = node("IsNull", node("Literal", value="1", dataType="interval"))
    with pytest.raises(DeclinedError, match="the type interval"):
        translate(tree, calls, Silent())


def test_null_among_the_members_of_a_set() -> None:
    class Members(Silent):
        def members(self, path: Path) -> Sequence[object]:
            assert path == ()
            return [None, 1]

    tree = node("InSet", node("Literal", value="1", dataType="long"), hset=None)
    one, long = Literal(1, pa.int64()), pa.int64()
    assert translate(tree, calls, Members()) == In(one, (Literal(None, long), one))


def test_json_that_is_no_tree() -> None:
    with pytest.raises(ValueError, match="lacks some of its 2 children"):
        parse('[{"class": "x.And", "num-children": 2}, {"class": "x.A", "num-children": 0}]')
    with pytest.raises(ValueError, match="holds 2 expressions"):
        parse('[{"class": "x.A", "num-children": 0}, {"class": "x.B", "num-children": 0}]')


def test_a_deep_tree_is_parsed() -> None:
    depth = 5000
    entries = ['{"class": "x.Not", "num-children": 1, "child": 0}'] * depth
    tree = parse(f'[{", ".join(entries)}, {{"class": "x.A", "num-children": 0}}]')
    for _ in range(depth):
        tree = tree.children[0]
    assert tree == CatalystNode("x.A", {}, ())


BY_OTHERS = {"AtLeastNNonNulls", "KnownFloatingPointNormalized", "KnownNotNull", "KnownNullable"}
"""Made by ``DataFrame.dropna`` and by the optimizer, never of a condition's text."""


def test_every_entry_with_a_recipe_is_compared_with_spark(frame: DataFrame) -> None:
    """Else a recipe could mean another expression, and nothing would say so."""
    frame.sparkSession.conf.set("spark.sql.ansi.enabled", "false")
    planned: set[str] = set()
    for text in ANSI_OR_NOT + LEGACY_ONLY:
        named = re.findall(r'"class":"[\w.]*?(\w+)"', str(condition_of(frame.where(text)).toJSON()))
        planned.update(named)
    recipes = {entry.name for family in FAMILIES for entry in family.CATALYST if entry.recipe}
    assert recipes - planned == BY_OTHERS


def test_rows_with_enough_values(frame: DataFrame) -> None:
    for least in (1, 3):  # any, all; a number between stays with Spark
        df = frame.dropna(thresh=least, subset=["i", "d", "txt"])
        expected = sorted(row["row"] for row in df.collect())
        assert kept(translated(df)) == expected
    assert 0 < len(expected) < ROWS  # those with all three
