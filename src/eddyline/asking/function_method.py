"""A function as an access method: its arguments are the key, and its value is the one row."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import TracebackType
from typing import ClassVar, Final

import pyarrow as pa

import eddyline
from eddyline.asking.asked_once import SharedMethod
from eddyline.asking.limits import Limits
from eddyline.asking.lookup_source import Key, NoAnswerError, TryAgainError, described_error
from eddyline.asking.price import ROUNDING, Books, Price, Spending
from eddyline.asking.users_function import ABANDONED, UsersFunction
from eddyline.asking.way_to_answers import Found, WayAnswer, WayToAnswers
from eddyline.asking.wire import ERROR, VALUE, frozen, function_answers
from eddyline.errors import BudgetSpentError, CostError, LookupFailedError
from eddyline.keeping.kept_answers import GivenAnswer, KeptAnswers

_SHOWN: Final = 60
"""Characters of an argument that an error shows."""

_OWN_FILES: Final = (str(Path(eddyline.__file__).parent), asyncio.__path__[0])


@dataclass(frozen=True)
class FunctionMethod:
    """A function as it is called for tasks.

    ``number`` tells functions of one name apart. ``function`` takes the arguments, each made
    of an Arrow value by its reader; or, where ``batch`` is above 0, a list of up to so many
    arguments, tuples where ``readers`` are several. ``write`` makes a column of ``type`` of its
    results, and adds an error for each that does not fit.
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
    kept: KeptAnswers | None = None

    def shared(self, job: str, random: Random, now: Callable[[], float]) -> SharedMethod[Arguments]:
        """Return what makes the calls for one job."""
        way = AskedFunction(self, job, random, now)
        kept = None if self.kept is None else KeptValues(self.kept, way.spending)
        if kept is not None:
            way.keep = kept.keep
        # Tasks that call a function do not say when they have no more to ask for.
        return SharedMethod(
            [way],
            now,
            identity=Arguments.of,
            gathers=False,
            kept=None if kept is None else kept.find,
        )


@dataclass(slots=True, unsafe_hash=True)
class Arguments:
    """A tuple of arguments, equal to another where the function cannot tell them apart.

    A call costs ``amount``, and as much again where it is tried again; so much is ``paid``.
    """

    frozen: object
    values: Key = field(compare=False)
    amount: float = field(default=0.0, compare=False)
    paid: float = field(default=0.0, compare=False)

    @classmethod
    def of(cls, values: Key) -> Arguments:
        """Return arguments for which nothing was paid."""
        return cls(frozen(values), values)


@dataclass(frozen=True, slots=True)
class KeptValues:
    """The values of a function in a ledger; what has failed is not kept."""

    answers: KeptAnswers
    spending: Spending

    def find(self, keys: Sequence[Arguments]) -> Sequence[Found | None]:
        """Return the values that are kept; they cost nothing now."""
        found = self.answers.find([key.values for key in keys])
        self.spending.kept += sum(rows is not None for rows in found)
        return [
            None if rows is None else Found(function_answers(rows.column(0), [None], None, [0.0]))
            for rows in found
        ]

    async def keep(self, keys: Sequence[Arguments], found: Sequence[Found]) -> None:
        """Keep values, with what each has cost."""
        await self.answers.keep(
            [
                GivenAnswer(key.values, answer.rows.select([VALUE]), key.paid)
                for key, answer in zip(keys, found, strict=True)
                if not answer.rows.column(ERROR)[0].is_valid
            ]
        )


class AskedFunction(WayToAnswers[Arguments]):
    """Calls a function for a job, within its budget.

    An OSError, as of a network, and a call that takes too long may pass; nothing else. A failure is
    data, and so is the end of all calls: it is reported for each missing value.
    """

    ends: ClassVar[tuple[type[Exception], ...]] = (BudgetSpentError, CostError)
    avoided: ClassVar[str] = "is not called for a while, since calls before did not succeed"
    halves_patiently: ClassVar[bool] = True  # no value depends on which others were asked for

    def __init__(
        self, method: FunctionMethod, job: str, random: Random, now: Callable[[], float]
    ) -> None:
        """Threads start when they are used."""
        super().__init__(method.name, max(1, method.batch), method.limits, random, now)
        self._method = method
        self._function = UsersFunction(method.function, self.gate.width)
        self.spending = method.books.open(job, method.number, method.name, method.price.unit)
        self._end: Exception | None = None

    async def ask(
        self, keys: Sequence[Arguments], *, final: bool = True
    ) -> AsyncGenerator[WayAnswer[Arguments], None]:
        """Give values, or why there are none, with what each has cost.

        Calls paid for before the end are answered all the same.
        """
        began = self._now()
        self.spending.values += len(keys)
        left = keys
        try:
            if self._end is None:
                if self._method.price.cost is not None:
                    for key in keys:
                        key.amount = self._method.price.of(self._read(key))
                async with aclosing(super().ask(keys, final=final)) as answers:
                    async for answer in answers:
                        left = left[len(answer.keys) :]
                        yield answer
        except self.ends as error:
            self._end = error
        if left and self._end is not None:
            if isinstance(self._end, BudgetSpentError):
                self._method.books.refused += len(left)
            yield WayAnswer(left, self._without(left, [str(self._end)] * len(left), self._end))
        self.spending.seconds += self._now() - began

    async def close(self) -> None:
        """Let the threads end."""
        self._function.close()

    def failed(self, keys: Sequence[Arguments], why: str) -> LookupFailedError:
        """Return the error for something that is not a failed call."""
        return LookupFailedError(f"{shown(self.label, keys[0].values)} {why}")

    def _unanswered(
        self,
        keys: Sequence[Arguments],
        why: str,
        *,
        final: bool,  # noqa: ARG002 - there is no other way
    ) -> WayAnswer[Arguments]:
        texts = [f"{shown(self.label, self._read(key))} {why}" for key in keys]
        return WayAnswer(keys, self._without(keys, texts))

    async def _fetch(self, keys: Sequence[Arguments]) -> Sequence[Found]:
        given = [self._read(key) for key in keys]
        arguments: tuple[object, ...] = given[0]
        if self._method.batch:
            single = len(self._method.readers) == 1
            arguments = ([value for (value,) in given] if single else given,)
        async with self.gate.request():
            if (refusal := ABANDONED.refusal()) is not None:
                raise NoAnswerError(refusal, of_keys=False)
            self._spend(keys)
            value, error = await self._function.outcome(*arguments)
        if isinstance(error, OSError):
            raise TryAgainError(f"raised {described_error(error)}") from error
        if error is not None:
            raise NoAnswerError(raised_text(error))
        return self._found(keys, _listed(value, len(keys)) if self._method.batch else [value])

    def _found(self, keys: Sequence[Arguments], values: list[object]) -> Sequence[Found]:
        """Return values; those of another type are failures."""
        unfit: dict[int, Exception] = {}
        column = self._method.write(values, unfit)
        texts = [
            self._unfit(key, value, unfit[place]) if place in unfit else None
            for place, (key, value) in enumerate(zip(keys, values, strict=True))
        ]
        return self._rows(keys, column, texts)

    def _without(
        self, keys: Sequence[Arguments], texts: Sequence[str], end: Exception | None = None
    ) -> Sequence[Found]:
        """Return why there are no values; with the ``end`` of all calls, if it is that."""
        return self._rows(keys, self._method.write([None] * len(keys), {}), texts, end)

    def _rows(
        self,
        keys: Sequence[Arguments],
        column: pa.Array,
        texts: Sequence[str | None],
        end: Exception | None = None,
    ) -> Sequence[Found]:
        self.spending.failures += sum(text is not None for text in texts)
        batch = function_answers(column, texts, end, [key.paid for key in keys])
        return [Found(batch.slice(place, 1)) for place in range(len(keys))]

    def _spend(self, keys: Sequence[Arguments]) -> None:
        """Note a call; BudgetSpentError, and no call, where the money does not suffice."""
        price, spending = self._method.price, self.spending
        amount = sum(key.amount for key in keys)
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
        self._method.books.calls += 1
        for key in keys:
            key.paid += key.amount

    def _read(self, key: Arguments) -> tuple[object, ...]:
        readers = self._method.readers
        return tuple(
            value if read is None else read(value)
            for read, value in zip(readers, key.values, strict=True)
        )

    def _unfit(self, key: Arguments, value: object, problem: Exception) -> str:
        kind = type(value).__name__
        name = shown(self.label, key.values)
        return f"{name} returned {kind}, which is no {self._method.type}: {problem}"


def _listed(answer: object, count: int) -> list[object]:
    """Return the values of a batch; NoAnswerError where there are more or fewer, or none."""
    try:
        values = list(answer)  # type: ignore[call-overload]  # or it raises
    except TypeError:
        values = None
    if values is None or isinstance(answer, str | bytes | dict) or len(values) != count:
        kind = type(answer).__name__
        what = kind if values is None else f"{kind} of {len(values)}"
        raise NoAnswerError(
            f"returned {what}, not a list of {count} values, one for each that it was given"
        )
    return list(values)


def shown(name: str, arguments: Sequence[object]) -> str:
    """Return a call as people write it.

    >>> shown("score", ("a" * 100, None))
    "score('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..., None)"
    """
    texts = map(repr, arguments)
    short = (text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..." for text in texts)
    return f"{name}({', '.join(short)})"


def raised_text(error: Exception) -> str:
    """Return what was raised, and where in the user's code."""
    trace = _users_part(error.__traceback__)
    lines = "".join(traceback.format_tb(trace))
    where = f"\n{lines.rstrip()}" if lines else ""
    return f"raised {described_error(error)}{where}"


def _users_part(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_OWN_FILES):
        trace = trace.tb_next
    return trace
