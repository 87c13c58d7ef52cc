"""Users' functions: asynchronous, blocking, or neither; tables and functions take all of them."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
import time
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, TypeAlias

import pyarrow as pa
import pytest

from eddyline.asking.function_method import FunctionMethod
from eddyline.asking.limits import Limits
from eddyline.asking.lookup_source import LookedUpTable
from eddyline.asking.price import Books
from eddyline.asking.python_lookup import PythonLookup
from eddyline.asking.users_function import ABANDONED, UsersFunction
from eddyline.asking.way_to_answers import Found
from eddyline.asking.wire import ERROR, VALUE
from tests.asked import answered

TABLE = LookedUpTable("t", ("a", "b"), (pa.int64(), pa.string()), (0,))
LIMITS = Limits(max_in_flight=2, timeout=5.0, retries=0)

Made: TypeAlias = Callable[[Callable[[Any], Any]], Callable[[Any], Any]]
"""Makes of a plain function one of another kind."""


def blocking(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return function


def asynchronous(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    async def later(given: Any) -> Any:  # noqa: ANN401 - what the function takes and returns
        await asyncio.sleep(0)
        return function(given)

    return later


def returning_a_coroutine(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    later = asynchronous(function)

    def plain(given: Any) -> Any:  # noqa: ANN401 - likewise
        return later(given)

    return plain


def partly_given(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    async def later(_: str, given: Any) -> Any:  # noqa: ANN401 - likewise
        await asyncio.sleep(0)
        return function(given)

    return functools.partial(later, "first")


def called_like_one(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    class Later:
        async def __call__(self, given: Any) -> Any:  # noqa: ANN401 - likewise
            return await asynchronous(function)(given)

    return Later()


def returning_what_is_awaited(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    class Later:
        def __init__(self, given: Any) -> None:  # noqa: ANN401 - likewise
            self.given = given

        def __await__(self) -> Any:  # noqa: ANN401 - of whatever the function returns
            return asynchronous(function)(self.given).__await__()

    return Later


KINDS: list[Made] = [
    blocking,
    asynchronous,
    returning_a_coroutine,
    partly_given,
    called_like_one,
    returning_what_is_awaited,
]


class CallFailedError(Exception):
    """A concurrent function has no value, for the reason that is its text."""


def value_of(
    function: Callable[[Any], Any],
    given: object,
    limits: Limits = LIMITS,
    books: Books | None = None,
) -> Any:  # noqa: ANN401 - likewise
    """Return what a concurrent function gives; or raise CallFailedError."""
    method = FunctionMethod(
        1,
        "f",
        function,
        (None,),
        lambda values, _: pa.array(values),
        pa.null(),
        limits,
        books=books or Books(),
    )

    async def call() -> Found:
        calls = method.shared("1/0", Random(0), time.monotonic)
        try:
            (answer,) = calls.rows([(given,)])
            return await answer
        finally:
            await calls.close()

    rows = asyncio.run(call()).rows
    error = rows.column(ERROR)[0].as_py()
    if error is not None:
        raise CallFailedError(error)
    return rows.column(VALUE)[0].as_py()


@pytest.mark.parametrize("made", KINDS)
def test_whatever_comes_back_is_awaited(made: Made) -> None:
    lookup = PythonLookup(made(lambda keys: [(key, f"r{key}") for key in keys]))
    assert answered(lookup, TABLE, [(1,), (2,)])[0] == [[(1, "r1")], [(2, "r2")]]
    assert value_of(made(lambda number: number + 1), 4) == 5


@pytest.mark.parametrize("made", KINDS)
def test_only_what_may_block_has_a_thread(made: Made) -> None:
    seen: list[str] = []

    def function(given: Any) -> Any:  # noqa: ANN401 - a number, or keys
        seen.append(threading.current_thread().name)
        return [(1, "x")] if isinstance(given, list) else given

    answered(PythonLookup(made(function)), TABLE, [(1,)])
    value_of(made(function), 1)
    assert len(seen) == 2
    assert all(name.startswith("eddyline-call") == (made is blocking) for name in seen)


@pytest.mark.parametrize("end", [SystemExit, KeyboardInterrupt, StopIteration])
@pytest.mark.parametrize("made", [blocking, asynchronous, returning_a_coroutine])
def test_nothing_that_is_raised_ends_the_loop(made: Made, end: type[BaseException]) -> None:
    def function(given: Any) -> Any:  # noqa: ANN401 - likewise
        if given in (1, [1]):
            raise end
        return [(2, "x")] if isinstance(given, list) else given

    failed, found = answered(PythonLookup(made(function)), TABLE, [(1,), (2,)])[0]
    assert "StopIteration" in failed or end.__name__ in failed
    assert found == [(2, "x")]
    with pytest.raises(CallFailedError, match=f"{end.__name__}|StopIteration"):
        value_of(made(function), 1)


async def cancelled(_: object) -> object:
    """Wait for something that somebody has cancelled."""
    waiting: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    waiting.cancel()
    return await waiting


def plainly_cancelled(given: object) -> Awaitable[object]:
    return cancelled(given)


@pytest.mark.parametrize("function", [cancelled, plainly_cancelled])
def test_a_function_that_cancels_itself_has_failed(
    function: Callable[[object], Awaitable[object]],
) -> None:
    assert "CancelledError" in str(answered(PythonLookup(function), TABLE, [(1,)])[0][0])
    with pytest.raises(CallFailedError, match="CancelledError"):
        value_of(function, 1)


SHORT = Limits(max_in_flight=2, timeout=0.2, retries=0)


def kept_waiting(function: Callable[[Any], Any], given: object) -> str:
    """Return the error of a call for which there is too little time."""
    try:
        value_of(function, given, SHORT)
    except CallFailedError as error:
        return str(error)
    return "an answer"


def until(done: Callable[[], bool]) -> None:
    waited_until = time.monotonic() + 10
    while not done():
        assert time.monotonic() < waited_until
        time.sleep(0.01)


def test_a_function_that_blocks_the_loop_holds_up_neither_its_limit_nor_plain_functions() -> None:
    goes_on = threading.Event()

    async def blocks(_: object) -> bool:
        return goes_on.wait(10)  # where it should be awaited

    try:
        assert "no answer in 0.2 s" in kept_waiting(blocks, 1)
        assert value_of(lambda number: number + 1, 4) == 5
        assert "no answer in 0.2 s" in kept_waiting(asynchronous(lambda number: number), 1)
    finally:
        goes_on.set()
    assert value_of(asynchronous(lambda number: number + 1), 4) == 5


def test_a_function_that_does_not_let_itself_be_cancelled_is_left() -> None:
    goes_on = threading.Event()

    async def stubborn(_: object) -> int:
        tries = 0
        while not goes_on.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                tries += 1
        return tries

    try:
        assert "no answer in 0.2 s" in kept_waiting(stubborn, 1)
        assert ABANDONED.calls == 1
    finally:
        goes_on.set()
    until(lambda: not ABANDONED.calls)


def test_calls_that_never_return_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ABANDONED, "most", 3)
    goes_on = threading.Event()
    try:
        for number in range(3):  # each in a job of its own
            assert "no answer" in kept_waiting(lambda _: goes_on.wait(10), number)
        assert ABANDONED.calls == 3
        threads = threading.active_count()
        for made in (blocking, asynchronous):
            with pytest.raises(CallFailedError, match="is not called, as 3 calls"):
                value_of(made(lambda number: number), 4)
        assert threading.active_count() <= threads
    finally:
        goes_on.set()
    until(lambda: not ABANDONED.calls)
    assert value_of(lambda number: number, 4) == 4


def test_calls_behind_one_that_blocks_the_loop_are_bounded_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ABANDONED, "most", 3)
    goes_on = threading.Event()

    async def blocks(_: object) -> bool:
        return goes_on.wait(10)

    try:
        for _ in range(3):
            assert "no answer" in kept_waiting(blocks, 1)
        assert ABANDONED.calls == 3
        books = Books()
        with pytest.raises(CallFailedError, match="is not called, as 3 calls"):
            value_of(blocks, 1, SHORT, books)
        assert books.total("1/")[1].calls == 0  # nothing is paid for it
        (text,) = answered(PythonLookup(blocks, keys_per_call=4), TABLE, [(1,)])[0]
        assert "is not called, as 3 calls" in text
    finally:
        goes_on.set()
    until(lambda: not ABANDONED.calls)


@pytest.mark.parametrize("end", [SystemExit, KeyboardInterrupt])
def test_what_a_task_of_a_function_raises_does_not_end_the_loop(end: type[BaseException]) -> None:
    async def with_a_task(number: int) -> int:
        async def ends() -> None:
            raise end

        with contextlib.suppress(BaseException):
            await asyncio.create_task(ends())
        return number + 1

    value_of(with_a_task, 4)
    assert value_of(with_a_task, 4) == 5


def test_a_function_that_cancels_its_own_task_has_failed() -> None:
    async def cancels(_: object) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    with pytest.raises(CallFailedError, match="CancelledError"):
        value_of(cancels, 1)


def test_calls_that_wait_for_a_thread_are_not_counted() -> None:
    goes_on = threading.Event()

    async def calls() -> list[Any]:
        function = UsersFunction(lambda _: goes_on.wait(10), threads=1)
        waiting = [asyncio.create_task(function.outcome(number)) for number in range(5)]
        await asyncio.sleep(0.1)
        for task in waiting:
            task.cancel()
        found: list[Any] = await asyncio.gather(*waiting, return_exceptions=True)
        return found

    try:
        assert {type(each) for each in asyncio.run(calls())} == {asyncio.CancelledError}
        assert ABANDONED.calls == 1
    finally:
        goes_on.set()
    until(lambda: not ABANDONED.calls)
