"""What answers for all tasks of a job: keys that are asked for once, by ways that compete.

What the lookups of a table and the calls of a function have in common: a function is an index
access method with its arguments as bind fields, and what it returns as the one row for them
(Raman, Deshpande and Hellerstein, 2003, Section 2.1.3).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from random import Random
from typing import Any, Final, Generic, Protocol

from eddyline.asking.asked_once import AskedOnce
from eddyline.asking.filling import Filling
from eddyline.asking.lookup_source import Key, described_error
from eddyline.asking.refusals import QuotaRefusedError
from eddyline.asking.scan_choice import AskingProgress
from eddyline.asking.shared_statistics import QuotaWait, SharedLookupStatistics
from eddyline.asking.way_to_answers import Found, Wanted, WayAnswer, WayToAnswers

OVERDUE: Final = 4.0
"""How many times as long as usual a call must take before another way is asked as well."""

SOON: Final = 0.05
"""Seconds that no call is overdue for."""


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
        self._answered = 0

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

    def progress(self) -> AskingProgress:
        """Return how far asking is; from the event loop only."""
        ways = self._ways
        paces = (
            way.gate.width * way.keys_per_call / way.usual_seconds
            for way in ways
            if way.usual_seconds
        )
        keys_a_second = sum(paces)
        return AskingProgress(
            self._asked.done,
            self._asked.known,
            self._answered,
            sum(way.gate.width for way in ways),
            1.0 / keys_a_second if keys_a_second else 0.0,
            max(way.keys_per_call for way in ways),
            self._calls,
        )

    @property
    def waiting(self) -> int:
        """Keys that wait to be asked for; from the event loop only."""
        return len(self._asked.waiting)

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
        self._answered += 1
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
