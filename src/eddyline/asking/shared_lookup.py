"""One access method of a table, for everybody who asks: each distinct key is asked for once."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from random import Random
from typing import Final

from eddyline.asking.answered_keys import AnsweredKeys, answered_keys, why_unmatched
from eddyline.asking.asked_once import AskedOnce, Found
from eddyline.asking.asking import SourceAnswer
from eddyline.asking.filling import Filling
from eddyline.asking.limits import Limits
from eddyline.asking.lookup_source import Key, LookedUpTable, LookupSource
from eddyline.asking.mirror import Mirror
from eddyline.asking.no_answer import described_error
from eddyline.asking.source_rows import failed
from eddyline.errors import LookupFailedError

OVERDUE: Final = 4.0
"""How many times as long as usual a call must take before another source is asked as well."""

SOON: Final = 0.05
"""Seconds that no call is overdue for."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class AccessMethod:
    """An access method as it was registered: what is asked for which table, within which limits.

    ``mirrors`` give the same rows for the same keys, each within limits of its own.
    """

    table: LookedUpTable
    source: LookupSource
    limits: Limits
    mirrors: tuple[AccessMethod, ...] = ()

    @property
    def width(self) -> int:
        """Calls that may be on their way at a time, to whichever source."""
        return self.limits.max_in_flight + sum(mirror.width for mirror in self.mirrors)

    @property
    def keys_per_call(self) -> int:
        """Keys that a call takes, to whichever source takes most."""
        return max(self.source.keys_per_call, *(mirror.keys_per_call for mirror in self.mirrors), 1)

    def shared(self, job: str, random: Random, now: Callable[[], float]) -> SharedLookup:  # noqa: ARG002 - lookups keep no books
        """Return what asks for one job."""
        return SharedLookup(self, random, now)


@dataclass(frozen=True, slots=True)
class SharedLookupStatistics:
    """What was asked so far: distinct keys, calls for them, and the requests that these took.

    ``by_source`` are the keys that each source was asked for, in the order of registration,
    ``unmatched`` the rows that came with a key that their call had not asked for.
    """

    keys: int
    calls: int
    requests: int
    tries: int
    failures: int
    most_in_flight: int
    by_source: tuple[tuple[str, int], ...] = ()
    unmatched: int = 0

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
        )


class SharedLookup:
    """Asks for keys, each once, however many ask, and keeps the answers.

    For one event loop. As many calls as the limits say are on their way as long as keys for them
    wait; a call takes as many as the source does in one, or, where no more come, as there are
    (:class:`~eddyline.asking.filling.Filling`).

    Mirrors compete for the keys that wait: whichever has a call to spare takes the next, so the
    one that answers sooner gets more, and no key is asked for twice for that. One that stalls
    loses its keys to another that has nothing else to do, and one that fails for a key leaves it
    to the others (Raman, Deshpande and Hellerstein, 2003, Section 4.3; there tuples compete, here
    keys, since many tasks ask for the same).
    """

    def __init__(self, method: AccessMethod, random: Random, now: Callable[[], float]) -> None:
        """Get ready; a source is opened with the first key that it gets."""
        self._table = method.table
        methods = (method, *method.mirrors)
        self._mirrors = tuple(
            Mirror(each.table, each.source, each.limits, random, now) for each in methods
        )
        self._alone = not method.mirrors
        self._singly = method.keys_per_call == 1
        self._filling = Filling(now)
        self._reminder: asyncio.TimerHandle | None = None
        self._now = now
        self._asked = AskedOnce[Key]()
        self._tried: dict[Key, set[Mirror]] = {}  # where a key has failed, if it has
        self._calls = 0
        self._unmatched = 0  # rows
        self._refused: set[Key] = set()  # whose rows are spelled otherwise

    def statistics(self) -> SharedLookupStatistics:
        """Return what was asked so far."""
        mirrors = self._mirrors
        return SharedLookupStatistics(
            self._asked.count,
            self._calls,
            sum(each.gate.requests for each in mirrors),
            sum(each.tries for each in mirrors),
            sum(each.failures for each in mirrors),
            max(each.gate.most for each in mirrors),
            tuple((each.label, each.keys) for each in mirrors),
            self._unmatched,
        )

    def rows(self, keys: Sequence[Key], *, exact: bool = False) -> list[asyncio.Future[Found]]:
        """Return for each key its rows to come, or the failure; from the event loop only.

        Where they are to be ``exact``, none of rows that have the key in another spelling.
        """
        asked = [tuple(map(_canonical, key)) for key in keys]
        if not self._asked.waiting:
            self._filling.begin()
        found = self._asked.answers(asked)
        self._let_work()
        if exact:
            return [self._exactly(key, each) for key, each in zip(asked, found, strict=True)]
        return found

    def give_up(self, keys: Sequence[Key]) -> None:
        """Forget keys that wait still to be asked for, of which nobody wants the answers."""
        self._asked.give_up(tuple(map(_canonical, key)) for key in keys)

    def expect_of(self, tasks: int, beginning: int = 0) -> None:
        """Know how many tasks may ask for more before they wait for answers alone.

        So many are ``beginning``: they may ask for the first time.
        """
        self._filling.expect(tasks, beginning)
        self._let_work()

    async def close(self) -> None:
        """Ask no more; keep the answers, and open the sources again if they are asked again."""
        if self._reminder is not None:
            self._reminder.cancel()
            self._reminder = None
        await self._asked.close()
        for mirror in self._mirrors:
            await mirror.close()

    def _let_work(self) -> None:
        """Begin as many calls as there are keys waiting for, and allowed; of mirrors in turn."""
        starting = [
            (number, mirror)
            for mirror in self._mirrors
            for number in range(
                self._asked.workers_missing(mirror.gate.width, mirror, self._calls_for(mirror))
            )
        ]
        if len(self._mirrors) > 1:
            starting.sort(key=lambda one: one[0])
        for _, mirror in starting:
            self._asked.start(self._work(mirror), mirror)
        self._remind()

    def _calls_for(self, mirror: Mirror) -> int:
        """Return how many calls the keys that wait are enough for."""
        full, rest = divmod(len(self._asked.waiting), mirror.keys_per_call)
        return full + (rest > 0 and not self._patience_for_more(mirror))

    def _patience_for_more(self, mirror: Mirror) -> float:
        """Return the seconds for which a call that is not full waits for more keys."""
        under_way = any(each.under_way for each in self._mirrors)
        return self._filling.patience(under_way=under_way, usual_seconds=mirror.usual_seconds)

    def _remind(self) -> None:
        """Come back to keys that wait for more, when they have waited long enough."""
        if self._reminder is not None or not self._asked.waiting:
            return
        patience = min(map(self._patience_for_more, self._mirrors))
        if patience:
            loop = asyncio.get_running_loop()
            self._reminder = loop.call_later(patience, self._reminded)

    def _reminded(self) -> None:
        self._reminder = None
        self._let_work()

    async def _work(self, mirror: Mirror) -> None:
        """Make calls as long as there is a key for this mirror."""
        while True:
            keys = self._next(mirror)
            if keys:
                await self._call(mirror, keys)
                continue
            self._remind()
            patience = self._patience(mirror)
            if patience is None or mirror.lurking:
                return
            mirror.lurking = True
            try:
                await asyncio.sleep(patience)
            finally:
                mirror.lurking = False

    def _next(self, mirror: Mirror) -> list[Key]:
        """Take keys that this mirror can be asked for: waiting ones, else overdue ones."""
        keys: list[Key] = []
        passed: list[Key] = []
        waiting = self._asked.waiting
        while waiting and len(keys) < mirror.keys_per_call:
            key = waiting.popleft()
            (passed if mirror in self._tried.get(key, ()) else keys).append(key)
        if self._wait_for_more(mirror, keys):
            waiting.extendleft(reversed(keys))
            keys.clear()
        waiting.extendleft(reversed(passed))
        if keys:
            self._filling.begin()  # for those that are left
        if keys or self._alone:
            return keys
        now = self._now()
        for other in self._mirrors:
            if other is mirror:
                continue
            for key, began in other.under_way.items():
                if len(keys) == mirror.keys_per_call:
                    break
                if now - began >= self._limit(mirror, other) and self._may_take(mirror, key):
                    keys.append(key)
        return keys

    def _wait_for_more(self, mirror: Mirror, keys: Sequence[Key]) -> bool:
        """Tell whether keys wait for more; where they do not, the call leaves with these."""
        if not 0 < len(keys) < mirror.keys_per_call:
            return False
        if self._patience_for_more(mirror):
            return True
        self._filling.leave()
        return False

    def _may_take(self, mirror: Mirror, key: Key) -> bool:
        """Tell whether a key that is under way elsewhere may be asked for here as well."""
        return (
            key not in mirror.under_way
            and mirror not in self._tried.get(key, ())
            and not self._asked.answered(key)
        )

    def _limit(self, mirror: Mirror, other: Mirror) -> float:
        """Return the seconds after which a call elsewhere is overdue: several usual ones."""
        return OVERDUE * max(mirror.usual_seconds, other.usual_seconds, SOON)

    def _patience(self, mirror: Mirror) -> float | None:
        """Return the seconds until a key elsewhere may be overdue; None where there is none."""
        now = self._now()
        waits = [
            max(self._limit(mirror, other) - (now - began), 0.0) + SOON / 10
            for other in self._mirrors
            if other is not mirror
            for key, began in other.under_way.items()
            if self._may_take(mirror, key)
        ]
        return min(waits, default=None)

    async def _call(self, mirror: Mirror, keys: list[Key]) -> None:
        self._calls += 1
        began = mirror.begin(keys)
        final = self._alone
        try:
            async with aclosing(mirror.opened().ask(keys, final=final)) as answers:
                async for answer in answers:
                    self._give(mirror, answer, began)
                    began = self._now()
        except Exception as error:  # noqa: BLE001 - it is raised where the key was asked for
            why = described_error(error)
            self._fail(mirror, keys, failed(self._table, mirror.label, keys, why))
        finally:
            mirror.end(keys)

    def _give(self, mirror: Mirror, answer: SourceAnswer, began: float) -> None:
        """Give everybody the rows of keys, or the failure."""
        keys, rows = answer
        if isinstance(rows, LookupFailedError):
            self._fail(mirror, keys, rows)
            return
        answered = answered_keys(self._table, rows, keys, singly=self._singly)
        if answered.unmatched.num_rows:
            self._note_unmatched(mirror, answered, keys)
        if answered.nothing_matches and not self._singly:
            why = why_unmatched(self._table, answered.unmatched, none=True, singly=self._singly)
            self._give(mirror, mirror.opened().without(keys, why, final=self._alone), began)
            return
        seconds = self._now() - began
        mirror.took(seconds)
        for key, found in zip(keys, answered.rows, strict=True):
            self._asked.answer(key, Found(found, seconds / len(keys), answered.respelled))

    def _note_unmatched(self, mirror: Mirror, answered: AnsweredKeys, keys: Sequence[Key]) -> None:
        """Count the rows of an answer that belong to none of its keys, and warn of the first."""
        if not self._unmatched and (self._singly or not answered.nothing_matches):
            why = why_unmatched(self._table, answered.unmatched, none=False, singly=self._singly)
            _log.warning("%s", failed(self._table, mirror.label, keys, why))
        self._unmatched += answered.unmatched.num_rows

    def _exactly(self, key: Key, answer: asyncio.Future[Found]) -> asyncio.Future[Found]:
        """Return an answer without rows that are spelled otherwise.

        Where another way leads to the same rows, who looks them up by that one would not find them
        by this key: so that the answer is the same by any, none does.
        """
        exact: asyncio.Future[Found] = asyncio.get_running_loop().create_future()

        def settle(done: asyncio.Future[Found]) -> None:
            if exact.cancelled():
                return
            if done.cancelled():
                exact.cancel()
            elif (error := done.exception()) is not None:
                exact.set_exception(error)
                exact.exception()  # nobody may ask for it any more
            else:
                exact.set_result(self._refuse(key, done.result()))

        if answer.done():
            settle(answer)
        else:
            answer.add_done_callback(settle)
        return exact

    def _refuse(self, key: Key, found: Found) -> Found:
        if not found.respelled:
            return found
        if key not in self._refused:
            if not self._unmatched:
                why = why_unmatched(self._table, found.rows, none=False, singly=True)
                _log.warning("%s", failed(self._table, self._table.name, [key], why))
            self._refused.add(key)
            self._unmatched += found.rows.num_rows
        return Found(found.rows.slice(0, 0), found.seconds)

    def _fail(self, mirror: Mirror, keys: Sequence[Key], error: LookupFailedError) -> None:
        """Leave keys to the sources that have not been asked yet; where all were, they fail."""
        for key in keys:
            if self._asked.answered(key):  # another has been sooner
                continue
            tried = self._tried.setdefault(key, set())
            tried.add(mirror)
            if len(tried) < len(self._mirrors):
                # Whoever has it under way already will answer.
                if not any(each is not mirror and key in each.under_way for each in self._mirrors):
                    self._asked.waiting.append(key)
                continue
            several = len(self._mirrors) > 1
            rows = mirror.opened().settled([key], error) if several else error
            if isinstance(rows, LookupFailedError):
                self._asked.fail(key, rows)
            else:
                self._asked.answer(key, Found(rows, 0.0))
        if self._asked.waiting:
            self._let_work()


def _canonical(value: object) -> object:
    """Return the one NaN for any, which is then found again."""
    return math.nan if isinstance(value, float) and math.isnan(value) else value
