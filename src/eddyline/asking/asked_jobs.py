"""The jobs whose tasks ask for keys: what is open for each, and for how long it is kept."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from random import Random
from typing import Any, Final

from eddyline.asking.access_method import SharedTable
from eddyline.asking.asked_job import AskedJob
from eddyline.asking.event_loop import EventLoop
from eddyline.asking.shared_method import Method, SharedMethod
from eddyline.asking.shared_statistics import QuotaWait, SharedLookupStatistics
from eddyline.asking.wire import job_is_of

IDLE_SECONDS: Final = 2.0
"""Seconds without any task of a job before what is open for it is closed."""

LOOKING_SECONDS: Final = 10.0
"""Seconds between two looks whether a job is over that nobody works for now."""

KEPT_SECONDS: Final = 300.0
"""Seconds for which the answers are kept for later stages of the job, unless it is over."""

RESTING_JOBS: Final = 64
"""Jobs whose answers are kept though nobody works for them, the latest ones."""

RESTING_KEYS: Final = 100_000
"""Keys of all these together; the latest job is kept however many it has."""

REMEMBERED_JOBS: Final = 256
"""Jobs of which it is remembered what they asked for, when their answers are forgotten."""


class AskedJobs:
    """All jobs, by the name that their tasks give; for the thread of the loop alone.

    A job without tasks is closed soon. Its answers are kept for a while: later stages of the job
    may ask for the same.
    """

    def __init__(
        self,
        loop: EventLoop,
        methods: Mapping[str, Method],
        now: Callable[[], float],
        *,
        seed: int,
        threads: Executor,
        is_over: Callable[[str], bool] | None,
    ) -> None:
        """Take access methods from ``methods``, which may come and go.

        ``is_over`` tells whether nobody will ask for a job any more; it is called in ``threads``.
        """
        self._loop = loop
        self._methods = methods
        self._now = now
        self._seed = seed
        self._threads = threads
        self._is_over = is_over
        self._jobs: dict[str, AskedJob] = {}
        self._resting: OrderedDict[str, int] = OrderedDict()  # with how many keys each has
        self._past: OrderedDict[str, dict[str, SharedLookupStatistics]] = OrderedDict()
        self._requests_before = 0  # those for tables, of jobs that are forgotten
        self._refusals_before = 0
        self._closing: set[asyncio.Task[None]] = set()

    def entered(self, name: str) -> AskedJob:
        """Return a job for one more task of it."""
        job = self._jobs.setdefault(name, AskedJob())
        job.users += 1
        self._resting.pop(name, None)
        if job.leaving is not None:
            job.leaving.cancel()
            job.leaving = None
        return job

    def left(self, name: str, job: AskedJob) -> None:
        """Take note that a task has left its job."""
        job.users -= 1
        if not job.users:
            job.leaving = self._loop.loop.call_later(IDLE_SECONDS, self._rest, name, job)

    def lookup(self, name: str, job: AskedJob, method: str) -> SharedMethod[Any] | None:
        """Return what asks for a job by a method; None where that is not there any more."""
        lookup = job.lookups.get(method)
        access_method = self._methods.get(method) if lookup is None else None
        if access_method is not None:
            random = Random(self._seed)  # noqa: S311 - for pauses between tries
            lookup = job.lookups[method] = access_method.shared(name, random, self._now)
            job.expect(method)
        return lookup

    def is_forgotten(self, name: str, methods: Iterable[str]) -> bool:
        """Return whether a job has asked by some method, and its answers are forgotten."""
        return name not in self._jobs and not self._past.get(name, {}).keys().isdisjoint(methods)

    def statistics(self, name: str) -> dict[str, SharedLookupStatistics]:
        """Return what was asked for a job so far, by access method."""
        return self._jobs[name].statistics() if name in self._jobs else {}

    def totals(self, prefix: str) -> dict[str, SharedLookupStatistics]:
        """Return what was asked for a job, or, where this ends with a slash, for all that begin so.

        By access method. Of jobs without tasks for a while, only the latest count.
        """
        now = {name: job.statistics() for name, job in self._jobs.items()}
        sums: dict[str, SharedLookupStatistics] = {}
        for job, asked in (self._past | now).items():
            if job_is_of(job, prefix):
                for method, counts in asked.items():
                    sums[method] = counts if method not in sums else sums[method].plus(counts)
        return sums

    def quota_waits(self, action: int) -> list[QuotaWait]:
        """Return what waits for quota in the jobs of an action."""
        waits = (
            lookup.quota_wait()
            for name, job in self._jobs.items()
            if name.endswith(f"/{action}")
            for lookup in job.lookups.values()
        )
        return [wait for wait in waits if wait is not None]

    def keys(self) -> int:
        """Return how many keys have answers that are kept."""
        return sum(job.keys for job in self._jobs.values())

    def requests(self) -> int:
        """Return how many requests were made for tables so far."""
        return self._requests_before + sum(map(_requests, self._jobs.values()))

    def refusals(self) -> int:
        """Return how many requests were refused for quota, which are none of these."""
        return self._refusals_before + sum(map(_refusals, self._jobs.values()))

    async def rest(self) -> None:
        """Close what is open for jobs without tasks now, without the usual wait."""
        for job in self._jobs.values():
            if not job.users:
                for lookup in job.lookups.values():
                    await lookup.close()

    async def forget(self) -> None:
        """Forget the answers of jobs that nobody works for, and what jobs have asked for."""
        for name, job in list(self._jobs.items()):
            if job.users:
                continue
            for lookup in job.lookups.values():
                await lookup.close()
            if self._jobs.get(name) is job and job.leaving is not None:  # it may go on by now
                self._forget(name, job)
        self._past.clear()

    async def close(self) -> None:
        """Close what is open for any job."""
        for job in self._jobs.values():
            for lookup in job.lookups.values():
                await lookup.close()
        self._jobs.clear()

    def _rest(self, name: str, job: AskedJob) -> None:
        """Close what is open for a job that nobody works for, and keep its answers for a while."""
        for lookup in job.lookups.values():
            task = self._loop.loop.create_task(lookup.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        self._resting[name] = job.keys
        while len(self._resting) > RESTING_JOBS or (
            len(self._resting) > 1 and sum(self._resting.values()) > RESTING_KEYS
        ):
            oldest = next(iter(self._resting))
            self._forget(oldest, self._jobs[oldest])
        self._wait_for_end(name, job, self._loop.loop.time() + KEPT_SECONDS)

    def _wait_for_end(self, name: str, job: AskedJob, until: float) -> None:
        """Forget a job when it is over, at some time at the latest; unless it goes on."""

        def looked(answer: asyncio.Future[bool]) -> None:
            known = not answer.cancelled() and answer.exception() is None
            wait_on(over=known and answer.result())

        def wait_on(*, over: bool) -> None:
            if name not in self._resting or self._jobs.get(name) is not job:
                return  # it went on, or is forgotten
            left = until - loop.time()
            if over or left <= 0:
                self._forget(name, job)
                return
            seconds = left if self._is_over is None else min(left, LOOKING_SECONDS)
            job.leaving = loop.call_later(seconds, self._wait_for_end, name, job, until)

        loop = self._loop.loop
        if self._is_over is None:
            wait_on(over=False)
        else:
            loop.run_in_executor(self._threads, self._is_over, name).add_done_callback(looked)

    def _forget(self, name: str, job: AskedJob) -> None:
        """Forget a job's answers, and remember what was asked for."""
        if job.leaving is not None:
            job.leaving.cancel()
        self._resting.pop(name, None)
        del self._jobs[name]
        self._past[name] = job.statistics()
        self._requests_before += _requests(job)
        self._refusals_before += _refusals(job)
        if len(self._past) > REMEMBERED_JOBS:
            self._past.popitem(last=False)


def _requests(job: AskedJob) -> int:
    """Return how many requests were made for the tables of a job."""
    tables = (lookup for lookup in job.lookups.values() if isinstance(lookup, SharedTable))
    return sum(table.statistics().requests for table in tables)


def _refusals(job: AskedJob) -> int:
    """Return how many requests for the tables of a job were refused for quota."""
    tables = (lookup for lookup in job.lookups.values() if isinstance(lookup, SharedTable))
    return sum(table.statistics().refusals for table in tables)
