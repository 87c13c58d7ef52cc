"""Lineage: sets are kept once, and intersections are those of sets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eddyline.standing.engine.lineage import DEAD, FIRST_SETS, LineageSets, Satisfied

queries = st.one_of(
    st.integers(0, 40), st.integers(0, 2_000), st.integers(31, 33), st.integers(0, 2**31 - 1)
)
sets = st.one_of(
    st.frozensets(queries, max_size=20),
    st.tuples(st.integers(0, 300), st.integers(0, 300)).map(
        lambda pair: frozenset(range(pair[0], sum(pair)))
    ),
)


def satisfied_of(given_: Sequence[frozenset[int]]) -> Satisfied:
    """Return sets as a grouped filter returns them."""
    sizes = np.array([len(each) for each in given_], np.int64)
    members = [query for each in given_ for query in sorted(each)]
    return Satisfied.of_sizes(sizes, np.array(members, np.int32))


@given(st.lists(sets, max_size=20))
def test_equal_sets_have_one_number(given_: list[frozenset[int]]) -> None:
    kept = LineageSets()
    numbers = kept.numbers(satisfied_of(given_)).tolist()
    assert [frozenset(kept.members(number).tolist()) for number in numbers] == given_
    assert len(set(numbers)) == len(set(given_))
    assert len(kept) == len({frozenset(), *given_})
    assert all((number == DEAD) is (not each) for number, each in zip(numbers, given_, strict=True))
    assert [kept.number(each) for each in given_] == numbers
    assert kept.sizes(np.array(numbers, np.int32)).tolist() == [len(each) for each in given_]


@given(st.lists(st.tuples(sets, sets), max_size=20))
def test_what_sets_have_in_common(pairs: list[tuple[frozenset[int], frozenset[int]]]) -> None:
    kept = LineageSets()
    ones = kept.numbers(satisfied_of([one for one, _ in pairs]))
    others = kept.numbers(satisfied_of([other for _, other in pairs]))
    for _ in range(2):  # the second time from memory
        found = kept.common(ones, others).tolist()
        assert found == [kept.number(one & other) for one, other in pairs]
        ones, others = others, ones


@given(st.lists(sets, max_size=20), st.data())
def test_what_is_kept_after_forgetting(given_: list[frozenset[int]], data: st.DataObject) -> None:
    kept = LineageSets()
    numbers = kept.numbers(satisfied_of(given_))
    stay = data.draw(st.lists(st.booleans(), min_size=len(given_), max_size=len(given_)))
    gone = data.draw(st.frozensets(queries, max_size=5))
    kept_numbers = numbers[np.array(stay, np.bool_)]
    new = kept.keep_only([kept_numbers], gone)
    left = [each - gone for each, here in zip(given_, stay, strict=True) if here]
    assert [frozenset(kept.members(n).tolist()) for n in new[kept_numbers].tolist()] == left
    assert len(kept) == len({frozenset(), *left})


def test_many_sets_and_pairs() -> None:
    generator = np.random.default_rng(1)
    given_ = [
        frozenset(generator.integers(0, 500, generator.integers(0, 60)).tolist())
        for _ in range(3 * FIRST_SETS)
    ]
    kept = LineageSets()
    numbers = kept.numbers(satisfied_of(given_))
    picked = generator.integers(0, len(given_), (2, 20_000))
    found = kept.common(numbers[picked[0]], numbers[picked[1]])
    for place in range(0, 20_000, 97):
        wanted = given_[picked[0, place]] & given_[picked[1, place]]
        assert frozenset(kept.members(int(found[place])).tolist()) == wanted
    assert kept.numbers(satisfied_of(given_)).tolist() == numbers.tolist()


def test_few_members_take_a_word_each_and_many_a_bit() -> None:
    kept = LineageSets()
    kept.number([1, 1_000_000])
    assert kept.statistics().members == len([1, 1_000_000])
    before = kept.nbytes
    kept.number(range(64_000, 128_000))
    assert kept.nbytes - before < 64_000 / 8 + 64


@given(st.lists(st.tuples(sets, sets), max_size=20))
def test_either_and_without(pairs: list[tuple[frozenset[int], frozenset[int]]]) -> None:
    kept = LineageSets()
    ones = kept.numbers(satisfied_of([one for one, _ in pairs]))
    others = kept.numbers(satisfied_of([other for _, other in pairs]))
    for _ in range(2):  # the second time from memory
        either = kept.either(ones, others).tolist()
        assert either == [kept.number(one | other) for one, other in pairs]
        without = kept.without(ones, others).tolist()
        assert without == [kept.number(one - other) for one, other in pairs]
