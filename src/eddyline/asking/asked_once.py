"""Keys that are asked for once, however many want them.

What the lookups of a table and the calls of a function have in common: a function is an index
access method with its arguments as bind fields, and what it returns as the one row for them
(Raman, Deshpande and Hellerstein, 2003, Section 2.1.3).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Generic, Protocol

from eddyline.asking.filling import Filling
from eddyline.asking.lookup_source import Key, described_error
from eddyline.asking.patience import Wait
from eddyline.asking.refusals import QuotaRefusedError
from eddyline.asking.way_to_answers import Found, Wanted, WayAnswer, WayToAnswers

OVERDUE: Final = 4.0
"""How many times as long as usual a call must take before another way is asked as well."""

SOON: Final = 0.05
"""Seconds that no call is overdue for."""


class AskedOnce(Generic[Wanted]):
    """Answers to keys; each key is asked for once, its answer kept. For one event loop.

    Keys that nobody knows stand in ``waiting``; workers take them from there and give each
    its answer, or the failure.

    >>> import pyarrow as pa
    >>> async def shown() -> list[object]:
    ...     asked = AskedOnce[str]()
    ...     async def work() -> None:
    ...         while asked.waiting:
    ...             key = asked.waiting.popleft()
    ...             asked.answer(key, Found(pa.record_batch({"k": [key]}), 0.0))
    ...     answers = asked.answers("aba")
    ...     for _ in range(asked.workers_missing(width=4)):
    ...         asked.start(work())
    ...     found = await asyncio.gather(*answers)
    ...     return [asked.count, *(each.rows["k"][0].as_py() for each in found)]
    >>> asyncio.run(shown())
    [2, 'a', 'b', 'a']
    """

    def __init__(self) -> None:
        self.waiting: Final[deque[Wanted]] = deque()
        self._answers: dict[Wanted, asyncio.Future[Found]] = {}
        self._workers: dict[asyncio.Task[None], object] = {}
        self.done = 0
        """Keys that have their answer, or have failed."""

    @property
    def count(self) -> int:
        """Keys that were asked for so far."""
        return len(self._answers) - len(self.waiting)

    @property
    def known(self) -> int:
        """Keys that somebody wants to know of, asked for or not."""
        return len(self._answers)

    def answers(self, keys: Iterable[Wanted]) -> list[asyncio.Future[Found]]:
        """Return for each key its answer to come; new ones wait from now on."""
        loop = asyncio.get_running_loop()
        futures = []
        for key in keys:
            future = self._answers.get(key)
            if future is None:
                future = self._answers[key] = loop.create_future()
                self.waiting.append(key)
            futures.append(future)
        return futures

    def answered(self, key: Wanted) -> bool:
        """Tell whether a key has its answer, or has failed."""
        return self._answers[key].done()

    def answer(self, key: Wanted, found: Found) -> None:
        """Give everybody the answer to a key; it counts if there is none yet."""
        if not self.answered(key):
            self._answers[key].set_result(found)
            self.done += 1

    def fail(self, key: Wanted, error: Exception) -> None:
        """Raise an error for everybody who wants a key."""
        self._answers[key].set_exception(error)
        self.done += 1
        self._answers[key].exception()  # nobody may ask again, and need not

    def workers_missing(self, width: int, at: object = None, calls: int | None = None) -> int:
        """Return how many workers should start ``at`` one place, where ``width`` may work.

        There are ``calls`` to be made; by default one for each waiting key.
        """
        # A worker that has just ended is among them until the loop comes to it.
        busy = sum(not task.done() for task, place in self._workers.items() if place is at)
        return max(0, min(len(self.waiting) if calls is None else calls, width - busy))

    def give_up(self, keys: Iterable[Wanted]) -> None:
        """Forget those of these keys that still wait: nobody wants their answers any more."""
        gone = set(keys).intersection(self.waiting)
        if not gone:
            return
        left = [key for key in self.waiting if key not in gone]
        self.waiting.clear()
        self.waiting.extend(left)
        for key in gone:
            self._answers.pop(key).cancel()

    def start(self, work: Coroutine[Any, Any, None], at: object = None) -> None:
        """Begin to work at a place."""
        worker = asyncio.get_running_loop().create_task(work)
        self._workers[worker] = at
        worker.add_done_callback(self._workers.pop)

    async def close(self) -> None:
        """Stop the workers; keep the answers, and forget the keys that have none."""
        self.waiting.clear()
        workers = list(self._workers)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        for key, answer in list(self._answers.items()):
            if not answer.done():
                answer.cancel()
                del self._answers[key]


@dataclass(frozen=True, slots=True)
class SharedLookupStatistics:
    """What was asked so far: distinct keys, calls for them, and the requests that these took.

    ``by_source`` are the keys that each source was asked for, in the order of registration,
    ``unmatched`` the rows that came with a key that their call had not asked for. ``kept`` are
    further keys whose answers a ledger had. ``refusals`` are requests that were refused for quota,
    which are none of the requests, and ``waited`` the seconds in which none was let through for
    that.
    """

    keys: int
    calls: int
    requests: int
    tries: int
    failures: int
    most_in_flight: int
    by_source: tuple[tuple[str, int], ...] = ()
    unmatched: int = 0
    kept: int = 0
    refusals: int = 0
    waited: float = 0.0
    waits: tuple[Wait, ...] = ()

    def plus(self, other: SharedLookupStatistics) -> SharedLookupStatistics:
        """Return the sum, for two jobs that ask the same sources."""
        keys = zip(self.by_source, other.by_source, strict=True)
        return SharedLookupStatistics(
            self.keys + other.keys,
            self.calls + other.calls,
            self.requests + other.requests,
            self.tries + other.tries,
            self.failures + other.failures,
            max(self.most_in_flight, other.most_in_flight),
            tuple((source, one + two) for (source, one), (_, two) in keys),
            self.unmatched + other.unmatched,
            self.kept + other.kept,
            self.refusals + other.refusals,
            self.waited + other.waited,
            self.waits + other.waits,
        )


@dataclass(frozen=True, slots=True)
class QuotaWait:
    """Keys that wait since a quota is spent: so many of those that are known are ``answered``.

    The others take about so many ``seconds``, None where nobody knows yet.
    """

    answered: int
    known: int
    seconds: float | None

    def __str__(self) -> str:
        """Return what people read of it.

        >>> str(QuotaWait(4_120, 10_000, 715.0))
        'waiting for quota, 4,120 of 10,000 answered, about 12 min'
        >>> str(QuotaWait(0, 10, None))
        'waiting for quota, 0 of 10 answered'
        """
        text = f"waiting for quota, {self.answered:,} of {self.known:,} answered"
        if self.seconds is None:
            return text
        minutes, hours = self.seconds / 60, self.seconds / 3_600
        about = f"{self.seconds:.0f} s" if minutes < 2 else f"{minutes:.0f} min"  # noqa: PLR2004 - as people say
        return f"{text}, about {about if hours < 2 else f'{hours:.1f} h'}"  # noqa: PLR2004 - likewise


class Method(Protocol):
    """What can be asked: an access method of a table, or a function."""

    def shared(self, job: str, random: Random, now: Callable[[], float]) -> SharedMethod[Any]:
        """Return what answers for one job."""
        ...


class SharedMethod(Generic[Wanted]):
    """Asks for keys, each once, however many ask, and keeps the answers.

    For one event loop. As many calls as the limits say are on their way as long as keys for them
    wait; a call takes as many as its way accepts, or, where no more come, as there are
    (:class:`~eddyline.asking.filling.Filling`).

    Ways compete for the waiting keys: a way with a call to spare takes the next, so the one that
    answers sooner gets more, and no key is asked for twice because of that. One that stalls loses
    its keys to another that has nothing else to do, and one that fails for a key leaves it to the
    others (Raman, Deshpande and Hellerstein, 2003, Section 4.3; there tuples compete, here keys,
    since many tasks ask for the same).
    """

    def __init__(
        self,
        ways: Sequence[WayToAnswers[Wanted]],
        now: Callable[[], float],
        *,
        identity: Callable[[Key], Wanted],
        gathers: bool = True,
        kept: Callable[[Sequence[Wanted]], Sequence[Found | None]] | None = None,
        order: Callable[[Wanted], str] | None = None,
    ) -> None:
        """Keys of one ``identity`` are the same; those that are ``kept`` are not asked for.

        Keys that come together are asked for in an ``order``, if there is one.
        Without ``gathers`` a call takes what is there, even if somebody may bring more.
        """
        self._ways = tuple(ways)
        self._alone = len(self._ways) == 1
        for way in self._ways:
            way.gate.lends = not self._alone
        self._identity = identity
        self._gathers = gathers
        self._filling = Filling(now)
        self._reminder: asyncio.TimerHandle | None = None
        self._now = now
        self._asked = AskedOnce[Wanted]()
        self._kept = kept
        self._order = order
        self._known = 0  # keys that were kept
        # Where a key has failed, if it has.
        self._tried: dict[Wanted, set[WayToAnswers[Wanted]]] = {}
        self._calls = 0

    def statistics(self) -> SharedLookupStatistics:
        """Return what was asked so far."""
        ways = self._ways
        return SharedLookupStatistics(
            self._asked.count - self._known,
            self._calls,
            sum(way.gate.requests for way in ways),
            sum(way.tries for way in ways),
            sum(way.failures for way in ways),
            max(way.gate.most for way in ways),
            tuple((way.label, way.keys) for way in ways),
            sum(way.unmatched for way in ways),
            self._known,
            sum(way.refusals for way in ways),
            sum(way.gate.waited for way in ways),
            tuple(wait for way in ways for wait in way.gate.waits),
        )

    def quota_wait(self) -> QuotaWait | None:
        """Tell what waits, if that is because the quota of every way is spent."""
        if not all(way.gate.governor.opens is not None for way in self._ways):
            return None
        known = self._asked.known
        left = known - self._asked.done
        if not left:
            return None
        quotas = [way.gate.governor.statistics() for way in self._ways]
        rate = sum(quota.limit / quota.seconds for quota in quotas if quota.limit and quota.seconds)
        calls = left / max(way.keys_per_call for way in self._ways)
        return QuotaWait(self._asked.done, known, calls / rate if rate else None)

    def rows(self, keys: Sequence[Key], *, exact: bool = False) -> list[asyncio.Future[Found]]:  # noqa: ARG002 - not every key has another spelling
        """Return for each key its answer to come, or the failure; from the event loop only.

        Where it is to be ``exact``, without rows that have the key in another spelling.
        """
        if not self._asked.waiting:
            self._filling.begin()
        before = len(self._asked.waiting)
        answers = self._asked.answers(map(self._identity, keys))
        if self._kept is not None:
            self._answer_from(self._kept, before)
        if self._order is not None:
            waiting = self._asked.waiting
            new = [waiting.pop() for _ in range(len(waiting) - before)]
            new.reverse()
            waiting.extend(sorted(new, key=self._order))
        self._let_work()
        return answers

    def _answer_from(
        self, kept: Callable[[Sequence[Wanted]], Sequence[Found | None]], before: int
    ) -> None:
        """Give their answers to those of the waiting keys, after so many, that have one."""
        waiting = self._asked.waiting
        new = list(waiting)[before:]
        answers = kept(new)
        for _ in new:
            waiting.pop()
        for key, found in zip(new, answers, strict=True):
            if found is None:
                waiting.append(key)
            else:
                self._known += 1
                self._asked.answer(key, found)

    def give_up(self, keys: Sequence[Key]) -> None:
        """Forget keys that still wait to be asked for and whose answers nobody wants."""
        self._asked.give_up(map(self._identity, keys))

    def expect_of(self, tasks: int, beginning: int = 0) -> None:
        """Know how many tasks may ask for more before they only wait for answers.

        So many are ``beginning``: they may ask for the first time.
        """
        if self._gathers:
            self._filling.expect(tasks, beginning)
            self._let_work()

    async def close(self) -> None:
        """Ask no more; keep the answers, and open the sources again if they are asked again."""
        if self._reminder is not None:
            self._reminder.cancel()
            self._reminder = None
        await self._asked.close()
        for way in self._ways:
            await way.close()

    def _let_work(self) -> None:
        """Begin as many calls as waiting keys and limits allow, by the mirrors in turn."""
        starting = [
            (number, way)
            for way in self._ways
            for number in range(
                self._asked.workers_missing(way.gate.width, way, self._calls_for(way))
            )
        ]
        if len(self._ways) > 1:
            starting.sort(key=lambda one: one[0])
        for _, way in starting:
            self._asked.start(self._work(way), way)
        self._remind()

    def _calls_for(self, way: WayToAnswers[Wanted]) -> int:
        """Return how many calls the waiting keys are enough for."""
        full, rest = divmod(len(self._asked.waiting), way.keys_per_call)
        return full + (rest > 0 and not self._patience_for_more(way))

    def _patience_for_more(self, way: WayToAnswers[Wanted]) -> float:
        """Return the seconds for which a call that is not full waits for more keys."""
        under_way = any(any_way.under_way for any_way in self._ways)
        return self._filling.patience(under_way=under_way, usual_seconds=way.usual_seconds)

    def _remind(self) -> None:
        """Come back to keys that wait for more, when they have waited long enough."""
        if self._reminder is not None or not self._asked.waiting:
            return
        patience = min(map(self._patience_for_more, self._ways))
        if patience:
            loop = asyncio.get_running_loop()
            self._reminder = loop.call_later(patience, self._reminded)

    def _reminded(self) -> None:
        self._reminder = None
        self._let_work()

    async def _work(self, way: WayToAnswers[Wanted]) -> None:
        """Make calls as long as there is a key for this way."""
        while True:
            if way.gate.lends:
                await way.gate.open()
            keys = self._next(way)
            if keys and self._kept is not None:
                keys = self._not_kept(self._kept, keys)
                if not keys:
                    continue
            if keys:
                await self._call(way, keys)
                continue
            self._remind()
            patience = self._patience(way)
            if patience is None or way.lurking:
                return
            way.lurking = True
            try:
                await asyncio.sleep(patience)
            finally:
                way.lurking = False

    def _not_kept(
        self, kept: Callable[[Sequence[Wanted]], Sequence[Found | None]], keys: list[Wanted]
    ) -> list[Wanted]:
        """Answer keys that were answered elsewhere since they came; return the others.

        Another application may have asked for them, which uses the same ledger.
        """
        left = []
        for key, found in zip(keys, kept(keys), strict=True):
            if found is None:
                left.append(key)
            else:
                self._known += 1
                self._asked.answer(key, found)
        return left

    def _next(self, way: WayToAnswers[Wanted]) -> list[Wanted]:
        """Take keys that this way can be asked for: waiting ones, else overdue ones."""
        keys: list[Wanted] = []
        passed: list[Wanted] = []
        waiting = self._asked.waiting
        while waiting and len(keys) < way.keys_per_call:
            key = waiting.popleft()
            (passed if way in self._tried.get(key, ()) else keys).append(key)
        if self._wait_for_more(way, keys):
            waiting.extendleft(reversed(keys))
            keys.clear()
        waiting.extendleft(reversed(passed))
        if keys:
            self._filling.begin()  # for those that are left
        if keys or self._alone:
            return keys
        now = self._now()
        for other in self._ways:
            if other is way:
                continue
            for key, began in other.under_way.items():
                if len(keys) == way.keys_per_call:
                    break
                if now - began >= self._limit(way, other) and self._may_take(way, key):
                    keys.append(key)
        return keys

    def _wait_for_more(self, way: WayToAnswers[Wanted], keys: Sequence[Wanted]) -> bool:
        """Tell whether keys wait for more; where they do not, the call leaves with these."""
        if not 0 < len(keys) < way.keys_per_call:
            return False
        if self._patience_for_more(way):
            return True
        self._filling.leave()
        return False

    def _may_take(self, way: WayToAnswers[Wanted], key: Wanted) -> bool:
        """Tell whether a key that is under way elsewhere may be asked for here as well."""
        return (
            key not in way.under_way
            and way not in self._tried.get(key, ())
            and not self._asked.answered(key)
        )

    def _limit(self, way: WayToAnswers[Wanted], other: WayToAnswers[Wanted]) -> float:
        """Return the seconds after which a call elsewhere is overdue: several usual ones."""
        return OVERDUE * max(way.usual_seconds, other.usual_seconds, SOON)

    def _patience(self, way: WayToAnswers[Wanted]) -> float | None:
        """Return the seconds until a key elsewhere may be overdue; None where there is none."""
        now = self._now()
        waits = [
            max(self._limit(way, other) - (now - began), 0.0) + SOON / 10
            for other in self._ways
            if other is not way
            for key, began in other.under_way.items()
            if self._may_take(way, key)
        ]
        return min(waits, default=None)

    async def _call(self, way: WayToAnswers[Wanted], keys: list[Wanted]) -> None:
        self._calls += 1
        began = way.begin(keys)
        try:
            async with aclosing(way.ask(keys, final=self._alone)) as answers:
                async for answer in answers:
                    self._give(way, answer, began)
                    began = self._now()
        except QuotaRefusedError:
            self._leave(way, keys)
        except Exception as error:  # noqa: BLE001 - it is raised where the key was asked for
            self._fail(way, keys, way.failed(keys, described_error(error)))
        finally:
            way.end(keys)

    def _leave(self, way: WayToAnswers[Wanted], keys: Sequence[Wanted]) -> None:
        """Have others asked for keys for which a way has no quota left; it may be asked later."""
        way.end(keys)
        under_way = {key for other in self._ways for key in other.under_way}
        left = [key for key in keys if not self._asked.answered(key) and key not in under_way]
        self._asked.waiting.extendleft(reversed(left))
        self._calls -= 1
        self._let_work()

    def _give(self, way: WayToAnswers[Wanted], answer: WayAnswer[Wanted], began: float) -> None:
        """Give everybody what keys have, or the failure."""
        keys, outcome = answer
        if isinstance(outcome, Exception):
            self._fail(way, keys, outcome)
            return
        seconds = self._now() - began
        way.took(seconds)
        for key, result in zip(keys, outcome, strict=True):
            self._asked.answer(key, result._replace(seconds=seconds / len(keys)))

    def _fail(self, way: WayToAnswers[Wanted], keys: Sequence[Wanted], error: Exception) -> None:
        """Leave keys to the sources that have not been asked yet; where all were, they fail."""
        for key in keys:
            if self._asked.answered(key):  # another has been sooner
                continue
            tried = self._tried.setdefault(key, set())
            tried.add(way)
            if len(tried) < len(self._ways):
                # A way that has it under way already will answer.
                if not any(other is not way and key in other.under_way for other in self._ways):
                    self._asked.waiting.append(key)
                continue
            outcome = error if self._alone else way.settled([key], error)
            if isinstance(outcome, Exception):
                self._asked.fail(key, outcome)
            else:
                self._asked.answer(key, outcome[0])
        if self._asked.waiting:
            self._let_work()
