"""When a source with a quota is asked next: as soon as it answers again, and not before.

A refusal for quota is weather, and no failure of a key: it is told to nobody, and the key is asked
for again. What a quota is, mostly nobody has said; so it is learned as what a service seems to
accept: so many calls in any span of so many seconds, or, where such a span is too short to be seen,
so many a second.

The parts are old ones. After a refusal all calls wait at once; then one is let through to see (a
probe). Calls beyond what is known are tried alone, then by two, four and so on, and the more
seldom, the more often this fails: the slow start and the backing off of Jacobson, "Congestion
avoidance and control" (1988), from where the estimate of deviations is as well. The seconds of the
span are found by halving the interval in which they must lie. And from one refusal to the next,
what was accepted is what the quota was renewed by: so the calls a second are known exactly.

Over 450 lines, a sixth of them constants with their reasons: it is one state machine.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from eddyline.asking.even_pace import EvenPace

REMEMBERED: Final = 1 << 16
"""Calls of which the beginning is remembered: of a larger quota so many are used."""

PROBES: Final = 0.008
"""Part of the calls that may be refused because more was tried than is known to be accepted."""

SELDOM: Final = 8.0
"""How many times the seconds of a quota pass until one more may be, however few the calls are."""

EXACT: Final = 0.02
"""How exactly the seconds of a quota are found, as a part of them."""

MARGIN: Final = 0.005
"""Part of these seconds that is waited longer: calls take unequal times to arrive."""

DEVIATIONS: Final = 2.0
"""How many deviations of what a call takes it may be late, or another one early."""

LATE: Final = 0.015
"""Part of the seconds of a quota that this is at the most.

With 0.005, calls of 25 ms of which 15 % take 50 ms more took up to 1.40 of the least time under a
sliding quota of 200 a second; so 1.28, and on average 1.06 instead of 1.12. With 0.03, fixed
windows lose more than that.
"""

PATIENT: Final = 0.16
"""Where nobody says when to come back: part of the seconds so far after which it is tried again."""

SHORTEST: Final = 0.02
"""Seconds between two probes of a service that refuses everything, at the least."""

FOR_EVER: Final = 1e9
"""Seconds that are as good as infinitely many."""

HALF: Final = 0.5
"""Seconds by which a number of whole seconds is too large, on average."""

LONGEST: Final = 60.0
"""Seconds between two such probes at the most, where the service has not said for how long."""

BLOCKED: Final = 0.1
"""Part of a quota's seconds in which nobody may be let through, for its calls to be a beginning
and a rest."""

FEW: Final = 0.1
"""Part of a quota that is no sign of its end: calls began again too soon."""

LONG: Final = 0.5
"""Seconds of a quota from which on all its calls are made at once; in shorter ones they are made
evenly, which delays them by as many seconds at the most, in the whole."""

SEEN: Final = 8.0
"""How many times as long as a call the seconds of a quota are for that, at the least."""

WAITED_FOR: Final = 0.05
"""Part of a quota's seconds that an answer may take for others to wait for it at a beginning."""


DECREASE: Final = 0.7
"""Part of a quota from which on it is what was accepted since calls began."""

SURE: Final = 10
"""Calls between two refusals, from which on these tell the calls a second."""


class CallKind(Enum):
    """Why a call was let through."""

    ORDINARY = auto()  # it is within what is known to be accepted
    OPENING = auto()  # alone, after a time in which nobody was
    EXTRA = auto()  # more than is known to be accepted


@dataclass(slots=True, eq=False)
class GovernedCall:
    """A call that was let through at ``sent``."""

    sent: float
    kind: CallKind


@dataclass(slots=True)
class _Shut:
    """A time in which nobody is let through but one, after ``until``, to see.

    Seconds count from ``base``, when calls began that the quota was spent on; in ``refused`` of
    them it is known not to be renewed. ``limit`` is what is learned of the quota, None where that
    is its seconds.
    """

    base: float
    refused: float
    until: float = 0.0
    limit: int | None = None
    told: bool = False
    latest: float = math.inf
    tries: int = 0
    probe: GovernedCall | None = None


@dataclass(frozen=True, slots=True)
class GovernorStatistics:
    """What a governor has seen: calls let through, and those of them that were refused.

    ``limit`` calls in any ``seconds`` are the quota as it is known, None where nothing was refused
    so far.
    """

    calls: int
    refusals: int
    limit: int | None
    seconds: float


class Governor:
    """Lets calls through to one service; times are handed in, in seconds, and never go back.

    A call that :meth:`wait` lets through begins, and then is accepted, refused or abandoned.

    >>> governor = Governor()
    >>> calls = [governor.begin(now=0.1 * n) for n in range(3)]
    >>> governor.accepted(calls[0], now=0.3)
    >>> governor.accepted(calls[1], now=0.3)
    >>> governor.refused(calls[2], now=0.4, after=9.6)
    >>> governor.wait(now=0.4)
    9.6
    >>> probe = governor.begin(now=10.0)
    >>> governor.wait(now=10.0)  # until it is known what becomes of that one
    inf
    >>> governor.accepted(probe, now=10.1)
    >>> governor.statistics().limit, governor.statistics().seconds
    (2, 10.0)
    """

    def __init__(self) -> None:
        self._sent: deque[float] = deque(maxlen=REMEMBERED)  # those refused not among them
        self._limit: int | None = None
        self._shortest = 0.0  # the quota is not renewed in so many seconds, and
        self._seconds = 0.0  # is in so many
        self._pace: EvenPace | None = None  # where these are too few to be seen
        self._shut: _Shut | None = None
        self._opened = -math.inf  # when the calls began that the quota is spent on now
        self._confirmed = False  # whether that was late enough
        self._blocked = False  # whether nobody might be let through since
        self._emptied: float | None = None  # when a call was refused before
        self._since = 0  # calls accepted since then
        self._extras = 1  # tried at a time
        self._left = 0  # of these, not yet sent
        self._out = 0  # of these, not yet answered
        self._tried_from = 0.0
        self._under_way = 0
        self._usual = 0.0  # seconds of a call
        self._deviation = 0.0  # and by how many it differs
        self._calls = 0
        self._refusals = 0
        self._probes = 0  # of these, such as were expected
        self._calls_then = 0  # at the latest of these
        self._probed_at = -math.inf
        self._accepted_at: float | None = None
        self._refused_at: float | None = None

    def statistics(self) -> GovernorStatistics:
        """Return what was seen so far."""
        return GovernorStatistics(self._calls, self._refusals, self._limit, self._seconds)

    @property
    def opens(self) -> float | None:
        """When somebody is let through again, as far as is known; None where nobody waits."""
        return None if self._shut is None else self._shut.until

    @property
    def refusing_since(self) -> float | None:
        """Since when all calls are refused; None where the latest was accepted."""
        refused, accepted = self._refused_at, self._accepted_at
        return None if refused is None or (accepted or -math.inf) >= refused else refused

    def wait(self, now: float) -> float:
        """Return the seconds until a call may begin; infinite where an answer decides that."""
        if self._shut is not None:
            return math.inf if self._shut.probe else max(0.0, self._shut.until - now)
        due = self._due()
        if now >= due:
            return 0.0
        if due - now > BLOCKED * self._seconds and self._pace is None:
            self._blocked = True
            if self._left or self._may_try(now):
                return 0.0
            if self._out:
                return due - now
        else:
            self._left = 0
            if self._pace is None and not self._blocked and now - self._opened > 2 * self._seconds:
                self._go_evenly(now)
                return self.wait(now)
        return max(0.0, self._opening(due, now) - now)

    def begin(self, now: float) -> GovernedCall:
        """Take note of a call that begins, which :meth:`wait` lets through."""
        call = GovernedCall(now, self._kind(now))
        if call.kind is CallKind.OPENING:
            self._begin_alone(call)
        elif call.kind is CallKind.EXTRA:
            if not self._left:
                self._left = self._extras
            self._left -= 1
            self._out += 1
        elif self._blocked or self._opened == -math.inf:
            self._blocked = self._confirmed = False
            self._opened = now
        self._sent.append(now)
        self._calls += 1
        self._under_way += 1
        return call

    def accepted(self, call: GovernedCall, now: float) -> None:
        """Take note that a call was not refused, whatever else has become of it."""
        self._accepted_at = now
        self._under_way -= 1
        self._since += 1
        self._learn_usual(now - call.sent)
        if self._shut is not None and self._shut.probe is call:
            self._open(call, self._shut)
        elif call.kind is CallKind.EXTRA and self._out:
            self._out -= 1
            if not self._out and not self._left and self._limit is not None:
                self._limit += self._extras
                self._extras *= 2
        elif self._pace is not None and self._shut is None:
            self._pace.accepted(now, affordable=self._affordable(now))
            self._keep_pace()

    def refused(self, call: GovernedCall, now: float, after: float | None = None) -> None:
        """Take note of a refusal; the service may have said ``after`` how many seconds to come."""
        self._refusals += 1
        self._under_way -= 1
        after = None if after is None or math.isnan(after) else min(max(after, 0.0), FOR_EVER)
        if self.refusing_since is None:
            self._refused_at = now
        self._forget(call)
        if self._shut is not None:
            self._refused_again(call, self._shut, now, after)
        elif call.kind is CallKind.EXTRA and self._out:
            self._note_probe(now)
            self._end_extras(now)
        else:
            self._close(call, now, after)

    def abandoned(self, call: GovernedCall) -> None:
        """Take note of a call of which nobody knows whether it was refused: it was given up."""
        self._under_way -= 1
        if self._shut is not None and self._shut.probe is call:
            self._shut.probe = None
        elif call.kind is CallKind.EXTRA and self._out:
            self._left, self._out = 0, 0

    def told(self, left: int, now: float, after: float) -> None:
        """Take note that a service says it takes ``left`` calls more for so many seconds."""
        if left <= 0 and self._shut is None and after > 0:
            self._shut = _Shut(self._opened, now - self._opened, now + after, told=True)

    def _oldest(self) -> float:
        """Return when the first of the calls began that a quota is spent on."""
        limit = self._limit
        return -math.inf if limit is None or len(self._sent) < limit else self._sent[-limit]

    def _due(self) -> float:
        """Return when a call may begin that is sure to be accepted, as far as is known."""
        late = min(DEVIATIONS * self._deviation, LATE * self._seconds)
        return self._oldest() + self._seconds * (1 + MARGIN) + late

    def _may_try(self, now: float) -> bool:
        """Tell whether more may be tried than is known to be accepted."""
        known = self._exact or 2 * self._shortest < self._seconds
        return known and not self._under_way and now >= self._tried_from and self._affordable(now)

    def _affordable(self, now: float) -> bool:
        """Tell whether one refusal more does not matter: among many calls, or after long."""
        few = self._probes + 1 <= PROBES * self._calls
        others = self._calls - self._calls_then >= 1 / PROBES
        seldom = self._pace is None and now - self._probed_at > SELDOM * self._seconds
        return few or others or seldom

    def _note_probe(self, now: float) -> None:
        if self._limit is not None:
            self._probes += 1
            self._calls_then, self._probed_at = self._calls, now

    @property
    def _exact(self) -> bool:
        """Whether the seconds of the quota are known well."""
        return self._seconds - self._shortest <= EXACT * self._seconds

    def _opening(self, due: float, now: float) -> float:
        """Return when calls begin again that are blocked now.

        As long as nobody knows it well, that is before they are sure to be accepted.
        """
        if not self._blocked or self._exact or not self._affordable(now):
            return due
        return min(due, self._oldest() + (self._shortest + self._seconds) / 2)

    def _kind(self, now: float) -> CallKind:
        if self._shut is not None:
            return CallKind.OPENING
        due = self._due()
        if now < due:
            early = self._blocked and now >= self._opening(due, now)
            return CallKind.OPENING if early else CallKind.EXTRA
        quick = self._usual < WAITED_FOR * self._seconds
        return CallKind.OPENING if self._blocked and quick else CallKind.ORDINARY

    def _begin_alone(self, call: GovernedCall) -> None:
        if self._shut is None:
            oldest = self._oldest()
            self._shut = _Shut(oldest, self._shortest, call.sent)
        self._shut.probe = call

    def _sent_since(self, moment: float) -> int:
        """Return how many calls began since then that were not refused so far."""
        return sum(1 for sent in self._sent if sent >= moment)

    def _forget(self, call: GovernedCall) -> None:
        """Take a refused call out of those that a quota is spent on."""
        newer = []
        while self._sent and self._sent[-1] > call.sent:
            newer.append(self._sent.pop())
        if self._sent and self._sent[-1] == call.sent:
            self._sent.pop()
        self._sent.extend(reversed(newer))

    def _end_extras(self, now: float) -> None:
        self._extras, self._left, self._out = 1, 0, 0
        self._tried_from = now + self._seconds

    def _learn_usual(self, seconds: float) -> None:
        """Learn what a call takes, and by how much that differs (Jacobson, 1988, Appendix A)."""
        if not self._usual:
            self._usual = seconds
        error = seconds - self._usual
        self._usual += error / 8
        self._deviation += (abs(error) - self._deviation) / 4

    def _close(self, call: GovernedCall, now: float, after: float | None) -> None:
        """Let nobody through, and learn what a refusal proves that nobody expected."""
        base = max(self._opened, self._sent[0] if self._sent else call.sent)
        shut = self._shut = _Shut(base, call.sent - base)
        spent = self._sent_since(base)
        self._end_extras(now)
        if self._pace is not None:
            self._pace.refused(now, self._renewed(call))
            self._keep_pace()
        elif self._limit is not None:
            if spent < FEW * self._limit and self._oldest() < base and not self._confirmed:
                shut.base = self._oldest()  # calls began again too soon
            elif spent < DECREASE * self._limit:
                # Where any span counts, and not what began with a call, it may still be larger.
                spent = self._sent_since(call.sent - self._seconds)
                shut.limit = max(1, min(spent, self._limit - 1))
            elif now - self._opened < self._seconds:
                shut.limit = spent
            else:  # they came evenly
                self._go_evenly(now)
                shut.limit = 1
            shut.refused = call.sent - shut.base
        self._emptied, self._since = call.sent, 0
        self._postpone(shut, now, after)

    def _renewed(self, call: GovernedCall) -> float | None:
        """Return the calls a second that were accepted since the refusal before, if these tell."""
        if self._emptied is None or self._since < SURE or call.sent <= self._emptied:
            return None
        return self._since / (call.sent - self._emptied)

    def _refused_again(
        self, call: GovernedCall, shut: _Shut, now: float, after: float | None
    ) -> None:
        """Take note of one refusal more: that of a probe, or of a call that was under way."""
        if shut.probe is call:
            shut.probe = None
            shut.tries += 1
            self._note_probe(now)
            shut.refused = max(shut.refused, call.sent - shut.base)
            self._shortest = min(max(self._shortest, shut.refused), self._seconds)
            self._postpone(shut, now, after)
        elif after is not None and shut.probe is None:
            # A number of whole seconds is rounded up: the nearest of several moments is the best.
            until = now + max(after, SHORTEST)
            shut.until = min(shut.until, until) if shut.told else until
            shut.told = True

    def _postpone(self, shut: _Shut, now: float, after: float | None) -> None:
        """Decide when to come back."""
        elapsed = now - shut.base
        shut.told = after is not None
        until = math.inf
        if after is not None:
            whole = after >= 1 and after == math.floor(after)  # it is rounded up
            shut.latest = min(shut.latest if shut.latest > now else math.inf, now + after)
            near = elapsed + (after - 1 if whole else after * (1 - EXACT))
            shut.refused = max(shut.refused, near)
            unknown = shut.latest - shut.base - shut.refused
            sooner = whole and EXACT * (elapsed + after) < min(HALF, unknown)
            until = max(shut.latest - sooner * unknown / 2, now + SHORTEST)
        if self._pace is not None:
            soon = max(2 * self._seconds, SHORTEST) * 1.5**shut.tries
            shut.until = now + min(soon, LONGEST) if until - now >= 1 else min(until, now + soon)
        elif (known := shut.base + self._seconds * (1 + MARGIN)) > now:
            middle = shut.base + (max(self._shortest, shut.refused) + self._seconds) / 2
            shut.until = min(until, known if self._exact or middle <= now else middle)
        else:
            # What is known was right a moment ago: it is mostly not far away.
            near = math.inf if self._limit is None else EXACT * self._seconds * 2**shut.tries
            pause = PATIENT * elapsed if after is None else until - now
            shut.until = now + min(max(min(near, pause), SHORTEST), max(LONGEST, until - now))

    def _open(self, probe: GovernedCall, shut: _Shut) -> None:
        """Let calls through again, and learn from how long that took."""
        self._shut = None
        self._blocked = False
        self._opened = probe.sent
        self._confirmed = True
        if self._pace is not None:
            return
        took = probe.sent - shut.base
        if self._limit is None:
            self._limit = max(1, sum(1 for sent in self._sent if sent < probe.sent))
            self._seconds, self._shortest = took, min(shut.refused, took)
            self._pace_short(probe.sent)
            return
        if shut.limit is not None:
            self._limit = shut.limit
        if took < self._seconds:
            if shut.limit is not None:  # one call was renewed, and not all
                return
            self._seconds = took
            self._shortest = min(max(self._shortest, shut.refused), took)
        elif took > self._seconds * (1 + EXACT):
            self._seconds, self._shortest = took, min(shut.refused, took)
        self._pace_short(probe.sent)

    def _pace_short(self, now: float) -> None:
        """Let calls through evenly where a beginning and a rest are not told apart, or need not."""
        unseen = self._seconds < SEEN * self._usual
        if unseen or (self._seconds < LONG and self._exact):
            self._go_evenly(now)

    def _go_evenly(self, now: float) -> None:
        limit = self._limit or 1
        high = limit / self._shortest if self._shortest else math.inf
        self._pace = EvenPace(limit / self._seconds, high, self._seconds, now)
        self._keep_pace()

    def _keep_pace(self) -> None:
        if self._pace is not None:
            self._limit = 1
            self._seconds = self._shortest = 1 / self._pace.rate
