"""Answers lookups of tasks, wherever they run: the limits hold for all of them together.

Spark's tasks cannot talk to each other. So they ask here, and only from here are sources asked: see
:mod:`eddyline.asking.wire`.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any, Final, NamedTuple

import pyarrow as pa

from eddyline.asking.access_method import SharedTable
from eddyline.asking.asked_job import AskedJob, AskingTask, TaskAnswers
from eddyline.asking.asked_or_scanned import AskedOrScanned, KeysOfTask
from eddyline.asking.driver_channel import DriverChannel, Hello
from eddyline.asking.event_loop import EventLoop
from eddyline.asking.filling import StageSize, TaskPlace
from eddyline.asking.lookup_source import Key
from eddyline.asking.remote_choice import AskedOutcome
from eddyline.asking.scan_choice import ScanChoice
from eddyline.asking.shared_method import Method, SharedMethod
from eddyline.asking.shared_statistics import QuotaWait, SharedLookupStatistics
from eddyline.asking.way_to_answers import Found
from eddyline.asking.wire import LINE, job_is_of, packed
from eddyline.errors import LookupFailedError

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


class ScanBegun(NamedTuple):
    """Tasks of a job were told, at some time of the server's, that a table is to be scanned.

    ``methods`` are the ways by which it would have been looked up.
    """

    job: str
    methods: tuple[str, ...]
    at: float


class LookupServer:
    """Serves the tasks of all jobs from one event loop.

    ``methods`` may come and go while it serves. Jobs are told apart by the name that their
    tasks give.
    """

    def __init__(
        self,
        loop: EventLoop,
        methods: Mapping[str, Method],
        now: Callable[[], float],
        channel: DriverChannel,
        *,
        seed: int = 0,
        size_of: Callable[[int], StageSize | None] | None = None,
        is_over: Callable[[str], bool] | None = None,
    ) -> None:
        """Let tasks ask over the channel from now on, at ``address``.

        ``size_of`` tells how large a stage of Spark's is, None where it does not know, ``is_over``
        whether nobody will ask for a job any more; they are called in a thread of their own.
        """
        self._loop = loop
        self._methods = methods
        self._now = now
        self._seed = seed
        self._size_of = size_of
        self._is_over = is_over
        self._threads = ThreadPoolExecutor(1, "eddyline-stages")  # starts with the first question
        self._jobs: dict[str, AskedJob] = {}
        self._resting: OrderedDict[str, int] = OrderedDict()  # with how many keys each has
        self._past: OrderedDict[str, dict[str, SharedLookupStatistics]] = OrderedDict()
        self._scans: OrderedDict[tuple[str, tuple[str, ...]], float] = OrderedDict()
        self._requests_before = 0  # those for tables, of jobs that are forgotten
        self._refusals_before = 0
        self._closing: set[asyncio.Task[None]] = set()
        self._serving: dict[asyncio.Task[None], socket.socket] = {}
        self._channel = channel
        self.address: Final = channel.listen("keys", self._take)

    def statistics(self, job: str) -> dict[str, SharedLookupStatistics]:
        """Return what was asked for a job so far, by access method; from any thread."""

        async def found() -> dict[str, SharedLookupStatistics]:
            return self._jobs[job].statistics() if job in self._jobs else {}

        return asyncio.run_coroutine_threadsafe(found(), self._loop.loop).result()

    def totals(self, prefix: str) -> dict[str, SharedLookupStatistics]:
        """Return what was asked for a job, or, where this ends with a slash, for all that begin so.

        By access method.

        From any thread. Of jobs without tasks for a while, only the latest count.
        """

        async def found() -> dict[str, SharedLookupStatistics]:
            now = {name: job.statistics() for name, job in self._jobs.items()}
            sums: dict[str, SharedLookupStatistics] = {}
            for job, asked in (self._past | now).items():
                if job_is_of(job, prefix):
                    for method, counts in asked.items():
                        sums[method] = counts if method not in sums else sums[method].plus(counts)
            return sums

        return asyncio.run_coroutine_threadsafe(found(), self._loop.loop).result()

    def quota_waits(self, action: int) -> list[QuotaWait]:
        """Return what waits for quota in the jobs of an action; from any thread."""

        async def found() -> list[QuotaWait]:
            waits = (
                lookup.quota_wait()
                for name, job in self._jobs.items()
                if name.endswith(f"/{action}")
                for lookup in job.lookups.values()
            )
            return [wait for wait in waits if wait is not None]

        return asyncio.run_coroutine_threadsafe(found(), self._loop.loop).result()

    def ask(self, job: str, method: str, keys: Sequence[Key]) -> list[Found | BaseException]:
        """Return what keys have, or why nothing, as for a task of a job; from any thread.

        It waits for all of them.
        """

        async def asked() -> list[Found | BaseException]:
            entered = self._entered(job)
            try:
                lookup = self._lookup(job, entered, method)
                if lookup is None:
                    unknown = self._unknown(method)
                    return [unknown.exception() or unknown.result()] * len(keys)
                lookup.expect_of(0)  # no task has more
                found = await asyncio.gather(*lookup.rows(keys), return_exceptions=True)
                return list(found)
            finally:
                self._left(job, entered)

        return asyncio.run_coroutine_threadsafe(asked(), self._loop.loop).result()

    def rest(self) -> None:
        """Close what is open for jobs without tasks now, without the usual wait."""

        async def closed() -> None:
            for job in self._jobs.values():
                if not job.users:
                    for lookup in job.lookups.values():
                        await lookup.close()

        asyncio.run_coroutine_threadsafe(closed(), self._loop.loop).result()

    @property
    def answers(self) -> int:
        """How many keys have answers that are kept, for all jobs; from any thread."""

        async def found() -> int:
            return sum(job.keys for job in self._jobs.values())

        return asyncio.run_coroutine_threadsafe(found(), self._loop.loop).result()

    @property
    def requests(self) -> int:
        """How many requests were made for tables so far, for all jobs; from any thread."""

        async def found() -> int:
            return self._requests_before + sum(map(_requests, self._jobs.values()))

        return asyncio.run_coroutine_threadsafe(found(), self._loop.loop).result()

    @property
    def refusals(self) -> int:
        """How many requests were refused for quota, which are none of these; from any thread."""

        async def found() -> int:
            return self._refusals_before + sum(map(_refusals, self._jobs.values()))

        return asyncio.run_coroutine_threadsafe(found(), self._loop.loop).result()

    def scans_begun(self) -> list[ScanBegun]:
        """Return which scans were chosen since this was asked before; from any thread."""

        async def begun() -> list[ScanBegun]:
            scans = [ScanBegun(job, methods, at) for (job, methods), at in self._scans.items()]
            self._scans.clear()
            return scans

        return asyncio.run_coroutine_threadsafe(begun(), self._loop.loop).result()

    def forget(self) -> None:
        """Forget the answers of jobs that nobody works for, and what jobs have asked for."""

        async def forgotten() -> None:
            for name, job in list(self._jobs.items()):
                if job.users:
                    continue
                for lookup in job.lookups.values():
                    await lookup.close()
                if self._jobs.get(name) is job and job.leaving is not None:  # it may go on by now
                    self._forget(name, job)
            self._past.clear()

        asyncio.run_coroutine_threadsafe(forgotten(), self._loop.loop).result()

    def close(self) -> None:
        """Stop serving, and close what is open."""
        self._channel.hang_up(self.address)
        asyncio.run_coroutine_threadsafe(self._close(), self._loop.loop).result()

    async def _close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        for job in self._jobs.values():
            for lookup in job.lookups.values():
                await lookup.close()
        self._jobs.clear()

    def _take(self, hello: Hello, connection: socket.socket) -> None:
        """Serve a connection in the loop; from the channel's thread."""
        ours = socket.socket(fileno=connection.detach())
        try:
            self._loop.soon(lambda: self._begin(hello, ours))
        except RuntimeError:  # it has ended
            ours.close()

    def _begin(self, hello: Hello, connection: socket.socket) -> None:
        """Serve a connection, and close it: also where its task is cancelled before it begins."""
        task = self._loop.loop.create_task(self._serve(hello, connection))
        self._serving[task] = connection
        task.add_done_callback(lambda ended: self._serving.pop(ended).close())

    async def _serve(self, hello: Hello, connection: socket.socket) -> None:
        """Serve one lookup of one task, until it hangs up."""
        reader, writer = await asyncio.open_connection(sock=connection, limit=LINE)
        try:
            if "scan_seconds" in hello:
                await self._choose(hello, reader, writer)
            else:
                await self._serve_task(hello, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, ValueError, KeyError):
            return  # a client that speaks like this is not ours, or has gone
        finally:
            writer.transport.abort()  # a client that has gone, or is sent away, reads no more

    async def _serve_task(
        self,
        hello: Hello,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        name, method, exact = hello["job"], hello["method"], bool(hello.get("exact"))
        job = self._entered(name)
        answers = TaskAnswers(writer)
        sending = asyncio.create_task(answers.send())
        task = None if hello.get("task") is None else TaskPlace(*hello["task"])
        asking = AskingTask(job, method, task)
        if task is not None and asking.wants_size:
            self._find_size(job, method, task.stage)
        try:
            while line := await reader.readline():
                request = json.loads(line)
                asking.may_go_on(going_on="calls" in request)
                if "calls" not in request:
                    asking.speak()
                    continue
                keys = pa.ipc.open_stream(await reader.readexactly(request["bytes"])).read_all()
                lookup = self._lookup(name, job, method)
                values = list(zip(*(column.to_pylist() for column in keys.columns), strict=True))
                rows = (
                    [self._unknown(method)] * len(request["calls"])
                    if lookup is None
                    else lookup.rows(values, exact=exact)
                )
                for call, key, future in zip(request["calls"], values, rows, strict=True):
                    answers.expect(call, future)
                    asking.wait_for(key, future)
                asking.speak()
        finally:
            sending.cancel()
            asking.end()
            self._left(name, job)

    async def _choose(
        self, hello: Hello, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Say whether the table whose keys a task has is to be scanned, when that is known.

        It is an error where that was said before and is forgotten: it might be otherwise now, and
        other tasks go on with what they were told.
        """
        name, ways = hello["job"], hello["ways"]
        methods = tuple(str(method) for method, _, _ in ways)
        rows = b""
        answer: dict[str, object] = {
            "error": f"what was found out about {methods[0]} is forgotten: run the query again"
        }
        if name in self._jobs or not self._past.get(name, {}).keys() & set(methods):
            job = self._entered(name)
            keys = KeysOfTask(reader, writer)
            try:
                choice = self._choice(name, job, methods, hello)
                outcome = AskedOutcome(str(self._unknown(methods[0]).exception()))
                if choice is not None:
                    outcome = await choice.outcome(
                        int(hello["use"]),
                        TaskPlace(*hello["place"]),
                        [int(count) for _, count, _ in ways],
                        keys,
                        lambda way: AskingTask(job, methods[way]),
                    )
                rows = b"" if outcome.rows is None or outcome.scan else packed(outcome.rows)
                answer = {"scan": outcome.scan, "way": outcome.way, "bytes": len(rows)}
                if outcome.scan:
                    self._note_scan(name, methods)
            finally:
                await keys.close()
                self._left(name, job)
        writer.write(json.dumps(answer).encode() + b"\n" + rows)
        await writer.drain()
        while await reader.read(LINE):  # what it sends still, until it has read this
            pass

    def _note_scan(self, name: str, methods: tuple[str, ...]) -> None:
        self._scans.setdefault((name, methods), self._now())
        if len(self._scans) > REMEMBERED_JOBS:
            self._scans.popitem(last=False)

    def _choice(
        self, name: str, job: AskedJob, methods: tuple[str, ...], hello: Hello
    ) -> AskedOrScanned | None:
        """Return what chooses for a table in a job; None where a way is not there any more."""
        choice = job.choices.get(methods)
        if choice is None:
            lookups = [self._lookup(name, job, method) for method in methods]
            known = [lookup for lookup in lookups if lookup is not None]
            if len(known) < len(lookups):
                return None
            money = tuple(float(of_call) for _, _, of_call in hello["ways"])
            scan = float(hello["scan_seconds"]), float(hello["scan_money"])
            told = ScanChoice(scan[0], self._now, money, scan[1])
            choice = job.choices[methods] = AskedOrScanned(known, told)
        return choice

    def _find_size(self, job: AskedJob, method: str, stage: int) -> None:
        """Find out how many tasks a stage has; until then it may have more."""

        def found(answer: asyncio.Future[StageSize | None]) -> None:
            known = not answer.cancelled() and answer.exception() is None
            job.beginning[method].sized(stage, answer.result() if known else None)
            job.expect(method)

        if self._size_of is None:
            job.beginning[method].sized(stage, None)
        else:
            loop = self._loop.loop
            loop.run_in_executor(self._threads, self._size_of, stage).add_done_callback(found)

    def _entered(self, name: str) -> AskedJob:
        job = self._jobs.setdefault(name, AskedJob())
        job.users += 1
        self._resting.pop(name, None)
        if job.leaving is not None:
            job.leaving.cancel()
            job.leaving = None
        return job

    def _left(self, name: str, job: AskedJob) -> None:
        job.users -= 1
        if not job.users:
            job.leaving = self._loop.loop.call_later(IDLE_SECONDS, self._rest, name, job)

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

    def _lookup(self, name: str, job: AskedJob, method: str) -> SharedMethod[Any] | None:
        lookup = job.lookups.get(method)
        access_method = self._methods.get(method) if lookup is None else None
        if access_method is not None:
            random = Random(self._seed)  # noqa: S311 - for pauses between tries
            lookup = job.lookups[method] = access_method.shared(name, random, self._now)
            job.expect(method)
        return lookup

    def _unknown(self, method: str) -> asyncio.Future[Found]:
        """Return the answer to requests for a method that is not there any more."""
        answer: asyncio.Future[Found] = self._loop.loop.create_future()
        answer.set_exception(
            LookupFailedError(
                f"{method} is not known any more where the driver is: many others were registered "
                f"since. Register the table, or declare the function, and adapt the query again."
            )
        )
        answer.exception()  # the task that asked may have gone
        return answer


def _requests(job: AskedJob) -> int:
    """Return how many requests were made for the tables of a job."""
    tables = (lookup for lookup in job.lookups.values() if isinstance(lookup, SharedTable))
    return sum(table.statistics().requests for table in tables)


def _refusals(job: AskedJob) -> int:
    """Return how many requests for the tables of a job were refused for quota."""
    tables = (lookup for lookup in job.lookups.values() if isinstance(lookup, SharedTable))
    return sum(table.statistics().refusals for table in tables)
