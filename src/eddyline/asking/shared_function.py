"""A function for everybody who needs its values: each distinct tuple of arguments once a job.

A function is an index access method with its arguments as bind fields, and what it returns
as the one row for them (Raman, Deshpande and Hellerstein, 2003, Section 2.1.3).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

import pyarrow as pa

from eddyline.asking.asked_once import AskedOnce, Found
from eddyline.asking.frozen import frozen
from eddyline.asking.function_answers import answers
from eddyline.asking.function_calls import FunctionCallError, FunctionCalls, shown
from eddyline.asking.limits import Limits
from eddyline.asking.lookup_source import Key
from eddyline.asking.price import ROUNDING, Books, Price
from eddyline.asking.shared_lookup import SharedLookupStatistics
from eddyline.errors import BudgetSpentError, CostError


@dataclass(frozen=True)
class FunctionMethod:
    """A function as it is called for tasks.

    ``number`` tells functions of one name apart. ``function`` takes the arguments, each made
    of an Arrow value by its reader; or, where ``batch`` is above 0, a list of up to so many
    arguments, tuples where ``readers`` are several. ``write`` makes a column of ``type`` of what
    it returned, and adds an error for each that fits none.
    """

    number: int
    name: str
    function: Callable[..., object]
    readers: tuple[Callable[[object], object] | None, ...]
    write: Callable[[list[object], dict[int, Exception]], pa.Array]
    type: pa.DataType
    limits: Limits
    batch: int = 0
    price: Price = field(default_factory=Price)
    books: Books = field(default_factory=Books)

    def shared(self, job: str, random: Random, now: Callable[[], float]) -> SharedFunction:
        """Return what makes the calls for one job."""
        return SharedFunction(self, job, random, now)


@dataclass(frozen=True, slots=True)
class _Arguments:
    """A tuple of arguments, equal to another where the function cannot tell them apart."""

    frozen: object
    values: Key = field(compare=False)


class SharedFunction:
    """Calls a function for a job, and keeps the values. For one event loop."""

    def __init__(
        self, method: FunctionMethod, job: str, random: Random, now: Callable[[], float]
    ) -> None:
        """Get ready."""
        self._method = method
        self._now = now
        self._calls = FunctionCalls(method.function, method.name, method.limits, random, now)
        self._asked = AskedOnce[_Arguments]()
        self._spending = method.books.open(job, method.number, method.name, method.price.unit)
        self._stopped: Exception | None = None

    def statistics(self) -> SharedLookupStatistics:
        """Return what was asked so far."""
        gate, spending = self._calls.gate, self._spending
        calls = gate.requests
        return SharedLookupStatistics(
            self._asked.count, calls, calls, spending.calls, spending.failures, gate.most
        )

    def rows(self, keys: Sequence[Key], *, exact: bool = False) -> list[asyncio.Future[Found]]:  # noqa: ARG002 - a value has no key
        """Return for each tuple of arguments its answer to come; from the event loop only."""
        found = self._asked.answers(_Arguments(frozen(key), key) for key in keys)
        for _ in range(self._asked.workers_missing(self._calls.gate.width)):
            self._asked.start(self._work())
        return found

    def expect_of(self, tasks: int, beginning: int = 0) -> None:
        """Do nothing: a call takes what is there, whoever may bring more."""

    def give_up(self, keys: Sequence[Key]) -> None:
        """Forget arguments that wait still to be called with, of which nobody wants the values."""
        self._asked.give_up(_Arguments(frozen(key), key) for key in keys)

    async def close(self) -> None:
        """Call no more; keep the values, and go on if somebody asks again."""
        await self._asked.close()
        await self._calls.close()

    async def _work(self) -> None:
        """Make calls as long as any arguments wait."""
        waiting = self._asked.waiting
        while waiting:
            size = min(len(waiting), max(1, self._method.batch))
            taken = [waiting.popleft() for _ in range(size)]
            self._spending.values += size
            began = self._now()
            try:
                batch = await self._answered([each.values for each in taken])
            except Exception as error:  # noqa: BLE001 - it is raised where the value is needed
                for each in taken:
                    self._asked.fail(each, error)
                continue
            seconds = self._now() - began
            self._spending.seconds += seconds
            for place, each in enumerate(taken):
                self._asked.answer(each, Found(batch.slice(place, 1), seconds / size))

    async def _answered(self, keys: Sequence[Key]) -> pa.RecordBatch:
        """Return values, or why there are none, with what each has cost."""
        rows = len(keys)
        prices = [0.0] * rows
        errors: dict[int, str] = {}
        values: list[object] = [None] * rows
        stopped = self._stopped  # what was paid for before is answered all the same
        try:
            if stopped is None:
                arguments = [self._read(key) for key in keys]
                amounts = [self._method.price.of(given) for given in arguments]
                await self._fill(arguments, amounts, range(rows), values, prices, errors)
        except (BudgetSpentError, CostError) as error:
            stopped = self._stopped = error
        stop = None if stopped is None else type(stopped).__name__
        if stopped is not None:
            errors = dict.fromkeys(range(rows), str(stopped))
        unfit: dict[int, Exception] = {}
        column = self._method.write(
            [None if place in errors else value for place, value in enumerate(values)], unfit
        )
        for place, problem in unfit.items():
            errors.setdefault(place, self._unfit(keys[place], values[place], problem))
        self._spending.failures += len(errors)
        texts = [errors.get(place) for place in range(rows)]
        return answers(column, texts, [stop] * rows, prices)

    async def _fill(
        self,
        arguments: Sequence[tuple[object, ...]],
        amounts: Sequence[float],
        places: range,
        values: list[object],
        prices: list[float],
        errors: dict[int, str],
    ) -> None:
        """Make the call for some places; where a batch fails, one for each half of it.

        So a value does not depend on which others were asked for together with it.
        """

        def begins() -> None:
            self._spend(sum(amounts[place] for place in places))
            for place in places:
                prices[place] += amounts[place]

        given = [arguments[place] for place in places]
        try:
            found = await self._called(given, begins)
        except FunctionCallError as error:
            if len(places) > 1 and not error.alone:
                middle = len(places) // 2
                for half in (places[:middle], places[middle:]):
                    await self._fill(arguments, amounts, half, values, prices, errors)
                return
            for place in places:
                errors[place] = f"{shown(self._method.name, arguments[place])} {error}"
        else:
            for place, value in zip(places, found, strict=True):
                values[place] = value

    async def _called(
        self, given: Sequence[tuple[object, ...]], begins: Callable[[], None]
    ) -> list[object]:
        method = self._method
        if not method.batch:
            return [await self._calls.call(given[0], begins)]
        single = len(method.readers) == 1
        batch = [arguments[0] for arguments in given] if single else list(given)
        answer = await self._calls.call((batch,), begins)
        try:
            found = list(answer)  # type: ignore[call-overload]  # or it raises
        except TypeError:
            found = None
        if found is None or isinstance(answer, str | bytes | dict) or len(found) != len(given):
            kind = type(answer).__name__
            what = kind if found is None else f"{kind} of {len(found)}"
            raise FunctionCallError(
                f"returned {what}, not a list of {len(given)} values, one for each that it "
                f"was given",
                alone=False,
            )
        return list(found)

    def _spend(self, amount: float) -> None:
        """Note a call; BudgetSpentError, and no call, where the money is not there."""
        price, spending = self._method.price, self._spending
        if price.budget is not None:
            spent = spending.spent
            if spent + amount > price.budget * (1 + ROUNDING):
                raise BudgetSpentError(
                    f"{self._method.name} has spent {spent:.6g} of its budget of "
                    f"{price.budget:g} {price.unit} for this job, and the next call costs "
                    f"{amount:.6g} {price.unit}. Give eddyline.concurrent a larger budget, or "
                    f"have it called for fewer rows."
                )
        spending.spent += amount
        spending.calls += 1

    def _read(self, key: Key) -> tuple[object, ...]:
        readers = self._method.readers
        return tuple(
            value if read is None else read(value) for read, value in zip(readers, key, strict=True)
        )

    def _unfit(self, key: Key, value: object, problem: Exception) -> str:
        kind = type(value).__name__
        name = shown(self._method.name, key)
        return f"{name} returned {kind}, which is no {self._method.type}: {problem}"
