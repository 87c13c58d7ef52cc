"""Ways to a table that compete: who leads, who is tried, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from eddyline.asking.competing_ways import CompetingWays, WayAhead

LOOK = 0.005


@dataclass
class Way:
    """A way with so many keys, of which a call takes some, answered after so many seconds."""

    keys: int
    seconds: float
    width: int = 1
    keys_per_call: int = 1
    money: float = 0.0
    done: int = 0
    calls: int = 0
    busy: list[float] = field(default_factory=list)

    def go_on(self, now: float, *, asked: bool) -> None:
        self.busy = [end for end in self.busy if end > now]
        ended = self.calls - len(self.busy)
        self.done = min(self.keys, ended * self.keys_per_call)
        while asked and len(self.busy) < self.width and self.calls * self.keys_per_call < self.keys:
            self.busy.append(now + self.seconds)
            self.calls += 1

    @property
    def ahead(self) -> WayAhead:
        per_round = self.width * self.keys_per_call
        told = self.calls - len(self.busy) >= 2 * self.width
        left = self.keys - self.done
        seconds = left / per_round * self.seconds if told else None
        calls = -(-left // self.keys_per_call) - len(self.busy)
        return WayAhead(left, per_round, seconds, calls * self.money)


def race(*ways: Way, until: float = 1_000.0) -> tuple[float, int]:
    """Return when the keys of a way were answered first, and which way that was."""
    racing = CompetingWays(len(ways))
    now = 0.0
    while now < until:
        for number, way in enumerate(ways):
            way.go_on(now, asked=number in racing.asked)
            if way.done == way.keys:
                return now, number
        racing.look(now, [way.ahead for way in ways])
        now += LOOK
    raise AssertionError("no way was through")


def test_the_way_with_the_fewest_calls_leads_and_few_keys_are_asked_for_by_it_alone() -> None:
    few, many = Way(10, 0.1), Way(300, 0.1)
    took, first = race(many, few)
    assert (first, many.calls) == (1, 0)
    assert took == pytest.approx(1.0, abs=20 * LOOK)
    packed = Way(300, 0.1, width=2, keys_per_call=100)
    other = Way(10, 0.1)
    assert race(other, packed)[1] == 1
    assert other.calls == 0


@pytest.mark.parametrize("turned", [False, True])
def test_the_quicker_way_takes_over_however_many_keys_it_has(turned: bool) -> None:  # noqa: FBT001 - a case
    slow, quick = Way(200, 1.0), Way(400, 0.1)
    took, first = race(*((quick, slow) if turned else (slow, quick)))
    assert first == (0 if turned else 1)
    assert took <= 1.15 * 40.0
    assert slow.calls <= 4


def test_a_way_that_is_tried_in_vain_costs_two_rounds_of_calls() -> None:
    leads, slow = Way(500, 0.1, width=4), Way(900, 1.0, width=4)
    took, first = race(leads, slow)
    assert first == 0
    assert took <= 1.1 * 12.5
    assert slow.calls <= 12


def test_a_way_that_never_answers_is_left() -> None:
    stalls, other = Way(10, 1e9), Way(20, 0.1)
    took, first = race(stalls, other)
    assert first == 1
    assert took <= 1.0 + 2.0 + 30 * LOOK


@pytest.mark.parametrize("turned", [False, True])
def test_a_way_whose_calls_cost_more_than_they_spare_gets_none(turned: bool) -> None:  # noqa: FBT001 - a case
    paid, free = Way(40, 0.1, money=10.0), Way(400, 0.1)
    _, first = race(*((free, paid) if turned else (paid, free)))
    assert first == (0 if turned else 1)
    assert paid.calls == 0


def test_a_way_whose_calls_spare_more_than_they_cost_takes_over() -> None:
    slow, paid = Way(400, 1.0), Way(400, 0.01, money=0.05)
    took, first = race(slow, paid)
    assert first == 1
    assert took + 400 * 0.05 <= 1.15 * 24.0 + 2.0


def test_of_two_ways_that_cost_the_same_time_the_cheaper_one_is_asked() -> None:
    for costs in ((0.2, 0.1), (0.1, 0.2)):
        ways = [Way(15, 0.1, money=money) for money in costs]
        assert race(*ways)[1] == costs.index(0.1)
        assert ways[costs.index(0.2)].calls == 0


def test_a_costly_way_is_tried_when_the_leader_has_been_silent_for_as_long() -> None:
    stalls, paid = Way(10, 1e9), Way(20, 0.1, money=0.5)
    took, first = race(stalls, paid)
    assert first == 1
    assert 0.8 * 10.0 - 2.0 <= took <= 10.0 / 0.8 + 2.0 + 30 * LOOK


def test_a_way_that_fails_leaves_the_race_to_the_others() -> None:
    racing = CompetingWays(2)
    ahead = [WayAhead(5, 1), WayAhead(50, 1)]
    racing.look(0.0, ahead)
    assert racing.leader == 0
    assert not racing.give_up(0)
    racing.look(0.1, ahead)
    assert (racing.leader, set(racing.asked)) == (1, {1})
    assert racing.give_up(1)
    assert not racing.asked
