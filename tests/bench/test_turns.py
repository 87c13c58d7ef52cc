"""Contestants take turns in both directions, and no time counts whose answer is another."""

from __future__ import annotations

from functools import partial

import pytest

from bench.turns import Spread, Turns, in_turns, take_turns


def test_contestants_run_alternately_and_the_first_turns_do_not_count() -> None:
    ran: list[str] = []

    def run(name: str) -> int:
        ran.append(name)
        return len(ran)

    contestants = {name: partial(run, name) for name in "ab"}
    assert in_turns(contestants, 2) == {"a": [4, 5], "b": [3, 6]}
    assert "".join(ran) == "abbaab"


def test_a_contestant_that_is_warmed_runs_twice_and_counts_once() -> None:
    ran: list[int] = []
    taken = take_turns({"a": lambda: ran.append(1)}, turns=3, uncounted=0, warmed=True)
    assert len(ran) == 6
    assert len(taken.seconds["a"]) == 3


def test_another_answer_is_an_error_that_names_the_contestant() -> None:
    with pytest.raises(AssertionError, match="1 became 2") as caught:
        take_turns({"one": lambda: 1, "two": lambda: 2}, turns=1)
    assert caught.value.__notes__ == ["two"]


def test_who_gives_up_gives_no_other_answer() -> None:
    assert take_turns({"one": lambda: 1, "none": lambda: None}, turns=1).answer == 1
    with pytest.raises(AssertionError, match="2 became 1"):
        take_turns({"one": lambda: 1}, turns=1, expected=2)


def test_ratios_are_formed_turn_by_turn() -> None:
    turns = Turns({"a": [1.0, 4.0, 9.0], "b": [2.0, 1.0, 3.0]})
    assert turns.ratio("a", "b") == turns.worst_over_best() == Spread(3.0, 0.5, 4.0)
    assert turns.ratio("a", "b", plus=1.0) == Spread(2.0, 1 / 3, 2.25)


def test_groups_are_told_by_the_beginnings_of_names() -> None:
    turns = Turns({"a: x": [1.0], "b: x": [2.0], "a: y": [3.0]})
    assert turns.split("ab") == {"a": Turns({"x": [1.0], "y": [3.0]}), "b": Turns({"x": [2.0]})}
