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

Calls and the scan may cost money as well. Where the query says how many seconds a unit of it is
worth, both are added up in seconds; what the calls that are left cost is known before the first.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from eddyline.asking.competing_ways import CompetingWays, WayAhead

WARM: Final = 0.02
"""Part of the scan's cost in which nothing is forecast: the first calls open connections."""

EARLY: Final = 0.05
"""Part of the scan's cost in which little is lost by it."""

NEARLY: Final = 0.92
"""Part of the scan's cost from which on asking counts as no shorter, as long as it is early.

If the two are close it matters little which it is, but that it does not change its mind: who asks,
and has to scan in the end, pays for both. 1.05 / 0.92 is 1.14.
"""

TELLING: Final = 0.1
"""Part of the scan's cost after which calls tell the pace though few of them have ended."""

SAMPLES: Final = 512
"""Moments that are remembered, to know the pace of late."""

WHOLE: Final = 10.0
"""Seconds from which on people read them as a whole number."""

_ByStage: TypeAlias = "defaultdict[int, dict[int, int]]"
"""Keys by stage and partition."""


def in_seconds(seconds: float, money: float = 0.0) -> str:
    """Return seconds as people read them, and those that money is worth.

    >>> in_seconds(1_000), in_seconds(3.14), in_seconds(0.0213)
    ('1,000 s', '3.1 s', '0.021 s')
    >>> in_seconds(3.0, 12.0)
    '3 s and money worth 12 s'
    """
    if money:
        return f"{in_seconds(seconds)} and money worth {in_seconds(money)}"
    return f"{seconds:,.0f} s" if seconds >= WHOLE else f"{seconds:.2g} s"


@dataclass(frozen=True, slots=True)
class AskingProgress:
    """How far asking by one way is: keys ``done`` of those that are ``known`` so far, and its pace.

    ``calls`` have ended, ``width`` may be under way at a time, each for ``keys_per_call`` keys at
    the most. ``seconds_a_key`` is what a key takes by what calls take at present, with as many as
    may be under way; 0 before the first. So many calls have ``begun``.
    """

    done: int
    known: int
    calls: int
    width: int
    seconds_a_key: float = 0.0
    keys_per_call: int = 1
    begun: int = 0


@dataclass(slots=True)
class WayAsked:
    """The keys of one way, the pace at which it answers, and the money of a call, in seconds."""

    money: float = 0.0
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

    def ahead(self, progress: AskingProgress) -> WayAhead:
        """Return what it has before it; its pace is told when all that ask were answered twice."""
        left = self.left(progress)
        under_way = progress.begun - progress.calls
        calls = max(-(-left // progress.keys_per_call) - under_way, 0)
        told = progress.calls >= 2 * progress.width
        return WayAhead(
            left,
            progress.width * progress.keys_per_call,
            left * self.seconds_a_key if told else None,
            calls * self.money,
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

    ``scan_seconds`` is what a scan is expected to take. Once it is chosen it stays so. There is a
    number in ``money`` for each way to the rows: what a call costs, as the seconds that this is
    worth; ``scan_money`` is the same of the scan. Where there are several ways, the scan is
    compared with the one that leads among them (:mod:`eddyline.asking.competing_ways`).

    >>> clock = iter([0.0, 0.5])
    >>> choice = ScanChoice(10.0, lambda: next(clock))
    >>> choice.announce(0, 0, 0, 2_000)
    >>> choice.look(AskingProgress(0, 16, 0, 4))
    False
    >>> choice.look(AskingProgress(10, 64, 10, 4, 0.05))
    True
    >>> choice.why
    'the keys would take 100 s'
    >>> choice = ScanChoice(10.0, lambda: 0.0, money=(0.5,))
    >>> choice.announce(0, 0, 0, 2_000)
    >>> choice.look(AskingProgress(0, 16, 0, 4))
    True
    >>> choice.text
    'scanned: the keys would take money worth 1,000 s; a scan takes 10 s'
    """

    scan_seconds: float
    now: Callable[[], float]
    money: Sequence[float] = (0.0,)
    scan_money: float = 0.0
    why: str = ""
    """Why the scan is chosen; empty as long as it is not."""
    spent: float = 0.0
    """Seconds from the first key to the last look at which any was open."""
    paid: float = 0.0
    """What the calls by then have cost, as the seconds that this is worth."""
    race: CompetingWays = field(init=False)
    _asked: list[WayAsked] = field(init=False)
    _began: float | None = None

    def __post_init__(self) -> None:
        """Know nothing of any way."""
        self.race = CompetingWays(len(self.money))
        self._asked = [WayAsked(money) for money in self.money]

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
        scan = f"a scan takes {in_seconds(self.scan_seconds, self.scan_money)}"
        if self.why:
            return f"scanned: {self.why}; {scan}"
        taken = in_seconds(self.spent, self.paid)
        return "" if self._began is None else f"looked up: in {taken}; {scan}"

    def fail(self, why: str, way: int = 0) -> None:
        """Ask by a way no more, since asking has failed; if no other is left, have it scanned."""
        if self.race.give_up(way):
            self.why = self.why or why

    def pay(self, *progress: AskingProgress) -> None:
        """Add up what calls have cost, by how far each way is."""
        pairs = zip(self._asked, progress, strict=True)
        self.paid = sum(far.begun * way.money for way, far in pairs)

    def look(self, *progress: AskingProgress) -> bool:
        """Tell whether the table is to be scanned, by how far each way is."""
        if self.why:
            return True
        now = self.now()
        if self._began is None:
            self._began = now
        self.pay(*progress)
        pairs = list(zip(self._asked, progress, strict=True))
        # By one way all have answers.
        if min(way.left(far) for way, far in pairs) <= 0 <= self.race.leader:
            return False
        self.spent = now - self._began
        for way, far in pairs:
            way.learn(now, self.spent, far)
        ahead = [way.ahead(far) for way, far in pairs]
        self.race.look(now, ahead)
        self._weigh(ahead, progress[self.race.leader])
        return bool(self.why)

    def _weigh(self, ahead: Sequence[WayAhead], progress: AskingProgress) -> None:
        """Choose the scan where what the ways have before them costs more."""
        leads = ahead[self.race.leader]
        seconds = self.spent + leads.left * self._asked[self.race.leader].seconds_a_key
        money = self.paid + leads.money
        spent, scan = self.spent + self.paid, self.scan_seconds + self.scan_money
        nearly = NEARLY if spent <= EARLY * scan else 1.0
        if spent >= scan:
            as_scan = "as much as a scan costs" if self.paid else "as long as a scan takes"
            self.why = f"{leads.left:,} keys were left after {as_scan}"
        elif self.paid + min(way.money for way in ahead) > scan:
            self.why = f"the keys would take money worth {in_seconds(money)}"
        elif self._tells(progress, spent / scan) and seconds + money > nearly * scan:
            self.why = f"the keys would take {in_seconds(seconds, money)}"

    def _tells(self, progress: AskingProgress, part: float) -> bool:
        """Whether the pace is more than that of first calls, and of the first way.

        Asking has cost a ``part`` of the scan.
        """
        if not progress.calls or part < WARM:
            return False
        # Whoever asks has been answered twice, by all ways.
        again = progress.calls >= 2 * progress.width and self.race.decided
        return again or part >= TELLING
