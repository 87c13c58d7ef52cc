"""Which of several ways to a table is asked for the keys of a query: the one that is through first.

A query may have values for several ways to the same rows, each by other columns: any of them alone
brings all that the query needs. They compete by what they return in a second (Raman, Deshpande and
Hellerstein, 2003, Section 4.1): the way whose keys are expected to be answered first leads, and is
asked. Nobody knows the pace of a way that was not asked. So another one is tried beside the leader,
with two calls for each that may be under way, where it may save much more than that costs.

Where calls cost money, and somebody has said how many seconds that is worth, each way has as many
more before it. These are known beforehand, unlike its pace.

In `watch`, and where no scan competes, tuples choose among ways one by one, by the eddy's policy
(:mod:`eddyline.engine.policies.benefit`); here all keys are known beforehand, as a number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

WORTH_TRYING: Final = 20.0
"""Rounds of calls that the leader must have left for another way to be tried, which takes two.

With fewer nobody waits for long, and a way that is not needed gets no requests at all.
"""

STALLED: Final = 1.0
"""Seconds without news of the leader's pace after which another way is tried in any case."""

OVERTAKES: Final = 0.8
"""Part of the time that the leader has left which another way must need for it to take over."""

USUAL: Final = 0.1
"""Seconds that a call is taken to need before any has ended, where money has to be compared."""

TRIAL: Final = 0.1
"""Part of what the leader has left that the calls which try another way may cost in money."""


@dataclass(frozen=True, slots=True)
class WayAhead:
    """What one way has before it: keys ``left``, of which a round of calls takes ``per_round``.

    ``seconds`` is what they are expected to take, None where the pace is not known, and ``money``
    what they will cost besides, as the seconds that this is worth.
    """

    left: int
    per_round: int
    seconds: float | None = None
    money: float = 0.0

    @property
    def cost(self) -> float | None:
        """Seconds and money together, None where the pace is not known."""
        return None if self.seconds is None else self.seconds + self.money

    @property
    def guessed(self) -> float:
        """The same before any call has ended."""
        return self.rounds * USUAL + self.money

    @property
    def trial(self) -> float:
        """The money of two rounds of calls, as long as there are so many."""
        return self.money * min(2 / self.rounds, 1.0) if self.rounds else 0.0

    @property
    def rounds(self) -> float:
        """Rounds of calls that are left."""
        return self.left / self.per_round


class CompetingWays:
    """The race between ways.

    >>> race = CompetingWays(2)
    >>> race.look(0.0, [WayAhead(900, 1), WayAhead(90, 1)])
    >>> race.leader, sorted(race.asked)
    (1, [0, 1])
    >>> race.look(0.2, [WayAhead(890, 1, 0.9), WayAhead(86, 1, 8.6)])
    >>> race.leader, sorted(race.asked)
    (0, [0])
    """

    def __init__(self, ways: int) -> None:
        """So many ways; none is asked before the first look."""
        self.leader = -1
        """The way that is asked, -1 before the first look."""
        self._in_race = set(range(ways))
        self._tried: set[int] = set()
        self._may_pay = set(self._in_race)
        self._trial: int | None = None
        self._led_since = 0.0

    @property
    def asked(self) -> frozenset[int]:
        """The ways that are asked now."""
        ways = (self.leader, self._trial)
        return frozenset(way for way in ways if way is not None and way >= 0)

    @property
    def decided(self) -> bool:
        """Whether all ways were tried that are in the race and may be the better ones."""
        return self._trial is None and self._in_race & self._may_pay <= self._tried

    def give_up(self, way: int) -> bool:
        """Leave a way out of the race; tell whether none is left in it."""
        self._in_race.discard(way)
        self._trial = None if self._trial == way else self._trial
        if self.leader == way:
            self.leader, self._trial = (-1 if self._trial is None else self._trial), None
        return not self._in_race

    def look(self, now: float, ahead: Sequence[WayAhead]) -> None:
        """Decide which ways are asked, by what each has ahead; ``now`` is in seconds."""
        if not self._in_race:
            return
        if self.leader < 0:
            self._lead(min(self._in_race, key=lambda way: ahead[way].guessed), now)
        if self._trial is not None and ahead[self._trial].seconds is not None:
            self._trial = None
        self._overtake(now, ahead)
        leads, silent = ahead[self.leader], now - self._led_since
        self._may_pay = {way for way in self._in_race if _may_pay(ahead[way], leads, silent)}
        untried = self._may_pay - self._tried
        if self._trial is None and untried and self._is_worth_trying(now, leads):
            self._trial = min(untried, key=lambda way: ahead[way].guessed)
            self._tried.add(self._trial)

    def _lead(self, way: int, now: float) -> None:
        self.leader, self._led_since = way, now
        self._tried.add(way)

    def _overtake(self, now: float, ahead: Sequence[WayAhead]) -> None:
        """Let another way lead whose keys would be answered much sooner, or for much less."""
        told = {
            way: cost
            for way in self._in_race & self._tried
            if (cost := ahead[way].cost) is not None
        }
        if not told:
            return
        first = min(told, key=told.__getitem__)
        if first != self.leader and told[first] < OVERTAKES * told.get(self.leader, math.inf):
            self._lead(first, now)
            self._trial = None if self._trial == first else self._trial

    def _is_worth_trying(self, now: float, leads: WayAhead) -> bool:
        stalled = leads.seconds is None and now - self._led_since >= STALLED
        return leads.rounds >= WORTH_TRYING or stalled


def _may_pay(other: WayAhead, leads: WayAhead, silent: float) -> bool:
    """Whether another way may be better by more than it takes to find out.

    That depends on money alone: of one whose calls cost nothing nobody knows. A leader of which
    there is no news, for so many ``silent`` seconds, has as many more before it as it has taken.
    """
    if not other.money:
        return True
    if leads.cost is None:
        cost = leads.guessed + silent
        return other.money < OVERTAKES * cost and (silent >= STALLED or other.trial <= TRIAL * cost)
    return other.money < OVERTAKES * leads.cost and other.trial <= TRIAL * leads.cost
