"""The price before the bill: what explain says of paid calls, and what the query then makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from pyspark.sql.types import BooleanType

import eddyline
from eddyline.keeping import kept_answers
from eddyline.planner.forecast import forecasting, growing_sample
from eddyline.reports.expected import NONE_AT_ALL, Expected, exactly
from eddyline.reports.forecast import Forecast

pytestmark = pytest.mark.slow(60)

PRICED = {"cost": 0.5, "unit": "USD"}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[str]:
    yield str(tmp_path / "answers")
    while kept_answers._opened:
        kept_answers._opened.popitem()[1].store.close()


@pytest.fixture(autouse=True)
def one_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same arguments are sampled each time: of 95 % intervals one in twenty is missed."""
    monkeypatch.setattr(forecasting, "random", SimpleNamespace(SystemRandom=lambda: Random(1)))


class Paid:
    """A function that knows what it was called for."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.function = function
        self.asked: list[tuple[Any, ...]] = []
        self.__name__ = name

    def __call__(self, *arguments: Any) -> Any:  # noqa: ANN401 - any function
        self.asked.append(arguments)
        return self.function(*arguments)

    def column(self, *arguments: Column | str, **options: Any) -> Column:  # noqa: ANN401 - of concurrent
        declared = {"returns": "bigint", **PRICED, **options}
        return eddyline.concurrent(self, **declared)(*arguments)

    def begin(self) -> None:
        self.asked.clear()


def forecast(frame: DataFrame, price: bool | int = True) -> Forecast:  # noqa: FBT001, FBT002 - as it is given
    found = eddyline.explain(frame, price=price).forecast
    assert found is not None
    return found


def named(found: Forecast) -> list[str]:
    return [each.function.partition("(")[0] for each in found.functions]


def odd(number: int) -> bool:
    return number % 2 == 1


is_odd = F.udf(odd, BooleanType())


@pytest.fixture(scope="module")
def numbers(spark: SparkSession) -> DataFrame:
    """Return 6,000 rows of 3,000 keys; both rows of a key are odd, or both are even."""
    return spark.range(0, 6_000, 1, 4).selectExpr("id", "id % 3000 AS k", "id % 10 AS d")


def test_without_a_price_nothing_is_asked_or_said(numbers: DataFrame) -> None:
    paid = Paid("paid", lambda k: k)
    explained = eddyline.explain(numbers.where(paid.column("k") > 5))
    assert explained.forecast is None
    assert "distinct arguments" not in str(explained)
    assert paid.asked == []


def test_a_small_query_is_forecast_exactly(spark: SparkSession) -> None:
    paid = Paid("paid", lambda k: k)
    few = spark.range(0, 400, 1, 3).selectExpr("id", "id % 100 AS k")
    query = few.where(is_odd("id") & (paid.column("k") > 5))
    found = forecast(query)
    assert found.calls == exactly(50)
    assert found.money == exactly(25)
    (function,) = found.functions
    assert (function.arguments, function.rows) == (exactly(100), 400)
    assert "paid((id % 100)): 50 calls, 25 USD" in str(eddyline.explain(query, price=0))


def test_a_sample_is_near_what_the_query_calls(numbers: DataFrame) -> None:
    paid = Paid("paid", lambda k: k)
    query = numbers.where(is_odd("id") & (F.col("d") < 8) & (paid.column("k") > 5))
    found = forecast(query, price=20)
    asked = len(paid.asked)
    assert 0 < asked <= 20
    paid.begin()
    eddyline.adapt(query).collect()
    assert found.calls.between(0.85 * len(paid.asked), 1.15 * len(paid.asked)) == found.calls
    assert found.calls.holds(len(paid.asked))
    assert found.functions[0].measured.calls == asked
    assert "pays again" in str(found)


def test_an_adapted_query_has_the_same_forecast(numbers: DataFrame) -> None:
    paid = Paid("paid", lambda k: k)
    query = numbers.where((F.col("id") < 50) & is_odd("id") & (paid.column("k") > 5))
    assert forecast(query, 0).calls == forecast(eddyline.adapt(query), 0).calls == exactly(25)
    assert paid.asked == []


def test_what_is_kept_costs_nothing_any_more(numbers: DataFrame, folder: str) -> None:
    paid = Paid("paid", lambda k: k)
    value = paid.column("k", keep=folder)
    few = numbers.where("k < 200")
    eddyline.adapt(few.where("k < 50").select(value)).collect()
    paid.begin()
    query = few.where(is_odd("k")).select("id", value)
    found = forecast(query)
    assert found.functions[0].known == pytest.approx(0.25)
    assert found.functions[0].measured.kept
    now = len(paid.asked)
    assert found.calls == exactly(75 - now)
    eddyline.adapt(query).collect()
    assert len(paid.asked) == 75
    assert forecast(query).calls == NONE_AT_ALL


def test_money_is_what_the_arguments_cost(spark: SparkSession) -> None:
    paid = Paid("paid", len)
    texts = spark.range(100).selectExpr("id", "repeat('x', CAST(id % 20 AS INT)) AS text")
    value = paid.column("text", cost=lambda text: len(text) / 10, budget=5)
    found = forecast(texts.where(is_odd("id")).select(value), 0)
    assert found.money.likely == pytest.approx(sum(range(1, 20, 2)) / 10)
    assert found.functions[0].exceeds_budget
    assert "the budget of 5 USD may not suffice" in str(found)


def test_no_call_exceeds_the_budget(numbers: DataFrame) -> None:
    first, second = Paid("first", lambda k: k % 3), Paid("second", lambda k: k)
    asked = numbers.where(first.column("k", budget=4) > 0)
    found = forecast(asked.select(second.column("k")))
    assert len(first.asked) <= 8
    assert named(found) == ["first", "second"]


def test_what_depends_on_answers_is_found_by_few_calls(numbers: DataFrame) -> None:
    first, second = Paid("first", lambda k: k % 4), Paid("second", lambda k: k)
    query = numbers.where(is_odd("id") & (first.column("k") > 1)).select("id", second.column("k"))
    found = forecast(query, price=150)
    assert len(first.asked) <= 150
    assert len(second.asked) <= 150
    first.begin()
    second.begin()
    eddyline.adapt(query).collect()
    one, two = found.functions
    assert one.calls.holds(len(first.asked))
    assert two.calls.holds(len(second.asked))
    assert two.calls.high < one.calls.low


def test_a_branch_is_counted_where_it_is_taken(numbers: DataFrame) -> None:
    sure, costly = Paid("sure", lambda k: k if k % 5 else None), Paid("costly", lambda k: k)
    few = numbers.where("k < 300")
    query = few.select("id", F.coalesce(sure.column("k"), costly.column("k")))
    found = forecast(query, price=300)
    assert [each.calls.likely for each in found.functions] == [300, 60]


def test_rivals_span_both_orders(numbers: DataFrame) -> None:
    left, right = Paid("left", lambda k: k % 2), Paid("right", lambda k: k % 5)
    query = numbers.where((left.column("k") > 0) & (right.column("k") > 3))
    found = forecast(query, price=100)
    assert max(len(left.asked), len(right.asked)) <= 100
    left.begin()
    right.begin()
    eddyline.adapt(query).collect()
    calls = dict(zip(named(found), (each.calls for each in found.functions), strict=True))
    assert calls["left"].holds(len(left.asked))
    assert calls["right"].holds(len(right.asked))


def test_without_calls_what_depends_on_them_is_only_bounded(numbers: DataFrame) -> None:
    first, second = Paid("first", lambda k: k % 4), Paid("second", lambda k: k)
    query = numbers.where("k < 100").where(first.column("k") > 1).select(second.column("k"))
    found = forecast(query, price=0)
    assert first.asked == second.asked == []
    assert found.functions[1].calls.low == 0
    assert found.functions[1].calls.high == 100
    assert "first would have to be asked for more" in str(found)


def test_what_cannot_be_sampled_is_said(numbers: DataFrame) -> None:
    inner, outer = Paid("inner", lambda k: k), Paid("outer", lambda k: k)
    nested = forecast(numbers.where("k < 10").select(outer.column(inner.column("k"))), 0)
    assert named(nested) == ["inner"]
    assert nested.missing == ("outer: its arguments are made by another paid function",)
    above = numbers.where(inner.column("k") > 3).groupBy("d").count()
    grouped = forecast(eddyline.adapt(above.select(outer.column("d"))), 0)
    assert len(grouped.missing) == 1
    assert grouped.missing[0].startswith("outer: which rows come to it depends on answers below")


def test_an_error_of_a_free_predicate_may_need_the_call(spark: SparkSession) -> None:
    paid = Paid("paid", lambda k: k)
    fails = F.udf(lambda number: 1 / (number - 3) > 0, "boolean")
    query = spark.range(10).where(fails("id") & (paid.column("id") > 100))
    assert forecast(query, 0).calls == exactly(7)


def test_a_rate_says_how_long_it_takes(spark: SparkSession) -> None:
    paid = Paid("paid", lambda k: k)
    found = forecast(spark.range(60).select(paid.column("id", rate=2, batch=None)), 0)
    assert found.seconds == exactly(30)
    assert "30 s at 2 calls a second" in str(found)


def test_a_price_is_a_number_of_calls(spark: SparkSession) -> None:
    wrong: dict[Any, type[Exception]] = {-1: ValueError, 1.5: TypeError, "all": TypeError}
    for price, error in wrong.items():
        with pytest.raises(error, match="price"):
            eddyline.explain(spark.range(1), price=price)
    with pytest.raises(ValueError, match="one of them"):
        eddyline.explain(spark.range(1), stage="read", price=True)  # type: ignore[call-overload]


def test_a_query_without_paid_calls_costs_nothing(numbers: DataFrame) -> None:
    found = forecast(numbers.where(is_odd("id")))
    assert found.functions == ()
    assert str(found) == "Nothing is asked at the driver."


def test_keys_of_a_lookup_table_are_forecast(numbers: DataFrame, spark: SparkSession) -> None:
    asked: list[int] = []

    def rows(keys: list[int]) -> list[dict[str, int]]:
        asked.extend(keys)
        return [{"k": key, "w": 2 * key} for key in keys]

    source = eddyline.PythonLookup(rows)
    looked_up = eddyline.lookup_table(
        spark, "doubles", "k bigint, w bigint", ["k"], source, rate=50
    )
    query = numbers.where("k < 100").where(is_odd("id")).join(looked_up, "k")
    found = forecast(query, price=10)
    assert len(asked) <= 10
    assert found.calls == Expected(50, 50, 100)  # first tuples may be looked up for nothing
    assert found.functions[0].function == "doubles(k)"
    assert found.functions[0].arguments == exactly(100)
    asked.clear()
    adapted = eddyline.adapt(query)
    adapted.collect()
    assert found.calls.holds(len(set(asked)))
    assert forecast(adapted, price=0).calls == found.calls
    constant = forecast(looked_up.where("k = 3"), price=0)
    assert constant.missing == ("doubles: its keys do not come from a join",)
    above = Paid("above", lambda w: w)
    both = forecast(adapted.select(above.column("w")), price=0)
    assert above.asked == []
    assert both.missing[0].startswith("above: which rows come to it depends on answers below")


def test_of_many_rows_some_are_looked_at(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing_sample, "_BEGINNING", 0.0)  # however quick the machine is
    paid = Paid("paid", lambda k: k)
    many = spark.range(0, 200_000, 1, 4).selectExpr("id", "id % 20 AS k")
    seldom = F.udf(lambda number: number % 1_000 in {3, 4, 505}, BooleanType())
    query = many.where(seldom("id") & (paid.column("k") > 30))
    found = forecast(query, price=0)
    assert found.functions[0].arguments == exactly(20)
    assert found.functions[0].measured.rows < 100_000
    assert found.calls == exactly(3)  # each was seen more than once


def test_what_fails_ends_no_explanation(spark: SparkSession) -> None:
    paid, other = Paid("paid", len), Paid("other", lambda k: k)
    rows = spark.range(10).selectExpr("id", "map(id, id) AS m")
    found = forecast(rows.select(paid.column("m"), other.column("id")), price=0)
    assert named(found) == ["other"]
    assert found.missing[0].startswith("paid: ")


def test_prices_that_come_with_answers_are_told_by_a_few(spark: SparkSession) -> None:
    def priced(number: int) -> bool:
        return number >= 0

    paid = eddyline.concurrent(priced, returns="boolean", price=lambda *_: 0.25, unit="USD")
    explained = eddyline.explain(spark.range(400).where(paid("id")), price=True)
    assert explained.forecast is not None
    money = explained.forecast.functions[0].money
    assert money is not None
    assert (money.low, money.likely, money.high) == (100.0, 100.0, 100.0)


def test_a_function_that_fails_on_the_sample_is_named(spark: SparkSession) -> None:
    def broken(number: int) -> bool:
        raise ValueError(f"no {number}")

    paid = eddyline.concurrent(broken, returns="boolean", cost=1, unit="USD")
    explained = eddyline.explain(spark.range(40).where(paid("id")), price=True)
    assert explained.forecast is not None
    assert "8 of 8 sampled calls failed" in str(explained.forecast)
