"""Ends of transmission: what was asked for, and when an answer is there in full."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.modules.end_of_transmission import Answers, Transmissions


@given(sizes=st.lists(st.integers(0, 4), max_size=6), seed=st.integers(0, 999))
def test_a_transmission_ends_with_its_last_row_in_whatever_order(
    sizes: list[int], seed: int
) -> None:
    generator = np.random.default_rng(seed)
    transmissions, first = Transmissions(), 0
    answers: list[range] = []
    for size in sizes:
        first += int(generator.integers(0, 3))  # rows that came another way stand in between
        answers.append(range(first, first + size))
        first += size
    built: set[int] = set()
    known = 0
    order = generator.permutation(first)
    for part in np.array_split(order, 5):
        while known < len(answers) and generator.random() < 0.5:
            assert transmissions.begin() == known
            transmissions.came(known, answers[known])
            known += 1
        # A row cannot be built before the answer is known in which it came.
        ready = [int(row) for row in part if not any(row in a for a in answers[known:])]
        before = [built.issuperset(answer) for answer in answers[:known]]
        built.update(ready)
        after = [built.issuperset(answer) for answer in answers[:known]]
        ended = transmissions.built(np.array(ready, np.int64))
        assert ended == [n for n in range(known) if after[n] and not before[n]]
        assert transmissions.ended.tolist() == after


def test_an_empty_answer_is_complete_at_once() -> None:
    transmissions = Transmissions()
    assert transmissions.begin() == 0
    assert transmissions.ended.tolist() == [False]
    transmissions.came(0, range(5, 5))
    assert transmissions.ended.tolist() == [True]
    assert transmissions.built(range(5, 7)) == []


def test_a_binding_is_new_once_and_complete_when_its_rows_are_built() -> None:
    transmissions = Transmissions()
    answers = Answers([pa.float64(), pa.string()], transmissions)

    def bindings(*values: tuple[float | None, str | None]) -> list[pa.Array]:
        return [
            pa.array([x for x, _ in values], pa.float64()),
            pa.array([y for _, y in values], pa.string()),
        ]

    asked = bindings((0.0, "a"), (math.nan, ""), (-0.0, "a"))
    assert answers.ask(asked).tolist() == [0, 1]
    assert answers.begin([2]) == [0]
    transmissions.came(0, range(2))
    assert answers.ask(bindings((math.nan, ""), (1.0, "a"))).tolist() == [1]
    assert answers.begin([1]) == [1]
    transmissions.came(1, range(2, 2))
    assert len(answers) == 3
    every = bindings((0.0, "a"), (math.nan, ""), (1.0, "a"), (2.0, "a"), (None, "a"), (0.0, None))
    assert answers.transmission(every).tolist() == [0, 0, 1, -1, -1, -1]
    assert answers.complete(every).tolist() == [False, False, True, False, True, True]
    assert transmissions.built(range(2)) == [0]
    assert answers.complete(every).tolist() == [True, True, True, False, True, True]


def test_answers_come_in_another_order_than_they_were_asked_for() -> None:
    transmissions = Transmissions()
    answers = Answers([pa.int64()], transmissions)
    asked = [pa.array([7, 8, 9, 5])]
    assert answers.ask(asked).tolist() == [0, 1, 2, 3]
    assert answers.begin([1, 2, 1]) == [0, 1, 2]
    assert answers.transmission(asked).tolist() == [0, 1, 1, 2]
    transmissions.came(2, range(4))
    assert answers.complete(asked).tolist() == [False] * 4
    assert transmissions.built(range(4)) == [2]
    transmissions.came(0, range(4, 4))
    assert answers.complete(asked).tolist() == [True, False, False, True]
    transmissions.came(1, range(4, 6))
    assert transmissions.built(range(5, 6)) == []
    assert transmissions.built(range(4, 5)) == [1]
    assert answers.complete(asked).all()
