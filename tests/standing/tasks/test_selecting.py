"""What a task of queries on one stream hands over: matches in the order of rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eddyline.standing.tasks.selecting import in_row_order


@given(st.lists(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9)))))
def test_matches_are_put_in_the_order_of_rows(found: list[list[tuple[int, int]]]) -> None:
    parts = [
        (np.array([row for row, _ in part], np.int64), np.array([q for _, q in part], np.int64))
        for part in found
    ]
    rows, queries = in_row_order(parts)
    given_ = [pair for part in found for pair in part]
    together = list(zip(rows.tolist(), queries.tolist(), strict=True))
    assert together == sorted(given_, key=lambda pair: pair[0])
