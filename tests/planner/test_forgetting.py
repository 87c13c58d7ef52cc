"""What programs declare and register in a loop goes, and what somebody holds stays."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import eddyline
from eddyline.asking.declared_functions import (
    DECLARED,
    LATEST,
    Declaration,
    DeclaredFunctions,
)
from eddyline.asking.limits import Limits
from eddyline.asking.price import Price
from eddyline.declaring.concurrent_udf import ConcurrentUDF
from eddyline.errors import FunctionForgottenError
from eddyline.latest import Latest
from eddyline.planner.declare.lookup_tables import lookup_tables_of

MOST = 3


@pytest.fixture
def few(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep no more than three tables, and three functions that nobody holds."""
    monkeypatch.setattr(DECLARED, "_latest", Latest(MOST))
    monkeypatch.setattr(lookup_tables_of(spark.sparkContext), "_tables", Latest(MOST))


def declaration(name: str) -> Declaration:
    return Declaration(name, len, Limits(), 0, Price())


def larger() -> Callable[[int], int]:
    """Return a new function, which is like no other one."""
    one = {"more": 1}
    return lambda number: number + one["more"]


def declare_others() -> None:
    for _ in range(MOST):
        eddyline.concurrent(larger(), returns="long")
    gc.collect()


def values(df: DataFrame) -> list[Any]:
    return sorted(row[0] for row in df.collect())


def test_the_latest_are_known_and_those_that_are_held() -> None:
    functions = DeclaredFunctions(latest=2)
    assert not functions.any
    held = declaration("held")
    first, _ = functions.add(held)
    second, third = (functions.add(declaration(name))[0] for name in ("second", "third"))
    assert functions.of(second, "second").name == "second"  # used later than the third
    fourth, _ = functions.add(declaration("fourth"))
    known = [functions.of(number, "").name for number in (second, fourth, first)]
    assert known == ["second", "fourth", "held"]
    with pytest.raises(FunctionForgottenError, match=r"third is.*2 others.*in a variable"):
        functions.of(third, "third")
    del held, _
    functions.add(declaration("fifth"))
    functions.add(declaration("sixth"))
    assert functions.used(first) is None
    assert (len(functions), functions.any) == (2, True)


def test_a_function_that_is_declared_again_is_the_one_that_is_known() -> None:
    functions = DeclaredFunctions()

    def declared(function: Callable[[int], int], budget: float | None = None) -> int:
        price = Price(0.5, "USD", budget)
        return functions.add(Declaration("made", function, Limits(), 0, price))[0]

    def made(text: str) -> Callable[[int], int]:
        function: Callable[[int], int] = eval(compile(text, "cell", "eval"), globals())  # noqa: S307 - as a notebook does
        return function

    cell = "lambda value, more=1: value + more"
    first = declared(made(cell))
    assert declared(made(cell)) == first
    others = [made(cell.replace("1", each)) for each in ("2", "1.0", "True", "[1]", "[1]")]
    others += [larger(), larger()]  # with variables of their own, which may change
    numbers = [*map(declared, others), declared(made(cell), budget=1.0)]
    assert len({first, *numbers}) == len(functions) == len(others) + 2
    assert list(map(declared, others)) == numbers[:-1]


def test_functions_whose_variables_change_later_are_told_apart(spark: SparkSession) -> None:
    def client_for(name: str) -> ConcurrentUDF:
        client = ""

        @eddyline.concurrent(returns="string")
        def ask(number: int) -> str:
            return f"{client} {number}"

        client = name  # as often
        return ask

    one, other = client_for("one"), client_for("other")
    df = eddyline.adapt(spark.range(1).select(one("id"), other("id")))
    assert [tuple(row) for row in df.collect()] == [("one 0", "other 0")]


def test_functions_that_are_declared_in_a_loop_go(spark: SparkSession) -> None:  # noqa: ARG001 - Spark's own functions need a session
    made = []
    for _ in range(LATEST + 10):
        function = larger()
        made.append(weakref.ref(function))
        eddyline.concurrent(function, returns="long")
    del function
    gc.collect()
    assert [reference() for reference in made[:10]] == [None] * 10
    assert made[-1]() is not None


@pytest.mark.usefixtures("few")
def test_a_function_that_is_held_is_known(spark: SparkSession) -> None:
    udf = eddyline.concurrent(larger(), returns="long")
    registered = spark.udf.register("larger", eddyline.concurrent(larger(), returns="long"))
    rows = spark.range(3)
    before = eddyline.adapt(rows.select(udf("id")))
    declare_others()
    for df in (
        rows.select(udf("id")),
        rows.select(registered("id")),
        rows.selectExpr("larger(id)"),
    ):
        assert values(eddyline.adapt(df)) == [1, 2, 3]
    declare_others()
    assert values(before) == [1, 2, 3]


@pytest.mark.usefixtures("few")
def test_a_function_that_nobody_holds_is_known_for_a_while(spark: SparkSession) -> None:
    query = spark.range(3).select(eddyline.concurrent(larger(), returns="long")("id"))
    adapted = eddyline.adapt(query)
    for _ in range(3):
        eddyline.concurrent(larger(), returns="long")
        assert values(adapted) == [1, 2, 3]  # which is a use
    declare_others()
    with pytest.raises(FunctionForgottenError, match="is not known any more"):
        eddyline.adapt(query)
    with pytest.raises(Exception, match="is not known any more where the driver is"):
        adapted.collect()


class Source:
    """A source that can be seen to go."""

    def __call__(self, keys: list[int]) -> list[tuple[int, str]]:
        return [(key, f"text {key}") for key in keys]


@pytest.mark.usefixtures("few")
def test_tables_that_are_registered_again_and_again_go(spark: SparkSession) -> None:
    sources = []
    adapted = []
    for _ in range(2 * MOST):
        source = Source()
        sources.append(weakref.ref(source))
        eddyline.lookup_table(
            spark, "forgotten", "a long, b string", ["a"], eddyline.PythonLookup(source)
        )
        adapted.append(eddyline.adapt(spark.sql("SELECT b FROM forgotten WHERE a = 7")))
    del source
    gc.collect()
    assert [reference() is None for reference in sources] == [True] * MOST + [False] * MOST
    for df in adapted[MOST:]:
        assert values(df) == ["text 7"]
    with pytest.raises(Exception, match=r"forgotten/.* is not known any more where the driver is"):
        adapted[0].collect()
