"""A function as an access method: its arguments are the key, and its value is the one row."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from random import Random
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.asking.batch_size import BatchSize
from eddyline.asking.called_arguments import Arguments, raised_text, shown
from eddyline.asking.limits import Limits, OnFailure
from eddyline.asking.lookup_source import NoAnswerError, TryAgainError, described_error
from eddyline.asking.price import ROUNDING, Books, Price, Spending
from eddyline.asking.quota_rules import OfAnswer, QuotaRules, TokenPace, number_of
from eddyline.asking.refusals import QuotaRefusedError, refusal_in
from eddyline.asking.shared_method import SharedMethod
from eddyline.asking.users_function import ABANDONED, UsersFunction
from eddyline.asking.way_to_answers import Found, WayAnswer, WayToAnswers
from eddyline.asking.wire import ERROR, STOP, VALUE, function_answers
from eddyline.errors import BudgetSpentError, CostError, LookupFailedError
from eddyline.keeping.kept_answers import GivenAnswer, KeptAnswers

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FunctionMethod:
    """A function as it is called for tasks.

    ``number`` tells functions of one name apart. ``function`` takes the arguments, each made
    of an Arrow value by its reader; or, where ``batch`` is above 0, a list of up to so many
    arguments, tuples where ``readers`` are several; arguments of one ``prefix`` stand next to each
    other. ``write`` makes a column of ``type`` of its
    results, and adds an error for each that does not fit; what rows have is :attr:`returns`.
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
    on_error: OnFailure = OnFailure.FAIL
    quota: QuotaRules = field(default_factory=QuotaRules)
    batch_adapts: bool = False
    prefix: Callable[..., object] | None = None

    @property
    def returns(self) -> pa.DataType:
        """The type of the values that rows have: a struct where errors are kept as well."""
        if self.on_error is OnFailure.KEEP:
            return pa.struct([("value", self.type), ("error", pa.string())])
        return self.type

    def settled(self, answer: pa.RecordBatch) -> pa.RecordBatch:
        """Return what rows have for an answer, or for a failure; the end of all calls stays one."""
        if self.on_error is OnFailure.FAIL:
            return answer
        values, errors, stop, price = answer.columns
        ended = stop.is_valid()
        left = pc.if_else(ended, errors, pa.scalar(None, pa.string()))
        if self.on_error is OnFailure.KEEP:
            # Where it was raised is in the log.
            errors = pc.list_element(pc.split_pattern(errors, "\n", max_splits=1), 0)
            # What is NULL in a struct that is valid is NULL in its field.
            values = pa.StructArray.from_arrays([values, errors], fields=list(self.returns))
        return pa.RecordBatch.from_arrays([values, left, stop, price], names=answer.schema.names)

    def shared(self, job: str, random: Random, now: Callable[[], float]) -> SharedMethod[Arguments]:
        """Return what makes the calls for one job."""
        way = AskedFunction(self, job, random, now)
        kept = None if self.kept is None else KeptValues(self.kept, way.spending, self)
        if kept is not None:
            way.keep = kept.keep
        # Tasks that call a function do not say when they have no more to ask for.
        return SharedMethod(
            [way],
            now,
            identity=Arguments.of,
            gathers=False,
            kept=None if kept is None else kept.find,
            order=None if self.prefix is None else way.prefix_of,
        )


@dataclass(frozen=True, slots=True)
class KeptValues:
    """The values of a function in a ledger; what has failed is not kept."""

    answers: KeptAnswers
    spending: Spending
    method: FunctionMethod

    def find(self, keys: Sequence[Arguments]) -> Sequence[Found | None]:
        """Return the values that are kept; they cost nothing now."""
        found = self.answers.find([key.values for key in keys])
        self.spending.kept += sum(answer is not None for answer in found)
        self.spending.saved += sum(answer.cost for answer in found if answer is not None)
        settled = self.method.settled
        return [
            None
            if answer is None
            else Found(settled(function_answers(answer.rows.column(0), [None], None, [0.0])))
            for answer in found
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
        rate = method.quota.token_rate
        self._tokens = None if rate is None else TokenPace(rate)
        self._end: Exception | None = None
        self._size = BatchSize(max(1, method.batch), adapts=method.batch_adapts)
        self.keys_per_call = self._size.size
        self._turn = asyncio.Lock()
        self._costliest = 0.0
        self._untold: CostError | None = None
        self._warned = False

    async def ask(
        self, keys: Sequence[Arguments], *, final: bool = True
    ) -> AsyncGenerator[WayAnswer[Arguments], None]:
        """Give values, or why there are none, with what each has cost.

        Calls paid for before the end are answered all the same.
        """
        self.spending.values += len(keys)
        left = keys
        try:
            if self._end is None:
                for key in keys:
                    key.amount = self._expected(self._read(key))
                async with aclosing(super().ask(keys, final=final)) as answers:
                    async for answer in answers:
                        left = left[len(answer.keys) :]
                        yield self._settled(answer)
        except self.ends as error:
            self._end = error
        if left and self._end is not None:
            if isinstance(self._end, BudgetSpentError):
                self._method.books.refused += len(left)
            ended = self._without(left, [str(self._end)] * len(left), self._end)
            yield self._settled(WayAnswer(left, ended))
        self.spending.waited, self.spending.waits = self.gate.waited, tuple(self.gate.waits)

    def _settled(self, answer: WayAnswer[Arguments]) -> WayAnswer[Arguments]:
        """Return what rows have for an answer, as the user has said for failures."""
        if self._method.on_error is OnFailure.FAIL or isinstance(answer.found, Exception):
            return answer
        if self._method.on_error is OnFailure.NULL:
            self._warn(answer.found)
        settled = [f._replace(rows=self._method.settled(f.rows)) for f in answer.found]
        return WayAnswer(answer.keys, settled)

    def _warn(self, answers: Sequence[Found]) -> None:
        """Tell the first failure that becomes NULL, of which nobody would know."""
        for found in () if self._warned else answers:
            error, stop = found.rows.column(ERROR)[0].as_py(), found.rows.column(STOP)[0]
            if error is not None and not stop.is_valid:
                self._warned = True
                _log.warning("%s; further failures of %s are not told", error, self.label)
                return

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
        expected = await self._token_turn()
        async with self.gate.request():
            if (refusal := ABANDONED.refusal()) is not None:
                raise NoAnswerError(refusal, of_keys=False)
            self._spend(keys)
            began = self._now()
            try:
                value, error = await self._function.outcome(*arguments)
            finally:
                self.spending.seconds += self._now() - began
            if error is not None and (refused := self._refusal(error)) is not None:
                self._give_back(keys)
                raise refused from error
        if error is not None and len(keys) > 1 and self._is_too_large(error):
            self._size.too_large(len(keys))
            self.keys_per_call = self._size.size
            raise NoAnswerError(raised_text(error))  # of its halves each is asked for
        if isinstance(error, OSError):
            raise TryAgainError(f"raised {described_error(error)}") from error
        if error is not None:
            raise NoAnswerError(raised_text(error))
        values = _listed(value, len(keys)) if self._method.batch else [value]
        self._settle(keys, given, values, expected)
        if self._method.batch:
            self._size.took(len(keys), self._now() - began)
            self.keys_per_call = self._size.size
        return self._found(keys, values)

    def _expected(self, arguments: tuple[object, ...]) -> float:
        """Return what a value is expected to cost: where nobody says, as much as the costliest."""
        price = self._method.price
        return self._costliest if price.cost is None else price.of(arguments)

    async def _token_turn(self) -> float:
        """Wait until there are tokens; return how many a call is expected to take."""
        if self._tokens is None:
            return 0.0
        async with self._turn:
            await asyncio.sleep(self._tokens.wait(self._now()))
        return self._tokens.begin(self._now())

    def prefix_of(self, key: Arguments) -> str:
        """Return what arguments begin with, as the user says; nothing where that fails."""
        try:
            return "" if self._method.prefix is None else str(self._method.prefix(*self._read(key)))
        except Exception:  # noqa: BLE001 - a place among others is all that it decides
            return ""

    def _is_too_large(self, error: Exception) -> bool:
        recognize = self._method.quota.too_large
        try:
            return recognize is not None and bool(recognize(error))
        except Exception as wrong:
            text = f"too_large raised {described_error(wrong)} on {described_error(error)}"
            raise NoAnswerError(text) from wrong

    def _refusal(self, error: Exception) -> QuotaRefusedError | None:
        try:
            return refusal_in(error, self._method.quota.is_quota)
        except Exception as wrong:
            text = f"is_quota failed with {described_error(wrong)} on {described_error(error)}"
            raise NoAnswerError(text) from wrong

    def _settle(
        self,
        keys: Sequence[Arguments],
        given: Sequence[tuple[object, ...]],
        values: Sequence[object],
        expected: float,
    ) -> None:
        """Count what answers have cost, and the tokens that they took; CostError."""
        price, tokens = self._method.price.actual, self._method.quota.tokens
        for key, arguments, value in zip(keys, given, values, strict=True):
            if price is not None:
                amount = self._told(price, "price", arguments, value, key.amount)
                self._costliest = max(self._costliest, amount)
                key.paid += amount - key.amount
                self.spending.spent += amount - key.amount
        if tokens is not None:
            took = sum(
                self._told(tokens, "tokens", arguments, value, 0.0)
                for arguments, value in zip(given, values, strict=True)
            )
            self.spending.tokens += took
            if self._tokens is not None:
                self._tokens.took(took, expected)

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

    def _told(
        self,
        tell: OfAnswer,
        name: str,
        arguments: tuple[object, ...],
        answer: object,
        otherwise: float,
    ) -> float:
        """Return what a user's function tells of an answer; where it fails, the job ends soon.

        Not at once: the answer was paid for, and is kept.
        """
        try:
            return number_of(tell, name, arguments, answer)
        except CostError as error:
            self._untold = error
            return otherwise

    async def _asked(self, keys: Sequence[Arguments], *, patiently: bool) -> Sequence[Found]:
        found = await super()._asked(keys, patiently=patiently)
        if self._untold is not None:
            raise self._untold
        return found

    def _give_back(self, keys: Sequence[Arguments]) -> None:
        """Take note that a call was refused, and has cost nothing."""
        self.spending.spent -= sum(key.amount for key in keys)
        self.spending.calls -= 1
        self.spending.refusals += 1
        self._method.books.calls -= 1
        self._method.books.refusals += 1
        for key in keys:
            key.paid -= key.amount

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
