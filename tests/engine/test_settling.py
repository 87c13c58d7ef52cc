"""Which held errors count, against asking every predicate about every tuple alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.settling import Held, Verdict, settle
from eddyline.expressions.vector import CollectiveFailure
from tests.joins import Refused

Alone = bool | Literal["fails"]
"""What a predicate says of a tuple that it is asked about alone."""


class Predicates:
    """Predicates that see whole vectors: where one tuple of a vector fails, all of it does."""

    def __init__(self, alone: Sequence[Sequence[Alone]]) -> None:
        self._alone = alone  # by predicate and position
        self.asked: list[tuple[int, tuple[int, ...]]] = []

    def __call__(self, predicate: int, positions: Sequence[int]) -> list[Verdict]:
        self.asked.append((predicate, tuple(positions)))
        said = [self._alone[predicate][at] for at in positions]
        if "fails" not in said:
            return [found is True for found in said]
        error = Refused(predicate, positions[said.index("fails")])
        if len(said) == 1:
            return [error]
        return [CollectiveFailure(error)] * len(said)


TUPLES, PREDICATES = 4, 3


@given(
    st.lists(
        st.lists(st.sampled_from([True, False, "fails"]), min_size=TUPLES, max_size=TUPLES),
        min_size=PREDICATES,
        max_size=PREDICATES,
    ),
    st.sets(st.tuples(st.integers(0, TUPLES - 1), st.integers(0, PREDICATES - 1))),
)
def test_the_first_tuple_that_nothing_rejects_raises_its_first_error(
    alone: list[list[Alone]], doubtful: set[tuple[int, int]]
) -> None:
    held: dict[int, dict[int, Held]] = {}
    for at, predicate in doubtful:
        held.setdefault(at, {})[predicate] = CollectiveFailure(Refused("of another tuple"))
    outcomes = {at: [(p, alone[p][at]) for p in sorted(held[at])] for at in sorted(held)}
    rejected = {at for at, said in outcomes.items() if any(found is False for _, found in said)}
    counts = [
        (p, at)
        for at, said in outcomes.items()
        if at not in rejected
        for p, found in said
        if found == "fails"
    ]
    ask_again = Predicates(alone)
    if counts:
        with pytest.raises(Refused) as caught:
            settle(held, ask_again)
        assert caught.value.args == counts[0]
    else:
        assert settle(held, ask_again) == rejected
    failed: dict[int, Exception] = {}
    assert settle(held, Predicates(alone), failed) == rejected
    first = {at: (p, at) for p, at in sorted(counts, reverse=True)}
    assert {at: error.args for at, error in failed.items()} == first


def test_one_of_many_tuples_that_fails_is_found_by_halving() -> None:
    tuples, odd = 64, 41
    doubtful: dict[int, Held] = {0: CollectiveFailure(Refused())}
    says: list[Alone] = [at % 2 == 0 for at in range(tuples)]
    says[odd] = "fails"
    ask_again = Predicates([says])
    failed: dict[int, Exception] = {}
    rejected = settle(dict.fromkeys(range(tuples), doubtful), ask_again, failed)
    assert rejected == {at for at in range(1, tuples, 2) if at != odd}
    assert list(failed) == [odd]
    assert len(ask_again.asked) == 1 + 2 * 6  # all, then both halves of 64, 32, 16, 8, 4 and 2


def test_of_a_tuple_that_one_predicate_rejects_no_other_is_asked_again() -> None:
    doubtful: dict[int, Held] = dict.fromkeys(range(2), CollectiveFailure(Refused()))
    ask_again = Predicates([[False, "fails"], [True, "fails"]])
    with pytest.raises(Refused):
        settle({0: doubtful, 1: doubtful}, ask_again)
    assert ask_again.asked == [(0, (0, 1)), (1, (0, 1)), (0, (0,)), (0, (1,)), (1, (1,))]


def test_a_tuple_that_is_rejected_already_is_not_asked_about() -> None:
    doubtful = CollectiveFailure(Refused())
    ask_again = Predicates([[True, True], [True, True]])
    assert settle({0: {0: doubtful, 1: False}, 1: {0: doubtful}}, ask_again) == {0}
    assert ask_again.asked == [(0, (1,))]


class EqualToAll(Exception):  # noqa: N818 - it stands for whatever a user raises
    """An exception that says of everything that it is the same."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


def test_what_an_error_compares_equal_to_does_not_matter() -> None:
    with pytest.raises(EqualToAll):
        settle({0: {0: EqualToAll()}}, Predicates([[True]]))
