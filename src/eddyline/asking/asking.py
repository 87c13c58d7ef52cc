"""Asks a source with patience: again after failures that may pass, but not for ever."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from random import Random
from typing import Final, NamedTuple

import pyarrow as pa
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from eddyline.asking.circuit_breaker import CircuitBreaker
from eddyline.asking.limits import Limits, OnError
from eddyline.asking.lookup_source import Key, LookedUpTable, LookupConnection
from eddyline.asking.no_answer import NoAnswerError, TryAgainError, described_error
from eddyline.asking.pauses import pause, tried
from eddyline.asking.source_rows import RowReader, failed
from eddyline.errors import LookupFailedError

LONGEST_ASKED_FOR: Final = 120.0
"""Seconds that a server may ask to wait (Retry-After); who asks for more is not waited for."""

_log = logging.getLogger(__name__)


class SourceAnswer(NamedTuple):
    """The rows of some keys, others may be among them; or why there are none."""

    keys: Sequence[Key]
    rows: pa.RecordBatch | LookupFailedError


class Asking:
    """Asks one source for one table: tries again, and gives up in the end.

    Where a call for several keys fails and some of them may be to blame, each half is asked for by
    itself, and so on down to single keys: only the keys that are to blame have no answer. For k
    keys that makes at most 2 k - 1 calls, one after the other. The first call and those for
    single keys are tried as often as the limits say, all others once.
    """

    def __init__(
        self,
        table: LookedUpTable,
        label: str,
        connection: LookupConnection,
        limits: Limits,
        random: Random,
        now: Callable[[], float],
    ) -> None:
        """Ask through ``connection``; ``random`` is for the pauses, ``now`` tells seconds."""
        self._table = table
        self._reader = RowReader(table)
        self._label = label
        self._connection = connection
        self._limits = limits
        self._random = random
        self._breaker = CircuitBreaker(now)
        self.tries = 0
        self.failures = 0

    async def ask(
        self, keys: Sequence[Key], *, final: bool = True
    ) -> AsyncGenerator[SourceAnswer, None]:
        """Give the rows of keys: mostly at once, in several parts where a call fails.

        Where there is no answer, what ``on_error`` says: LookupFailedError, which names the
        source and the keys, a row of NULLs for each, or none. That is so if this is ``final``;
        else always LookupFailedError, and others are asked before it is :meth:`settled`.
        """
        parts = [keys]
        while parts:
            part = parts.pop()
            last = len(part) == 1
            try:
                rows = await self._tried(part, patient=last or part is keys)
            except NoAnswerError as error:
                if error.of_keys and not last:
                    middle = len(part) // 2
                    parts += [part[middle:], part[:middle]]
                    continue
                if isinstance(error, TryAgainError):
                    self._breaker.failed()
                yield self.without(part, str(error), final=final)
            else:
                yield SourceAnswer(part, rows)

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def _tried(self, keys: Sequence[Key], *, patient: bool) -> pa.RecordBatch:
        """Return rows; NoAnswerError where there are none, after as many tries as make sense."""
        if not self._breaker.lets_through():
            why = "is not asked for a while, since it did not answer before"
            raise NoAnswerError(why, of_keys=False)
        try:
            try:
                rows = await self._try(keys)
            except TryAgainError as error:
                rows = await self._again(keys, error, patient=patient)
        except NoAnswerError as error:
            if not isinstance(error, TryAgainError):
                self._breaker.answered()
            raise
        except Exception as error:
            raise NoAnswerError(described_error(error)) from error
        self._breaker.answered()
        return rows

    async def _again(
        self, keys: Sequence[Key], failure: TryAgainError, *, patient: bool
    ) -> pa.RecordBatch:
        """Try further after a first failure; only then, as to get ready for it costs 45 us."""
        failures = [failure]

        async def next_try() -> pa.RecordBatch:
            if failures:
                raise failures.pop()
            return await self._try(keys)

        trying = AsyncRetrying(
            stop=stop_after_attempt(self._limits.retries + 1 if patient else 1),
            retry=retry_if_exception(_may_pass),
            wait=self._pause,
            reraise=True,
        )
        try:
            rows: pa.RecordBatch = await trying(next_try)
        except TryAgainError as error:
            tries = tried(trying.statistics["attempt_number"])
            raise TryAgainError(f"{error}, {tries}", of_keys=error.of_keys) from None
        return rows

    async def _try(self, keys: Sequence[Key]) -> pa.RecordBatch:
        self.tries += 1
        return await self._connection.fetch(keys)

    def settled(
        self, keys: Sequence[Key], error: LookupFailedError
    ) -> pa.RecordBatch | LookupFailedError:
        """Return what keys have that have no answer, by what ``on_error`` says."""
        if self._limits.on_error is OnError.FAIL:
            return error
        _log.warning("%s", error)
        if self._limits.on_error is OnError.SKIP:
            return self._reader.batch((), keys)
        rows = [dict(zip(self._table.bind_names, key, strict=True)) for key in keys]
        return self._reader.batch(rows, keys)

    def without(self, keys: Sequence[Key], why: str, *, final: bool) -> SourceAnswer:
        """Return what keys without an answer have: see :meth:`ask`."""
        self.failures += 1
        error = failed(self._table, self._label, keys, why)
        return SourceAnswer(keys, self.settled(keys, error) if final else error)

    def _pause(self, state: RetryCallState) -> float:
        """Return the seconds to wait: a pause, after those that the server has asked for."""
        error = state.outcome.exception() if state.outcome is not None else None
        after = error.after if isinstance(error, TryAgainError) else None
        return (after or 0.0) + pause(state.attempt_number, self._random)


def _may_pass(error: BaseException) -> bool:
    """Tell whether another try may help, and soon enough."""
    return isinstance(error, TryAgainError) and (error.after or 0.0) <= LONGEST_ASKED_FOR
