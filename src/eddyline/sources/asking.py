"""Asks a source with patience: again after failures that may pass, but not for ever."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

import pyarrow as pa
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt

from eddyline.sources.circuit_breaker import CircuitBreaker
from eddyline.sources.failures import LookupFailedError, TryAgainError
from eddyline.sources.limits import Limits, OnError
from eddyline.sources.lookup_source import Key, LookedUpTable, LookupConnection
from eddyline.sources.rows import as_batch, described

FIRST_PAUSE: Final = 0.2
"""Seconds before the second try at the most; each next one waits for twice as long at the most."""

LONGEST_PAUSE: Final = 20.0
LONGEST_ASKED_FOR: Final = 120.0
"""Seconds that a server may ask to wait (Retry-After); who asks for more is not waited for."""

_log = logging.getLogger(__name__)


class Asking:
    """Asks one source for one table: tries again, and gives up in the end."""

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
        self._label = label
        self._connection = connection
        self._limits = limits
        self._random = random
        self._breaker = CircuitBreaker(now)
        self.tries = 0
        self.failures = 0

    async def ask(self, keys: Sequence[Key]) -> pa.RecordBatch:
        """Return the rows of keys.

        Where there is no answer, what ``on_error`` says: LookupFailedError, which names the
        source and the keys, a row of NULLs for each, or none.
        """
        try:
            return await self._answered(keys)
        except LookupFailedError as error:
            self.failures += 1
            if self._limits.on_error is OnError.FAIL:
                raise
            _log.warning("%s", error)
            if self._limits.on_error is OnError.SKIP:
                return as_batch(self._table, self._label, (), keys)
            rows = [dict(zip(self._table.bind_names, key, strict=True)) for key in keys]
            return as_batch(self._table, self._label, rows, keys)

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def _answered(self, keys: Sequence[Key]) -> pa.RecordBatch:
        if not self._breaker.lets_through():
            raise self._failed(keys, "is not asked for a while, since it did not answer before")
        trying = AsyncRetrying(
            stop=stop_after_attempt(self._limits.retries + 1),
            retry=retry_if_exception_type(TryAgainError),
            wait=self._pause,
            reraise=True,
        )
        try:
            answer: pa.RecordBatch = await trying(self._try, keys)
        except TryAgainError as error:
            self._breaker.failed()
            tries = self._limits.retries + 1
            times = "once" if tries == 1 else f"{tries} times"
            raise self._failed(keys, f"{error}, tried {times}") from None
        except LookupFailedError:
            raise
        except Exception as error:
            raise self._failed(keys, f"{type(error).__name__}: {error}") from error
        self._breaker.answered()
        return answer

    async def _try(self, keys: Sequence[Key]) -> pa.RecordBatch:
        self.tries += 1
        return await self._connection.fetch(keys)

    def _pause(self, state: RetryCallState) -> float:
        """Return the seconds to wait: what the server asked for, else twice as long each time.

        With full jitter, so that calls which failed together do not come together again.
        """
        error = state.outcome.exception() if state.outcome is not None else None
        longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (state.attempt_number - 1))
        pause = self._random.uniform(0.0, longest)
        if isinstance(error, TryAgainError) and error.after is not None:
            if error.after > LONGEST_ASKED_FOR:
                raise error
            return error.after + pause
        return pause

    def _failed(self, keys: Sequence[Key], what: str) -> LookupFailedError:
        return LookupFailedError(
            f"{self._label}, asked for {self._table.name} {described(self._table, keys)}: {what}"
        )
