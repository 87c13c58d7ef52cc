"""Whether a table's rows are asked for key by key, or all of them scanned: decided while it runs.

Asking costs a little for each key, a scan much once: the ski-rental problem (Karlin, Manasse,
Rudolph and Sleator, 1988). Who asks until that has cost as much as the scan, and scans then, pays
at most twice what the better way costs. With a forecast one can do better (Purohit, Svitkina and
Kumar, 2018): here the keys that are left are known, as tasks tell how many they have, and the pace
is measured. So the scan begins as soon as asking is expected not to end before it has cost as much,
and that is seen early where there are many keys. What of the pace is uncertain counts for asking.

The hybrid of index join and hash join in Raman, Deshpande and Hellerstein (2003, Section 4.5)
makes the same choice tuple by tuple, with the scan under way; this one is for a scan that has not
begun, and never begins where it is not worth it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from eddyline.asking.competing_ways import CompetingWays, WayAhead

WARM: Final = 0.02
"""Part of the scan's time in which nothing is forecast: the first calls open connections."""

EARLY: Final = 0.05
"""Part of the scan's time in which little is lost by it."""

NEARLY: Final = 0.92
"""Part of the scan's time from which on asking counts as no shorter, as long as it is early.

If the two are close it matters little which it is, but that it does not change its mind: who asks,
and has to scan in the end, pays for both. 1.05 / 0.92 is 1.14.
"""

TELLING: Final = 0.1
"""Part of the scan's time after which calls tell the pace though few of them have ended."""

SAMPLES: Final = 512
"""Moments that are remembered, to know the pace of late."""

WHOLE: Final = 10.0
"""Seconds from which on people read them as a whole number."""

_ByStage: TypeAlias = "defaultdict[int, dict[int, int]]"
"""Keys by stage and partition."""


def in_seconds(seconds: float) -> str:
    """Return seconds as people read them.

    >>> in_seconds(1_000), in_seconds(3.14), in_seconds(0.0213)
    ('1,000 s', '3.1 s', '0.021 s')
    """
    return f"{seconds:,.0f} s" if seconds >= WHOLE else f"{seconds:.2g} s"


@dataclass(frozen=True, slots=True)
class AskingProgress:
    """How far asking by one way is: keys ``done`` of those that are ``known`` so far, and its pace.

    ``calls`` have ended, ``width`` may be under way at a time, each for ``keys_per_call`` keys at
    the most. ``seconds_a_key`` is what a key takes by what calls take at present, with as many as
    may be under way; 0 before the first.
    """

    done: int
    known: int
    calls: int
    width: int
    seconds_a_key: float = 0.0
    keys_per_call: int = 1


@dataclass(slots=True)
class WayAsked:
    """The keys of one way, and the pace at which it answers."""

    seconds_a_key: float = 0.0
    """What a key took, by the last look."""
    _announced: defaultdict[int, _ByStage] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(dict))
    )
    _past: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=SAMPLES))

    def announce(self, use: int, stage: int, partition: int, keys: int) -> None:
        """Know how many keys a task has."""
        self._announced[use][stage][partition] = keys

    @property
    def announced(self) -> int:
        """Keys that tasks have told of."""
        return sum(
            max(sum(keys.values()) for keys in stages.values())
            for stages in self._announced.values()
        )

    def left(self, progress: AskingProgress) -> int:
        """Return how many keys have no answer."""
        return max(self.announced, progress.known) - progress.done

    def learn(self, now: float, spent: float, progress: AskingProgress) -> None:
        """Learn the seconds a key by calls, or by what came of late where that is less.

        Of late is in the second half of the time; calls may have been few and long.
        """
        past = self._past
        past.append((now, progress.done))
        while len(past) > 1 and past[1][0] <= now - spent / 2:
            past.popleft()
        then, done = past[0]
        self.seconds_a_key = progress.seconds_a_key
        if progress.done > done:
            of_late = (now - then) / (progress.done - done)
            self.seconds_a_key = min(of_late, progress.seconds_a_key)


@dataclass(slots=True)
class ScanChoice:
    """The choice for one table in one job; ``now`` tells seconds.

    ``scan_seconds`` is what a scan is expected to take. Once it is chosen it stays so. Where there
    are several ``ways`` to the rows, it is compared with the one that leads among them
    (:mod:`eddyline.asking.competing_ways`).

    >>> clock = iter([0.0, 0.5])
    >>> choice = ScanChoice(10.0, lambda: next(clock))
    >>> choice.announce(0, 0, 0, 2_000)
    >>> choice.look(AskingProgress(0, 16, 0, 4))
    False
    >>> choice.look(AskingProgress(10, 64, 10, 4, 0.05))
    True
    >>> choice.why
    'the keys would take 100 s'
    """

    scan_seconds: float
    now: Callable[[], float]
    ways: int = 1
    why: str = ""
    """Why the scan is chosen; empty as long as it is not."""
    spent: float = 0.0
    """Seconds from the first key to the last look at which any was open."""
    race: CompetingWays = field(init=False)
    _asked: list[WayAsked] = field(init=False)
    _began: float | None = None

    def __post_init__(self) -> None:
        """Know nothing of any way."""
        self.race = CompetingWays(self.ways)
        self._asked = [WayAsked() for _ in range(self.ways)]

    def announce(self, use: int, stage: int, partition: int, *keys: int) -> None:
        """Know how many keys a task has for each way, for one of the places of the table.

        They are distinct ones, which no other task of the stage has. Spark may run another stage
        for the same place.
        """
        for way, count in zip(self._asked, keys, strict=True):
            way.announce(use, stage, partition, count)

    @property
    def text(self) -> str:
        """What was chosen, and why, for people; empty as long as nothing was asked."""
        scan = f"a scan takes {in_seconds(self.scan_seconds)}"
        if self.why:
            return f"scanned: {self.why}; {scan}"
        return "" if self._began is None else f"looked up: in {in_seconds(self.spent)}; {scan}"

    def fail(self, why: str, way: int = 0) -> None:
        """Ask by a way no more, since asking has failed; if no other is left, have it scanned."""
        if self.race.give_up(way):
            self.why = self.why or why

    def look(self, *progress: AskingProgress) -> bool:
        """Tell whether the table is to be scanned, by how far each way is."""
        if self.why:
            return True
        now = self.now()
        if self._began is None:
            self._began = now
        left = [way.left(far) for way, far in zip(self._asked, progress, strict=True)]
        if min(left) <= 0 <= self.race.leader:  # by one way all have answers
            return False
        self.spent = now - self._began
        ahead = []
        for way, far, open_ in zip(self._asked, progress, left, strict=True):
            way.learn(now, self.spent, far)
            seconds = open_ * way.seconds_a_key if far.calls >= 2 * far.width else None
            ahead.append(WayAhead(open_, far.width * far.keys_per_call, seconds))
        self.race.look(now, ahead)
        leader = self.race.leader
        self._weigh(
            left[leader], left[leader] * self._asked[leader].seconds_a_key, progress[leader]
        )
        return bool(self.why)

    def _weigh(self, left: int, seconds: float, progress: AskingProgress) -> None:
        """Choose the scan where ``seconds`` more of asking cost more, ``left`` being the keys."""
        in_all = self.spent + seconds
        nearly = NEARLY if self.spent <= EARLY * self.scan_seconds else 1.0
        if self.spent >= self.scan_seconds:
            self.why = f"{left:,} keys were left after as long as a scan takes"
        elif self._tells(progress) and in_all > nearly * self.scan_seconds:
            self.why = f"the keys would take {in_seconds(in_all)}"

    def _tells(self, progress: AskingProgress) -> bool:
        """Whether the pace is more than that of first calls, and of the first way."""
        if not progress.calls or self.spent < WARM * self.scan_seconds:
            return False
        # Whoever asks has been answered twice, by all ways.
        again = progress.calls >= 2 * progress.width and self.race.decided
        return again or self.spent >= TELLING * self.scan_seconds
