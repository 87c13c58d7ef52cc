"""A way to the answers for keys, which is asked with patience: a source, or a function."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Sequence
from random import Random
from typing import ClassVar, Final, Generic, NamedTuple, TypeVar

import pyarrow as pa

from eddyline.asking.limits import Limits
from eddyline.asking.lookup_source import NoAnswerError, TryAgainError, described_error
from eddyline.asking.patience import CircuitBreaker, Gate, pause, tried
from eddyline.asking.refusals import QuotaRefusedError

LONGEST_ASKED_FOR: Final = 120.0
"""Seconds that a server may ask to wait (Retry-After); who asks for more is not waited for."""

NEWEST: Final = 0.2
"""Weight of the last call in what a call usually takes."""

Wanted = TypeVar("Wanted", bound=Hashable)


class Found(NamedTuple):
    """The rows of a key, and its part of the seconds that the call for it took.

    They are ``respelled`` where they have a key other than the one asked for.
    """

    rows: pa.RecordBatch
    seconds: float = 0.0
    respelled: bool = False


class WayAnswer(NamedTuple, Generic[Wanted]):
    """What some keys have, one entry each; or why none of them has anything."""

    keys: Sequence[Wanted]
    found: Sequence[Found] | Exception


class WayToAnswers(ABC, Generic[Wanted]):
    """A source or a function, its limits, and what is under way there.

    It is tried again after failures that may pass, but not for ever. A refusal for quota is none:
    the gate waits for as long as there is patience; where others may have the keys, these are left
    to them, by a QuotaRefusedError. Where a call for several keys
    fails and some of them may be to blame, each half is asked for by itself, and so on down to
    single keys: only the keys that are to blame have no answer. For k keys that makes at most
    2 k - 1 calls, one after the other.
    """

    ends: ClassVar[tuple[type[Exception], ...]] = ()
    """What ends all asking, and is no failure of a call."""

    avoided: ClassVar[str] = "is not asked for a while, since it did not answer before"
    """What is said where too many calls have failed one after the other."""

    halves_patiently: ClassVar[bool] = False
    """Whether each part is tried as often as the limits say; else the first and single keys are."""

    def __init__(
        self,
        label: str,
        keys_per_call: int,
        limits: Limits,
        random: Random,
        now: Callable[[], float],
    ) -> None:
        """``random`` is for the pauses between tries, ``now`` tells seconds."""
        self.label = label
        self.keys_per_call = keys_per_call
        self.gate = Gate(limits)
        self.lurking = False  # whether a worker waits for keys of other ways to be overdue
        self.under_way: dict[Wanted, float] = {}
        """Keys that it is asked for now, with the time since when."""
        self.usual_seconds = 0.0
        """Seconds that a call usually takes; 0 before the first."""
        self.keys = 0
        self.tries = 0
        self.failures = 0
        self.refusals = 0
        self.unmatched = 0
        """Rows that came with a key that their call had not asked for."""
        self._limits = limits
        self._random = random
        self._now = now
        self.keep: Callable[[Sequence[Wanted], Sequence[Found]], Awaitable[None]] | None = None
        """Writes answers to a ledger, before anybody has them."""
        self._forgive()

    def begin(self, keys: Sequence[Wanted]) -> float:
        """Note a call that begins; return the time."""
        now = self._now()
        self.keys += len(keys)
        self.under_way.update(dict.fromkeys(keys, now))
        return now

    def end(self, keys: Sequence[Wanted]) -> None:
        """Note that a call has ended."""
        for key in keys:
            self.under_way.pop(key, None)

    def took(self, seconds: float) -> None:
        """Learn what a call took."""
        usual = self.usual_seconds
        self.usual_seconds = usual + NEWEST * (seconds - usual) if usual else seconds

    async def ask(
        self, keys: Sequence[Wanted], *, final: bool = True
    ) -> AsyncGenerator[WayAnswer[Wanted], None]:
        """Give what keys have: mostly at once, in several parts where a call fails.

        Where there is no answer and this is ``final``, what :meth:`settled` says of the failure;
        else the failure, as others are asked before it is settled.
        """
        parts = [keys]
        while parts:
            part = parts.pop()
            last = len(part) == 1
            try:
                patiently = last or part is keys or self.halves_patiently
                answer = WayAnswer(part, await self._asked(part, patiently=patiently))
            except QuotaRefusedError:
                raise
            except NoAnswerError as error:
                if error.of_keys and not last:
                    middle = len(part) // 2
                    parts += [part[middle:], part[:middle]]
                    continue
                if isinstance(error, TryAgainError):
                    self._breaker.failed()
                answer = self._unanswered(part, str(error), final=final)
            yield answer

    def _forgive(self) -> None:
        """Forget how many calls have failed."""
        self._breaker = CircuitBreaker(self._now)

    @abstractmethod
    async def close(self) -> None:
        """Let go of all that is open, until it is asked again."""

    @abstractmethod
    def failed(self, keys: Sequence[Wanted], why: str) -> Exception:
        """Return the error for keys that have no answer."""

    def settled(self, keys: Sequence[Wanted], error: Exception) -> Sequence[Found] | Exception:  # noqa: ARG002 - others have something instead
        """Return what keys without an answer have."""
        return error

    @abstractmethod
    async def _fetch(self, keys: Sequence[Wanted]) -> Sequence[Found]:
        """Ask once; NoAnswerError where there is no answer, as which all other errors count."""

    def _unanswered(self, keys: Sequence[Wanted], why: str, *, final: bool) -> WayAnswer[Wanted]:
        """Return what keys without an answer have: see :meth:`ask`."""
        self.failures += 1
        error = self.failed(keys, why)
        return WayAnswer(keys, self.settled(keys, error) if final else error)

    async def _asked(self, keys: Sequence[Wanted], *, patiently: bool) -> Sequence[Found]:
        """Return what keys have; NoAnswerError after as many tries as make sense."""
        if not self._breaker.lets_through():
            raise NoAnswerError(self.avoided, of_keys=False)
        tries = 1
        while True:
            self.tries += 1
            try:
                answers = await self._fetched(keys)
            except TryAgainError as error:
                after = error.after or 0.0
                if tries > self._limits.retries or not patiently or after > LONGEST_ASKED_FOR:
                    raise TryAgainError(f"{error}, {tried(tries)}", of_keys=error.of_keys) from None
            except NoAnswerError:
                self._breaker.answered()
                raise
            except self.ends:
                raise
            except Exception as error:
                raise NoAnswerError(described_error(error)) from error
            else:
                self._breaker.answered()
                if self.keep is not None:
                    await self.keep(keys, answers)
                return answers
            await asyncio.sleep(after + pause(tries, self._random))
            tries += 1

    async def _fetched(self, keys: Sequence[Wanted]) -> Sequence[Found]:
        """Ask until it is not refused for quota; QuotaRefusedError where others may have the keys.

        The gate ends that, when patience does.
        """
        while True:
            try:
                return await self._fetch(keys)
            except QuotaRefusedError:
                self.refusals += 1
                if self.gate.lends:
                    self.tries -= 1
                    raise
