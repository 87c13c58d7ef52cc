"""One access method of a table, for everybody who asks: each distinct key is asked for once."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eddyline.engine.storage.key_set import KeySet
from eddyline.sources.asking import Asking
from eddyline.sources.gate import Gate
from eddyline.sources.limits import Limits
from eddyline.sources.lookup_source import Key, LookedUpTable, LookupSource


@dataclass(frozen=True, slots=True)
class AccessMethod:
    """An access method as it was registered: what is asked for which table, within which limits."""

    table: LookedUpTable
    source: LookupSource
    limits: Limits

    def shared(self, job: str, random: Random, now: Callable[[], float]) -> SharedLookup:  # noqa: ARG002 - lookups keep no books
        """Return what asks for one job."""
        return SharedLookup(self, random, now)


@dataclass(frozen=True, slots=True)
class SharedLookupStatistics:
    """What was asked so far: distinct keys, calls for them, and the requests that these took."""

    keys: int
    calls: int
    requests: int
    tries: int
    failures: int
    most_in_flight: int


class Found(NamedTuple):
    """The rows of a key, and its part of the seconds that the call for it took."""

    rows: pa.RecordBatch
    seconds: float


class SharedLookup:
    """Asks a source for keys, each once, however many ask, and keeps the answers.

    For one event loop. As many calls as the limits say are on their way as long as any
    key waits; a call takes as many keys as wait, up to what the source takes in one.
    """

    def __init__(self, method: AccessMethod, random: Random, now: Callable[[], float]) -> None:
        """Get ready; the source is opened with the first key."""
        self._method = method
        self._random = random
        self._now = now
        self._gate = Gate(method.limits)
        self._asking: Asking | None = None
        self._answers: dict[Key, asyncio.Future[Found]] = {}
        self._waiting: deque[Key] = deque()
        self._workers: set[asyncio.Task[None]] = set()
        self._calls = 0

    def statistics(self) -> SharedLookupStatistics:
        """Return what was asked so far."""
        asking = self._asking
        return SharedLookupStatistics(
            len(self._answers) - len(self._waiting),
            self._calls,
            self._gate.requests,
            0 if asking is None else asking.tries,
            0 if asking is None else asking.failures,
            self._gate.most,
        )

    def rows(self, keys: Sequence[Key]) -> list[asyncio.Future[Found]]:
        """Return for each key its rows to come, or the failure; from the event loop only."""
        loop = asyncio.get_running_loop()
        found = []
        for each in keys:
            key = tuple(map(_canonical, each))
            future = self._answers.get(key)
            if future is None:
                future = self._answers[key] = loop.create_future()
                self._waiting.append(key)
            found.append(future)
        # One that has just ended may still be among them: it takes no more keys.
        busy = sum(not worker.done() for worker in self._workers)
        for _ in range(min(len(self._waiting), self._gate.width - busy)):
            worker = loop.create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)
        return found

    async def close(self) -> None:
        """Ask no more; keep the answers, and open the source again if it is asked again."""
        self._waiting.clear()
        workers = list(self._workers)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        for key, answer in list(self._answers.items()):
            if not answer.done():
                answer.cancel()
                del self._answers[key]
        asking, self._asking = self._asking, None
        if asking is not None:
            await asking.close()

    async def _work(self) -> None:
        """Make calls as long as any key waits."""
        while self._waiting:
            size = min(len(self._waiting), self._method.source.keys_per_call)
            keys = [self._waiting.popleft() for _ in range(size)]
            self._calls += 1
            began = self._now()
            try:
                batch = await self._opened().ask(keys)
                answers = self._by_key(batch, keys)
            except Exception as error:  # noqa: BLE001 - it is raised where the key was asked for
                for key in keys:
                    self._answers[key].set_exception(error)
                    self._answers[key].exception()  # nobody may ask again, and need not
            else:
                seconds = (self._now() - began) / len(keys)
                for key, answer in zip(keys, answers, strict=True):
                    self._answers[key].set_result(Found(answer, seconds))

    def _opened(self) -> Asking:
        if self._asking is None:
            method = self._method
            connection = method.source.connect(method.table, self._gate)
            self._asking = Asking(
                method.table,
                method.source.label,
                connection,
                method.limits,
                self._random,
                self._now,
            )
        return self._asking

    def _by_key(self, batch: pa.RecordBatch, keys: Sequence[Key]) -> list[pa.RecordBatch]:
        """Return the rows of each key; rows that match none are left out.

        Of a single key all are returned: whoever has asked leaves out what is not wanted.
        """
        if len(keys) == 1:
            return [batch]
        table = self._method.table
        types = [table.types[column] for column in table.bind]
        wanted = KeySet(types)
        wanted.add([pa.array([k[n] for k in keys], kind) for n, kind in enumerate(types)])
        of_rows = wanted.find([batch.column(column) for column in table.bind])
        order = np.argsort(of_rows, kind="stable")
        in_order = batch.take(pa.array(order))
        ends = np.searchsorted(of_rows[order], np.arange(-1, len(keys)), side="right").tolist()
        return [in_order.slice(start, stop - start) for start, stop in pairwise(ends)]


def _canonical(value: object) -> object:
    """Return the one NaN for any, which is then found again."""
    return math.nan if isinstance(value, float) and math.isnan(value) else value
