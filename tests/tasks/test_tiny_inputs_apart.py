"""Rows of several inputs that come as those of one are told apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from eddyline.tasks.tiny_inputs import TinyInputsSide

PLACES = ((2, 0), (1,), (0, 1, 2))
"""Where the columns of three inputs are, of three columns that they share."""


class Kept:
    """Stands for what is run over one input: passes its rows on, and takes note of them."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.names: set[tuple[str, ...]] = set()
        self.runs = 0

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        self.runs += 1
        for batch in batches:
            self.names.add(tuple(batch.schema.names))
            self.rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
            yield batch


@given(st.lists(st.lists(st.integers(0, 2), max_size=20), max_size=5))
def test_each_input_gets_its_rows_in_order(arriving: list[list[int]]) -> None:
    batches = []
    expected: list[list[tuple[Any, ...]]] = [[] for _ in PLACES]
    number = 0
    for owners in arriving:
        rows = [(number + n, f"text {number + n}", None) for n in range(len(owners))]
        number += len(owners)
        for owner, row in zip(owners, rows, strict=True):
            expected[owner].append(tuple(row[place] for place in PLACES[owner]))
        columns = [
            pa.array(owners, pa.int32()),
            pa.array([row[0] for row in rows], pa.int64()),
            pa.array([row[1] for row in rows], pa.string()),
            pa.array([row[2] for row in rows], pa.bool_()),
        ]
        batches.append(pa.record_batch(columns, names=["input", "c0", "c1", "c2"]))
    sides = tuple(Kept() for _ in PLACES)
    together = TinyInputsSide(sides, PLACES)  # type: ignore[arg-type]  # stand-ins for map sides
    given_back = sum(batch.num_rows for batch in together(iter(batches)))
    assert [side.rows for side in sides] == expected
    assert given_back == number
    assert all(side.runs for side in sides)  # also over no rows
    for side, places in zip(sides, PLACES, strict=True):
        assert side.names <= {tuple(f"c{n}" for n in range(len(places)))}


def test_rows_are_passed_on_as_they_come() -> None:
    read = []

    def arriving() -> Iterator[pa.RecordBatch]:
        for n in range(9):
            read.append(n)
            owners = pa.array([n // 5, n // 5], pa.int32())
            yield pa.record_batch([owners, pa.array([n, n])], names=["input", "c0"])

    together = TinyInputsSide((Kept(), Kept()), ((0,), (0,)))  # type: ignore[arg-type]  # likewise
    for passed, batch in enumerate(together(arriving())):
        assert batch.column(0).to_pylist() == [passed, passed]
        assert read[-1] == passed
