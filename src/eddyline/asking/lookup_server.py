"""Answers lookups of tasks, wherever they run: the limits hold for all of them together.

Spark's tasks cannot talk to each other. So they ask here, and only from here are sources asked: see
:mod:`eddyline.asking.wire`.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple, TypeVar

import pyarrow as pa

from eddyline.asking.asked_job import AskedJob, AskingTask, TaskAnswers
from eddyline.asking.asked_jobs import AskedJobs
from eddyline.asking.asked_or_scanned import AskedOrScanned, KeysOfTask
from eddyline.asking.driver_channel import DriverChannel, Hello
from eddyline.asking.event_loop import EventLoop
from eddyline.asking.filling import StageSize, TaskPlace
from eddyline.asking.lookup_source import Key
from eddyline.asking.remote_choice import AskedOutcome
from eddyline.asking.scan_choice import ScanChoice
from eddyline.asking.shared_method import Method
from eddyline.asking.shared_statistics import QuotaWait, SharedLookupStatistics
from eddyline.asking.way_to_answers import Found
from eddyline.asking.wire import LINE, packed
from eddyline.errors import LookupFailedError

ToldT = TypeVar("ToldT")

REMEMBERED_SCANS: Final = 256
"""Scans that were chosen, of which it is remembered until somebody asks for them."""


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
        self._now = now
        self._size_of = size_of
        self._threads = ThreadPoolExecutor(1, "eddyline-stages")  # starts with the first question
        self._jobs: Final = AskedJobs(
            loop, methods, now, seed=seed, threads=self._threads, is_over=is_over
        )
        self._scans: OrderedDict[tuple[str, tuple[str, ...]], float] = OrderedDict()
        self._serving: dict[asyncio.Task[None], socket.socket] = {}
        self._channel = channel
        self.address: Final = channel.listen("keys", self._take)

    def statistics(self, job: str) -> dict[str, SharedLookupStatistics]:
        """Return what was asked for a job so far, by access method; from any thread."""
        return self._told(lambda: self._jobs.statistics(job))

    def totals(self, prefix: str) -> dict[str, SharedLookupStatistics]:
        """Return the same of all jobs of a prefix, see :meth:`AskedJobs.totals`; likewise."""
        return self._told(lambda: self._jobs.totals(prefix))

    def quota_waits(self, action: int) -> list[QuotaWait]:
        """Return what waits for quota in the jobs of an action; from any thread."""
        return self._told(lambda: self._jobs.quota_waits(action))

    @property
    def answers(self) -> int:
        """How many keys have answers that are kept, for all jobs; from any thread."""
        return self._told(self._jobs.keys)

    @property
    def requests(self) -> int:
        """How many requests were made for tables so far, for all jobs; from any thread."""
        return self._told(self._jobs.requests)

    @property
    def refusals(self) -> int:
        """How many requests were refused for quota, which are none of these; from any thread."""
        return self._told(self._jobs.refusals)

    def ask(self, job: str, method: str, keys: Sequence[Key]) -> list[Found | BaseException]:
        """Return what keys have, or why nothing, as for a task of a job; from any thread.

        It waits for all of them.
        """

        async def asked() -> list[Found | BaseException]:
            entered = self._jobs.entered(job)
            try:
                lookup = self._jobs.lookup(job, entered, method)
                if lookup is None:
                    unknown = self._unknown(method)
                    return [unknown.exception() or unknown.result()] * len(keys)
                lookup.expect_of(0)  # no task has more
                found = await asyncio.gather(*lookup.rows(keys), return_exceptions=True)
                return list(found)
            finally:
                self._jobs.left(job, entered)

        return self._awaited(asked())

    def scans_begun(self) -> list[ScanBegun]:
        """Return which scans were chosen since this was asked before; from any thread."""

        def begun() -> list[ScanBegun]:
            scans = [ScanBegun(job, methods, at) for (job, methods), at in self._scans.items()]
            self._scans.clear()
            return scans

        return self._told(begun)

    def rest(self) -> None:
        """Close what is open for jobs without tasks now, without the usual wait."""
        self._awaited(self._jobs.rest())

    def forget(self) -> None:
        """Forget the answers of jobs that nobody works for, and what jobs have asked for."""
        self._awaited(self._jobs.forget())

    def close(self) -> None:
        """Stop serving, and close what is open."""
        self._channel.hang_up(self.address)
        self._awaited(self._close())

    def _told(self, tell: Callable[[], ToldT]) -> ToldT:
        """Return what something tells that is for the thread of the loop alone."""

        async def told() -> ToldT:
            return tell()

        return self._awaited(told())

    def _awaited(self, running: Coroutine[object, object, ToldT]) -> ToldT:
        return asyncio.run_coroutine_threadsafe(running, self._loop.loop).result()

    async def _close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        await self._jobs.close()

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
        job = self._jobs.entered(name)
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
                lookup = self._jobs.lookup(name, job, method)
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
            self._jobs.left(name, job)

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
        if not self._jobs.is_forgotten(name, methods):
            job = self._jobs.entered(name)
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
                self._jobs.left(name, job)
        writer.write(json.dumps(answer).encode() + b"\n" + rows)
        await writer.drain()
        while await reader.read(LINE):  # what it sends still, until it has read this
            pass

    def _note_scan(self, name: str, methods: tuple[str, ...]) -> None:
        self._scans.setdefault((name, methods), self._now())
        if len(self._scans) > REMEMBERED_SCANS:
            self._scans.popitem(last=False)

    def _choice(
        self, name: str, job: AskedJob, methods: tuple[str, ...], hello: Hello
    ) -> AskedOrScanned | None:
        """Return what chooses for a table in a job; None where a way is not there any more."""
        choice = job.choices.get(methods)
        if choice is None:
            lookups = [self._jobs.lookup(name, job, method) for method in methods]
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
