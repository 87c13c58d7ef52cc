"""Plans are read in one crossing; what is read then is what Catalyst's own JSON says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everyone writes it
from pyspark.sql.types import BooleanType

import eddyline
from eddyline import catalyst
from eddyline.catalyst import Plan, pipeline
from eddyline.planner.adapt import adapted_blocks
from eddyline.planner.read.chains import EvaluationLink, FilterLink, Tree, read_link
from eddyline.planner.read.throwing import may_throw
from eddyline.quirks.classic_frames import ClassicDataFrame
from tests.planner.jvm_calls import counted_calls

SHOWN = ("dataType", "exprId", "resultId", "value", "key", "evalType", "failOnError", "n")
"""Fields that the translation of expressions looks at."""

odd = F.udf(lambda x: x % 2 == 1, BooleanType())
long = F.udf(lambda s: s is not None and len(s) > 1, BooleanType())


def shapes(spark: SparkSession) -> Iterator[DataFrame]:
    rows = spark.range(50).selectExpr(
        "id",
        "cast(id AS string) AS s",
        "cast(id AS double) / 3 AS d",
        "date_add(DATE'2024-01-01', cast(id AS int)) AS day",
        "timestamp_micros(id) AS t",
        "array(id) AS a",
    )
    yield rows.where(odd("id") & long("s"))
    yield rows.where(odd("id") & (F.expr("s LIKE 'a!_%' ESCAPE '!'") | long("s")))
    yield rows.where(
        odd("id") | F.expr("t > TIMESTAMP'2020-01-01 00:00:00' AND day < '2024-02-01'")
    )
    yield rows.where(odd(F.expr("cast(d AS int) % 7")) & long(F.expr("concat(s, 'ü\"\\n😀')")))
    yield rows.where(odd(-F.col("id")) & F.expr("id IN (1, 2, 3)") & long("s"))
    yield rows.withColumn("r", F.rand(1)).where(odd("id") & long("s") & (F.col("r") < 2))
    few = spark.range(9).selectExpr("id AS k", "cast(id AS string) AS name", "id * 2 - 1 AS w")
    joined = rows.join(few, (rows.id == few.k) & (F.col("w") < 100))
    yield joined.where(odd("id") & long("name")).groupBy("name").agg(F.sum("d"))
    yield rows.where(F.expr("id IN (SELECT max(id) FROM range(9))") & odd("id") & long("s"))


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Have calls made one by one from now on, as where nothing could be compiled."""

    def switch() -> None:
        monkeypatch.setattr(pipeline._of_thread, "gateway", id(SparkContext._jvm))
        monkeypatch.setattr(pipeline._of_thread, "pipeline", None)

    return switch


def told(tree: Tree) -> Iterator[object]:
    fields: Mapping[str, object] = tree.node.fields
    looked_at = [name for name in SHOWN if name != "value" or tree.name == "Literal"]
    shown = {name: _plain(fields[name]) for name in looked_at if fields.get(name) is not None}
    yield tree.node.class_name, shown, sorted(tree.attributes()), may_throw(tree)
    if tree.name not in {"AttributeReference", "ScalarSubquery", "InSubquery"}:
        yield tree.data_type
    for child in tree.children:
        yield from told(child)


def _plain(value: object) -> object:
    if isinstance(value, dict):  # of identities, without the name of their class
        return {key: each for key, each in value.items() if key != "product-class"}
    return value


def described(plan: Plan) -> Iterator[object]:
    """Yield all that is known of a plan, from the top down."""
    name = catalyst.class_name(plan)
    yield name, catalyst.has_python_function(plan), catalyst.has_join(plan)
    yield catalyst.has_subquery(plan), catalyst.has_semijoin(plan), catalyst.output_numbers(plan)
    if name.endswith(".Join"):
        condition = catalyst.join_condition(plan)
        yield catalyst.join_type(plan)
        if condition is not None:
            yield from told(Tree.of(condition))
            yield catalyst.is_deterministic(condition)
    link, deterministic = read_link(plan)
    if link is not None:
        yield deterministic
        if isinstance(link, FilterLink):
            trees = link.conjuncts
        elif isinstance(link, EvaluationLink):
            trees = (*link.functions, *link.results)
            yield [function.pickled.command for function in link.functions]
        else:
            trees = link.items
        for tree in trees:
            yield from told(tree)
    for attribute in catalyst.outputs(plan):
        yield catalyst.pretty(attribute), catalyst.is_nullable(attribute)
        yield catalyst.hash_of_value(attribute), catalyst.data_type(attribute)
    for child in catalyst.children(plan):
        yield from described(child)


def test_both_ways_read_the_same(spark: SparkSession, one_by_one: Callable[[], None]) -> None:
    frames = list(shapes(spark))
    assert pipeline.pipeline() is not None
    together = [list(described(catalyst.optimized_plan(classic(each)))) for each in frames]
    one_by_one()
    for plain, known in zip(frames, together, strict=True):
        for one, other in zip(
            known, described(catalyst.optimized_plan(classic(plain))), strict=True
        ):
            assert one == other


def test_both_ways_adapt_alike(spark: SparkSession, one_by_one: Callable[[], None]) -> None:
    frames = list(shapes(spark))
    together = [eddyline.adapt(each, joins="always") for each in frames]
    one_by_one()
    for plain, fast in zip(frames, together, strict=True):
        other = eddyline.adapt(plain, joins="always")
        blocks = [[block.identity for block, _ in adapted_blocks(df)] for df in (fast, other)]
        assert len(blocks[0]) == len(blocks[1])
        assert sorted(map(str, fast.collect())) == sorted(map(str, other.collect()))


def classic(df: DataFrame) -> ClassicDataFrame:
    assert isinstance(df, ClassicDataFrame)
    return df


def test_a_join_of_five_tables_takes_few_crossings(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took 1,117."""

    def asked() -> DataFrame:
        df = spark.range(40).where(odd("id"))
        for number in range(4):
            few = spark.range(20).selectExpr(f"id AS k{number}", f"cast(id AS string) AS s{number}")
            df = df.join(few, F.col("id") == F.col(f"k{number}")).where(long(f"s{number}"))
        return df

    eddyline.adapt(asked(), joins="always")  # compiles, and looks classes up
    plain = asked()
    assert counted_calls(monkeypatch, lambda: eddyline.adapt(plain, joins="always")) < 300


def test_long_formulas_of_a_wide_projection_are_not_read(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only those that a predicate looks at; what is read does not grow with the others."""

    def asked(width: int) -> DataFrame:
        many = (
            f"(id + {n}) * (id - {n}) + length(concat('x', id)) * {n} AS w{n}" for n in range(width)
        )
        return spark.range(9).selectExpr("id", *many).where(odd("id") & odd("w1"))

    eddyline.adapt(asked(2))
    plain = [asked(width) for width in (2, 100)]
    few, many = (counted_calls(monkeypatch, partial(eddyline.adapt, df)) for df in plain)
    assert many - few < 20


def test_errors_are_those_of_the_call_that_was_put_off(spark: SparkSession) -> None:
    plan = catalyst.optimized_plan(classic(spark.range(3)))
    with pytest.raises(Exception, match="no_such_method"):
        int(plan.java.no_such_method())
    assert catalyst.output_numbers(plan)  # and the next calls find what they need


def test_a_call_that_fails_takes_only_those_with_it_that_need_it(spark: SparkSession) -> None:
    plan = catalyst.optimized_plan(classic(spark.range(3)))
    bad = plan.java.no_such_method()
    from_bad = bad.toString()
    listed = plan.java.pipeline.static("java.util.Objects", "toString", [[plan.java, bad]])
    nowhere = plan.java.pipeline.static("no.such.Class", "method", [])
    good = plan.java.nodeName()
    assert str(good) == "Range"
    for failed in (bad, from_bad, listed, bad):
        with pytest.raises(Exception, match="no_such_method"):
            str(failed)
    with pytest.raises(Exception, match=r"no\.such\.Class"):
        str(nowhere)


@pytest.mark.parametrize("text", ["", "ü", "😀" * 9_000, "x" * 20_001, 'a\n"\\\r;,['])
def test_texts_cross_unchanged(spark: SparkSession, text: str) -> None:
    plan = catalyst.optimized_plan(classic(spark.range(1)))
    pipe = plan.java.pipeline
    echoed = pipe.static("java.util.Objects", "toString", [text])
    assert str(echoed) == text
