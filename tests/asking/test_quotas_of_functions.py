"""Functions whose services have quotas, prices that come with the answer, and rows that fail."""

from __future__ import annotations

import asyncio
import datetime as dt
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.asking.called_arguments import Arguments
from eddyline.asking.function_method import FunctionMethod
from eddyline.asking.limits import Limits, OnFailure
from eddyline.asking.price import Books, Price, Spending
from eddyline.asking.quota_rules import QuotaRules
from eddyline.asking.shared_method import SharedMethod
from eddyline.asking.way_to_answers import Found
from eddyline.asking.wire import ERROR, STOP, VALUE, function_answers
from tests.properties import examples


class BusyError(Exception):
    """What a client raises for status 429."""

    status_code = 429

    def __init__(self, after: str = "0") -> None:
        """The service may be asked again after so many seconds."""
        super().__init__("slow down")
        self.headers = {"Retry-After": after}


def method(
    function: Callable[..., Any],
    *,
    limits: Limits | None = None,
    batch: int = 0,
    price: Price | None = None,
    on_error: OnFailure = OnFailure.FAIL,
    quota: QuotaRules | None = None,
) -> FunctionMethod:
    def write(values: list[object], errors: dict[int, Exception]) -> pa.Array:
        del errors
        return pa.array(values, pa.int64())

    return FunctionMethod(
        1,
        "f",
        function,
        (None,),
        write,
        pa.int64(),
        limits or Limits(max_in_flight=4, retries=0, patience=20.0),
        batch,
        price or Price(),
        Books(),
        on_error=on_error,
        quota=quota or QuotaRules(),
    )


def asked(
    of: FunctionMethod, keys: Sequence[int], now: Callable[[], float] = time.monotonic
) -> tuple[list[tuple[Any, str | None, str | None]], Spending]:
    """Return value, error and end for each key, and what was spent."""
    shared: SharedMethod[Arguments] = of.shared("1/0", Random(0), now)

    async def work() -> list[tuple[Any, str | None, str | None]]:
        found = await asyncio.wait_for(asyncio.gather(*shared.rows([(k,) for k in keys])), 30)
        await shared.close()
        parts = (VALUE, ERROR, STOP)
        return [tuple(each.rows.column(n)[0].as_py() for n in parts) for each in found]

    return asyncio.run(work()), of.books.total("1/")[1]


def refusing(times: int, error: Callable[[], Exception] = BusyError) -> Callable[[int], Any]:
    """Return a function whose first calls are refused."""
    left = [times]

    async def function(number: int) -> int:
        await asyncio.sleep(0)
        if left[0]:
            left[0] -= 1
            raise error()
        return 2 * number

    return function


def test_a_refusal_is_no_try_no_failure_and_costs_nothing() -> None:
    answers, spending = asked(method(refusing(6), price=Price(0.5, "USD", 5.0)), range(10))
    assert [value for value, *_ in answers] == [2 * n for n in range(10)]
    assert (spending.calls, spending.refusals, spending.failures) == (10, 6, 0)
    assert spending.spent == pytest.approx(5.0)
    assert spending.waited > 0


def test_without_refusals_nothing_was_waited_for() -> None:
    _, spending = asked(method(refusing(0)), range(10))
    assert (spending.refusals, spending.waited) == (0, 0.0)


@pytest.mark.parametrize("told", [True, 0.01, dt.timedelta(milliseconds=10)])
def test_a_user_says_what_a_refusal_is(told: float | dt.timedelta) -> None:
    function = refusing(3, lambda: ValueError("quota"))
    rules = QuotaRules(lambda error: told if "quota" in str(error) else False)
    answers, spending = asked(method(function, quota=rules), range(5))
    assert [value for value, *_ in answers] == [2 * n for n in range(5)]
    assert spending.refusals == 3


@pytest.mark.parametrize("told", [False, None])
def test_what_is_no_refusal_fails(told: float) -> None:
    rules = QuotaRules(lambda _: told)
    answers, spending = asked(method(refusing(1, lambda: ValueError("no quota")), quota=rules), [1])
    assert spending.refusals == 0
    assert "ValueError: no quota" in str(answers[0][1])


def test_is_quota_may_raise_itself() -> None:
    rules = QuotaRules(lambda error: error.nothing)  # type: ignore[attr-defined]
    answers, _ = asked(method(refusing(1, lambda: ValueError("no")), quota=rules), [1])
    assert "is_quota failed with AttributeError" in str(answers[0][1])
    assert "on ValueError: no" in str(answers[0][1])


def test_patience_ends_with_a_failure_of_each_key_and_keeps_what_is_known() -> None:
    async def function(number: int) -> int:
        await asyncio.sleep(0)
        if number >= 3:
            raise BusyError
        return number

    limits = Limits(max_in_flight=1, patience=0.3)
    answers, _ = asked(method(function, limits=limits), range(5))
    assert [value for value, *_ in answers] == [0, 1, 2, None, None]
    assert all("patience= ends" in str(error) for _, error, _ in answers[3:])


def test_prices_come_with_answers_and_the_budget_holds_back_the_costliest() -> None:
    price = Price(None, "USD", 10.0, lambda args, answer: args[0] + answer)
    limits = Limits(max_in_flight=1)
    answers, spending = asked(method(refusing(0), price=price, limits=limits), [1, 2, 1, 5, 7])
    # 3 for the first, 6 for the second; the next one may cost 6 as well, and 1 is left.
    assert [value for value, *_ in answers] == [2, 4, 2, None, None]
    assert spending.spent == pytest.approx(9.0)
    assert answers[3][2] == "BudgetSpentError"


def test_a_price_that_is_none_ends_the_job() -> None:
    price = Price(None, "USD", None, lambda _, answer: answer / 0)
    answers, _ = asked(method(refusing(0), price=price), [1])
    assert answers[0][2] == "CostError"
    assert "price raised ZeroDivisionError" in str(answers[0][1])


def test_tokens_are_taken_evenly() -> None:
    times: list[float] = []

    async def function(number: int) -> int:
        times.append(time.monotonic())
        await asyncio.sleep(0)
        return number

    rules = QuotaRules(tokens=lambda *_: 100, token_rate=2_000.0)
    limits = Limits(max_in_flight=1)
    _, spending = asked(method(function, quota=rules, limits=limits), range(1, 41))
    assert spending.tokens == 4_000
    assert times[-1] - times[0] >= 0.9  # the tokens of one second may be taken at once


def failing(number: int) -> int:
    if number % 3 == 0:
        raise ValueError("bad")
    return number


def test_failures_may_be_null_or_kept_beside_values() -> None:
    nulls, spending = asked(method(failing, on_error=OnFailure.NULL), range(4))
    assert nulls == [(None, None, None), (1, None, None), (2, None, None), (None, None, None)]
    assert spending.failures == 2
    kept, _ = asked(method(failing, on_error=OnFailure.KEEP), range(2))
    error = "f(0) raised ValueError: bad"
    assert kept[0] == ({"value": None, "error": error}, None, None)
    assert kept[1] == ({"value": 1, "error": None}, None, None)


@pytest.mark.parametrize("on_error", list(OnFailure))
def test_the_end_of_all_calls_is_no_bad_row(on_error: OnFailure) -> None:
    of = method(refusing(0), price=Price(1.0, "USD", 2.0), on_error=on_error)
    answers, _ = asked(of, range(4))
    assert [stop for *_, stop in answers] == [None, None, "BudgetSpentError", "BudgetSpentError"]


@given(st.sets(st.integers(0, 40)), st.integers(1, 9))
@examples(30)
def test_only_the_bad_rows_of_batches_have_no_value(bad: set[int], size: int) -> None:
    def batch(numbers: list[int]) -> list[int]:
        if bad.intersection(numbers):
            raise ValueError("one of them is bad")
        return [2 * number for number in numbers]

    answers, _ = asked(method(batch, batch=size, on_error=OnFailure.NULL), range(40))
    assert [v for v, *_ in answers] == [None if n in bad else 2 * n for n in range(40)]


def test_a_batch_that_is_too_large_is_halved_and_the_next_ones_are_smaller() -> None:
    sizes: list[int] = []

    def batch(numbers: list[int]) -> list[int]:
        sizes.append(len(numbers))
        if len(numbers) > 5:
            raise ValueError("context length exceeded")
        return numbers

    rules = QuotaRules(too_large=lambda error: "context length" in str(error))
    limits = Limits(max_in_flight=1)
    answers, _ = asked(method(batch, batch=16, quota=rules, limits=limits), range(64))
    assert [value for value, *_ in answers] == list(range(64))
    assert [size for size in sizes if size > 5] == [16, 8, 8]


def test_an_automatic_batch_grows_where_a_call_takes_as_long_for_more() -> None:
    sizes: list[int] = []
    clock = [0.0]

    async def batch(numbers: list[int]) -> list[int]:
        sizes.append(len(numbers))
        clock[0] += 1.0
        await asyncio.sleep(0)
        return numbers

    of = method(batch, batch=64, limits=Limits(max_in_flight=1))
    answers, _ = asked(replace(of, batch_adapts=True), range(200), lambda: clock[0])
    assert [value for value, *_ in answers] == list(range(200))
    assert sizes[:5] == [1, 2, 4, 8, 16]


def test_arguments_of_one_prefix_are_asked_for_one_after_the_other() -> None:
    order: list[int] = []

    def function(number: int) -> int:
        order.append(number)
        return number

    of = method(function, limits=Limits(max_in_flight=1))
    asked(replace(of, prefix=lambda number: number % 3), range(30))
    assert [number % 3 for number in order] == sorted(number % 3 for number in range(30))


def test_who_looks_is_told_of_a_quota_that_is_waited_for() -> None:
    shared = method(refusing(0), limits=Limits(max_in_flight=1)).shared(
        "1/0", Random(0), time.monotonic
    )
    way = shared._ways[0]
    seen: list[str] = []

    async def work() -> None:
        answers = shared.rows([(key,) for key in range(4)])
        assert shared.quota_wait() is None
        await answers[0]
        for refused in (1, 1):
            call = way.gate.governor.begin(refused)
            way.gate.governor.refused(call, refused, 100.0)
        seen.append(str(shared.quota_wait()))
        await shared.close()

    asyncio.run(work())
    assert seen == ["waiting for quota, 1 of 4 answered"]


@pytest.mark.parametrize("on_error", [OnFailure.NULL, OnFailure.KEEP])
@pytest.mark.parametrize("told", ["3600", "inf"])
def test_a_refusal_for_longer_than_there_is_patience_holds_nobody_up(
    on_error: OnFailure, told: str
) -> None:
    seen: set[int] = set()

    async def function(number: int) -> int:
        await asyncio.sleep(0.01)
        if number % 3 == 0 and number not in seen:
            seen.add(number)
            raise BusyError(told) if told != "inf" else ValueError("quota")
        return number

    limits = Limits(max_in_flight=4, patience=4.0)
    rules = QuotaRules(lambda error: float("inf") if "quota" in str(error) else False)
    quota = rules if told == "inf" else None
    of = method(function, limits=limits, on_error=on_error, quota=quota)
    answers, _ = asked(of, range(12))  # within its 30 s
    assert sum(value is None or value == {} for value, *_ in answers) < 12


@pytest.mark.parametrize("told", ["yes", [], float("nan")])
def test_what_is_quota_returns_is_checked(told: object) -> None:
    rules = QuotaRules(lambda _: told)  # type: ignore[arg-type,return-value]
    answers, _ = asked(method(refusing(1, lambda: ValueError("no")), quota=rules), [1])
    assert "and not True, False or seconds to wait" in str(answers[0][1])


def test_an_answer_that_was_paid_for_is_kept_before_its_price_ends_the_job() -> None:
    kept: list[int] = []

    async def keep(keys: Sequence[Arguments], _: object) -> None:
        await asyncio.sleep(0)
        kept.extend(key.values[0] for key in keys)  # type: ignore[misc]

    of = method(refusing(0), price=Price(None, "USD", None, lambda *_: 10**400))
    shared = of.shared("1/0", Random(0), time.monotonic)
    shared._ways[0].keep = keep

    async def work() -> str:
        (found,) = await asyncio.gather(*shared.rows([(7,)]))
        await shared.close()
        return str(found.rows.column(STOP)[0].as_py())

    assert asyncio.run(work()) == "CostError"
    assert kept == [7]


def test_keys_that_another_application_has_answered_meanwhile_are_not_asked_for() -> None:
    elsewhere: set[int] = set()
    called: list[int] = []

    async def function(number: int) -> int:
        called.append(number)
        elsewhere.update(range(5, 10))
        await asyncio.sleep(0)
        return number

    of = method(function, limits=Limits(max_in_flight=1))
    shared = of.shared("1/0", Random(0), time.monotonic)
    shared._kept = lambda keys: [
        Found(function_answers(pa.array([key.values[0]]), [None], None, [0.0]))
        if key.values[0] in elsewhere
        else None
        for key in keys
    ]

    async def work() -> list[object]:
        found = await asyncio.gather(*shared.rows([(key,) for key in range(10)]))
        await shared.close()
        return [each.rows.column(VALUE)[0].as_py() for each in found]

    assert asyncio.run(work()) == list(range(10))
    assert called == [0, 1, 2, 3, 4]
