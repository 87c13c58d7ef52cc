"""A function is called once for distinct arguments, with patience, within limits and budget."""

from __future__ import annotations

import asyncio
import datetime as dt
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.asking.called_arguments import Arguments
from eddyline.asking.function_method import FunctionMethod
from eddyline.asking.limits import Limits
from eddyline.asking.price import Books, Price
from eddyline.asking.shared_method import SharedMethod
from eddyline.asking.way_to_answers import Found
from eddyline.asking.wire import ERROR, PRICE, STOP, VALUE, frozen
from eddyline.errors import CostError
from tests.properties import examples

QUICK = Limits(max_in_flight=3, timeout=2.0, retries=0)


class Answer(NamedTuple):
    value: Any
    error: str | None
    stop: str | None
    price: float


def write(values: list[object], errors: dict[int, Exception]) -> pa.Array:
    parts = []
    for place, value in enumerate(values):
        try:
            parts.append(pa.array([value], pa.int64()))
        except (pa.ArrowException, TypeError) as error:
            parts.append(pa.nulls(1, pa.int64()))
            errors[place] = error
    return pa.concat_arrays(parts)


def shared(
    function: Callable[..., Any],
    limits: Limits | None = None,
    *,
    arguments: int = 1,
    batch: int = 0,
    price: Price | None = None,
    books: Books | None = None,
) -> SharedMethod[Arguments]:
    method = FunctionMethod(
        1,
        "f",
        function,
        (None,) * arguments,
        write,
        pa.int64(),
        limits or Limits(max_in_flight=3),
        batch,
        price or Price(),
        books or Books(),
    )
    return method.shared("1/0", Random(0), time.monotonic)


def asked(function: SharedMethod[Arguments], keys: Sequence[tuple[Any, ...]]) -> list[Answer]:
    async def work() -> list[Answer]:
        found = await asyncio.wait_for(asyncio.gather(*function.rows(keys)), 30)
        await function.close()
        columns = [[each.rows.column(n)[0].as_py() for each in found] for n in range(4)]
        return [
            Answer(*row)
            for row in zip(
                columns[VALUE], columns[ERROR], columns[STOP], columns[PRICE], strict=True
            )
        ]

    return asyncio.run(work())


async def doubled(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


def test_none_is_an_argument_as_any_other() -> None:
    calls: list[Any] = []

    def function(number: int | None) -> int | None:
        calls.append(number)
        return None if number is None else number + 1

    answers = asked(shared(function), [(None,), (1,), (None,), (1,)])
    assert [answer.value for answer in answers] == [None, 2, None, 2]
    assert [answer.error for answer in answers] == [None] * 4
    assert Counter(calls) == {None: 1, 1: 1}


def test_arguments_that_a_function_can_tell_apart_are_apart() -> None:
    zone = dt.timezone(dt.timedelta(hours=1))
    moment = dt.datetime(2024, 10, 27, 2, 30, tzinfo=zone)
    values: list[Any] = [
        0.0,
        -0.0,
        None,
        "",
        b"",
        [1],
        [1, None],
        {"a": 1},
        {"a": None},
        [],
        moment,
    ]
    assert len({frozen(value) for value in values}) == len(values)
    assert frozen(math.nan) == frozen(-math.nan)
    assert frozen(moment) == frozen(moment.astimezone(dt.UTC))


@examples(40)
@given(
    keys=st.lists(st.one_of(st.none(), st.integers(0, 12)), max_size=40),
    batch=st.integers(0, 6),
    width=st.integers(1, 4),
    bad=st.sets(st.integers(0, 12), max_size=3),
    later=st.booleans(),
)
def test_a_value_does_not_depend_on_its_company(
    keys: list[int | None], batch: int, width: int, bad: set[int], *, later: bool
) -> None:
    """Whatever the batches: who raises gets an error, all others their values."""
    made: Counter[int | None] = Counter()
    inside = most = 0

    def one(number: int | None) -> int | None:
        if number in bad:
            raise KeyError(number)
        made[number] += 1
        return None if number is None else number * 3

    def all_(numbers: list[int | None]) -> list[int | None]:
        assert 1 <= len(numbers) <= batch
        if any(number in bad for number in numbers):
            raise KeyError("one of them")
        return [one(number) for number in numbers]

    plain: Callable[..., Any] = all_ if batch else one

    async def waits(given: Any) -> Any:  # noqa: ANN401 - what the function takes and returns
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        inside -= 1
        return plain(given)

    function = shared(
        waits if later else plain, Limits(max_in_flight=width, retries=0), batch=batch
    )
    answers = asked(function, [(key,) for key in keys])
    for key, answer in zip(keys, answers, strict=True):
        if key in bad:
            assert answer.error is not None
            assert f"f({key}) raised KeyError" in answer.error
        else:
            assert (answer.value, answer.error) == (None if key is None else key * 3, None)
    assert max(made.values(), default=1) == 1
    assert most <= width


def test_keys_that_come_while_the_workers_end_are_not_forgotten() -> None:
    """Each is asked for in the very moment in which the one before it is answered."""

    async def work() -> list[float]:
        function = shared(doubled, Limits(max_in_flight=1))
        values: list[float] = []
        last = asyncio.get_running_loop().create_future()

        def answered(found: asyncio.Future[Found]) -> None:
            values.append(found.result().rows.column(VALUE)[0].as_py())
            if len(values) == 20:
                last.set_result(None)
            else:
                ask(len(values))

        def ask(number: int) -> None:
            (future,) = function.rows([(number,)])
            future.add_done_callback(answered)

        ask(0)
        await asyncio.wait_for(last, 10)
        return values

    assert asyncio.run(work()) == [2 * number for number in range(20)]


def test_what_may_pass_is_tried_again() -> None:
    calls: Counter[int] = Counter()

    def function(number: int) -> int:
        calls[number] += 1
        if number == 1 and calls[number] < 3:
            raise ConnectionResetError("gone")
        if number == 2:
            raise ValueError("no")
        if number == 3:
            raise BrokenPipeError("always")
        return number

    answers = asked(shared(function, Limits(retries=2)), [(0,), (1,), (2,), (3,)])
    assert [answer.value for answer in answers] == [0, 1, None, None]
    assert "f(2) raised ValueError: no" in str(answers[2].error)
    assert str(answers[3].error) == "f(3) raised BrokenPipeError: always, tried 3 times"
    assert calls == {0: 1, 1: 3, 2: 1, 3: 3}


@pytest.mark.parametrize("later", [True, False])
def test_a_call_that_takes_too_long_is_given_up(*, later: bool) -> None:
    async def waits(number: int) -> int:
        await asyncio.sleep(10 if number else 0)
        return number

    def sleeps(number: int) -> int:
        time.sleep(3 if number else 0)
        return number

    answers = asked(shared(waits if later else sleeps, QUICK), [(0,), (1,)])
    assert answers[0].value == 0
    assert answers[1].error == "f(1) no answer in 2 s, tried once"


def test_a_function_that_never_succeeds_is_left_alone() -> None:
    calls: list[int] = []

    def function(number: int) -> int:
        calls.append(number)
        raise ConnectionRefusedError("closed")

    limits = Limits(max_in_flight=1, retries=0)
    answers = asked(shared(function, limits), [(n,) for n in range(20)])
    assert len(calls) == 5
    assert "is not called for a while" in str(answers[-1].error)


@pytest.mark.parametrize("end", [SystemExit, KeyboardInterrupt, StopIteration])
@pytest.mark.parametrize("later", [True, False])
def test_a_function_cannot_end_the_server(end: type[BaseException], *, later: bool) -> None:
    def function(number: int) -> int:
        if number:
            raise end
        return number

    async def waits(number: int) -> int:
        return function(number)

    answers = asked(shared(waits if later else function), [(1,), (0,)])
    assert end.__name__ in str(answers[0].error) or "StopIteration" in str(answers[0].error)
    assert answers[1].value == 0


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("text", r"f\(1\) returned str, which is no int64"),
        ([1], r"f\(1\) returned list, which is no int64"),
    ],
)
def test_a_value_of_another_type_is_an_error(returned: object, message: str) -> None:
    (answer,) = asked(shared(lambda _: returned), [(1,)])
    assert answer.error is not None
    assert re.search(message, answer.error)


@pytest.mark.parametrize("returned", [None, 5, "ab", {1: 2, 3: 4}, [1], [1, 2, 3]])
def test_a_batch_returns_as_many_values_as_it_was_given(returned: object) -> None:
    function = shared(lambda _: returned, Limits(max_in_flight=1), batch=2)
    answers = asked(function, [(1,), (2,)])
    if isinstance(returned, list) and len(returned) == 1:
        assert [answer.value for answer in answers] == [1, 1]  # alone each gets one
    else:
        assert all("not a list of" in str(answer.error) for answer in answers)


def test_the_error_shows_where_the_users_code_failed() -> None:
    def inner(number: int) -> int:
        return number // 0

    (answer,) = asked(shared(inner), [(1,)])
    assert "raised ZeroDivisionError" in str(answer.error)
    assert "number // 0" in str(answer.error)
    assert "function_method" not in str(answer.error)


# -- money -------------------------------------------------------------------------------


@examples(40)
@given(
    cost=st.sampled_from([0.002, 0.1, 1.0, 3.0]),
    budget=st.sampled_from([0.0, 0.01, 0.5, 1.0, 7.0]),
    keys=st.integers(1, 30),
    width=st.integers(1, 4),
)
def test_a_budget_is_kept_to_the_last_call(
    cost: float, budget: float, keys: int, width: int
) -> None:
    calls: list[int] = []

    async def function(number: int) -> int:
        calls.append(number)
        await asyncio.sleep(0)
        return number

    books = Books()
    price = Price(cost, "USD", budget)
    limits = Limits(max_in_flight=width)
    answers = asked(shared(function, limits, price=price, books=books), [(n,) for n in range(keys)])
    affordable = math.floor(budget / cost + 1e-9)
    assert len(calls) == min(keys, affordable)
    stopped = [answer for answer in answers if answer.stop is not None]
    assert len(stopped) == keys - len(calls)
    for answer in stopped:
        assert answer.stop == "BudgetSpentError"
        assert f"of its budget of {budget:g} USD" in str(answer.error)
    (spending,) = books.total("1/").values()
    assert spending.spent == pytest.approx(cost * len(calls))
    assert (spending.calls, spending.name, spending.unit) == (len(calls), "f", "USD")


def test_a_job_that_has_ended_spends_nothing_on_what_it_could_still_pay() -> None:
    calls: list[int] = []
    price = Price(lambda number: number, "USD", 4)
    function = shared(calls.append, Limits(max_in_flight=1), price=price)
    answers = asked(function, [(3,), (2,), (1,)])
    assert [answer.stop for answer in answers] == [None, "BudgetSpentError", "BudgetSpentError"]
    assert calls == [3]


def test_calls_that_are_tried_again_cost_again() -> None:
    calls = 0

    def function(number: int) -> int:
        nonlocal calls
        calls += 1
        if calls < 3:
            raise OSError("later")
        return number

    books = Books()
    limits = Limits(retries=3)
    (answer,) = asked(shared(function, limits, price=Price(2, "USD"), books=books), [(1,)])
    assert (answer.value, answer.price) == (1, 6.0)
    assert books.total("1/")[1].spent == 6.0


def test_a_cost_may_be_a_function_of_the_arguments() -> None:
    books = Books()
    price = Price(lambda number, text: number * len(text), "tokens")
    function = shared(
        lambda given: [number for number, _ in given],
        arguments=2,
        batch=2,
        price=price,
        books=books,
    )
    answers = asked(function, [(2, "abc"), (5, "a")])
    assert [answer.price for answer in answers] == [6.0, 5.0]
    assert books.total("1/")[1].spent == 11.0
    assert books.total("2/") == {}


@pytest.mark.parametrize("cost", [lambda _: -1, lambda _: math.nan, lambda _: "x", lambda: 1])
def test_a_cost_that_is_none_ends_the_job(cost: Any) -> None:  # noqa: ANN401
    (answer,) = asked(shared(doubled, price=Price(cost, "USD")), [(1,)])
    assert answer.stop == CostError.__name__


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cost": -1, "unit": "USD"}, "cost is a number from 0 on"),
        ({"cost": math.inf, "unit": "USD"}, "cost is a number from 0 on"),
        ({"cost": True, "unit": "USD"}, "cost is a number from 0 on"),
        ({"cost": 1}, "a cost has a unit"),
        ({"budget": 1}, "needs a cost"),
        ({"unit": "USD"}, "needs a cost"),
        ({"cost": 1, "unit": "USD", "budget": -1}, "budget is a number from 0 on"),
    ],
)
def test_what_is_no_price(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Price(**arguments)


class Silent(Exception):  # noqa: N818 - as users name theirs
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize("error", [SystemExit, asyncio.CancelledError, GeneratorExit, Silent])
def test_whatever_a_cost_raises_is_a_cost_error(error: type[BaseException]) -> None:
    def cost(_: object) -> float:
        raise error

    with pytest.raises(CostError, match=f"cost raised {error.__name__}"):
        Price(cost, "USD").of((1,))
