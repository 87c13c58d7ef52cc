"""Of too many results of a query the first pass, and the others are counted."""

from __future__ import annotations

import random

import numpy as np

from eddyline.standing.tasks.counts import Counts
from eddyline.standing.tasks.result_limit import ResultLimit


def test_the_first_results_of_each_query_pass() -> None:
    chance = random.Random(3)
    for most in (None, 1, 3, 50):
        limit, counts = ResultLimit(most), Counts()
        for _ in range(2):  # tasks
            limit.begin()
            passed: dict[int, int] = {}
            for size in (0, 7, 1, 30, 12):
                queries = [chance.choice([0, 4, 4, 4, 9]) for _ in range(size)]
                wanted = []
                for query in queries:
                    wanted.append(most is None or passed.get(query, 0) < most)
                    passed[query] = passed.get(query, 0) + 1
                found = limit.passing(np.array(queries, np.int64), counts)
                assert (wanted if found is None else found.tolist()) == wanted
            if most is not None:
                for query, number in passed.items():
                    assert counts.results[query] == min(number, most)
                    assert counts.left_out[query] == max(number - most, 0)
            counts = Counts()
