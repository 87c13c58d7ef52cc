"""The hypercube: rows that join meet in exactly one cell, and no grid sends less."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.exchange.hypercube import Dimension, Hypercube, coordinates, key_words, plan_hypercube
from tests.planner.joins.generated import Case, cases, joined_rows, two_of_integers


def cells_of(
    cube: Hypercube, relation: int, batch: pa.RecordBatch, first: int
) -> npt.NDArray[np.int64]:
    """Return the cells of rows, as the map side asks for them."""
    words = [
        None
        if dimension.columns[relation] is None
        else key_words(batch.column(dimension.columns[relation]))
        for dimension in cube.dimensions
    ]
    return cube.cells_of(relation, words, batch.num_rows, first)


@given(data=st.data(), case=cases(), cells=st.integers(1, 24))
def test_rows_that_join_meet_in_exactly_one_cell(
    data: st.DataObject, case: Case, cells: int
) -> None:
    graph = case.graph
    sizes = [data.draw(st.integers(1, 10**6)) for _ in case.types]
    cube = plan_hypercube(graph, sizes, cells)
    assert cube.cells == cells
    found: list[list[set[int]]] = []
    for relation, rows in enumerate(case.rows):
        cut = data.draw(st.integers(0, len(rows)))  # two partitions, each with its own beginning
        own: list[set[int]] = []
        for start, stop in ((0, cut), (cut, len(rows))):
            batch = case.batch(relation, start, stop)
            of_batch = cells_of(cube, relation, batch, data.draw(st.integers(0, 100)))
            assert of_batch.shape == (stop - start, cube.copies(relation))
            own += [set(row) for row in of_batch.tolist()]
        assert all(len(places) == cube.copies(relation) for places in own)
        assert all(0 <= place < cells for places in own for place in places)
        found.append(own)
    for numbers in joined_rows(case.rows, case.equalities):
        of_rows = [found[relation][row] for relation, row in enumerate(numbers)]
        assert len(set.intersection(*of_rows)) == 1


@given(case=cases(most_rows=0), cells=st.integers(1, 24), data=st.data())
def test_no_grid_of_one_or_two_axes_sends_less(case: Case, cells: int, data: st.DataObject) -> None:
    sizes = [data.draw(st.integers(1, 10**6)) for _ in case.types]
    graph = case.graph
    cube = plan_hypercube(graph, sizes, cells)

    def sent(cube: Hypercube) -> int:
        return sum(size * cube.copies(relation) for relation, size in enumerate(sizes))

    count = len(sizes)
    dimensions = [Dimension((None,) * count, own=relation) for relation in range(count)]
    for places in graph.classes:
        columns = {place.relation: place.column for place in reversed(places)}
        dimensions.append(Dimension(tuple(columns.get(relation) for relation in range(count))))
    for share in (share for share in range(1, cells + 1) if cells % share == 0):
        for one, other in product(dimensions, dimensions):
            rival = Hypercube((one, other), (share, cells // share))
            assert sent(cube) <= sent(rival)


def test_a_join_of_two_is_partitioned_by_its_key() -> None:
    cube = plan_hypercube(two_of_integers([], []).graph, [1000, 1000], 8)
    assert cube == Hypercube((Dimension((0, 0)),), (8,))
    assert (cube.copies(0), cube.copies(1)) == (1, 1)


def test_without_a_key_the_larger_is_dealt_out_and_the_smaller_copied() -> None:
    case = Case(((pa.int64(),), (pa.int64(),)), (), ((), ()))
    cube = plan_hypercube(case.graph, [10_000, 10], 6)
    assert cube == Hypercube((Dimension((None, None), own=0),), (6,))
    assert (cube.copies(0), cube.copies(1)) == (1, 6)


def test_a_chain_has_an_axis_for_each_key_where_no_input_is_small() -> None:
    own = (pa.int64(), pa.int64())
    chain = Case((own, own, own), (((0, 0), (1, 0)), ((1, 1), (2, 0))), ((), (), ()))
    cube = plan_hypercube(chain.graph, [1000, 1000, 1000], 16)
    assert cube.shares == (4, 4)
    assert [cube.copies(relation) for relation in range(3)] == [4, 1, 4]
    small_end = plan_hypercube(chain.graph, [1000, 1000, 1], 16)
    assert [small_end.copies(relation) for relation in range(3)] == [1, 1, 16]


@pytest.mark.parametrize("keys", ["sequential", "stepped", "random"])
def test_keys_are_spread_evenly(keys: str) -> None:
    made = {
        "sequential": np.arange(40_000),
        "stepped": np.arange(40_000) * 4096,
        "random": np.random.default_rng(0).integers(0, 2**62, 40_000),
    }[keys]
    for share in (2, 3, 7, 16, 100):
        counts = np.bincount(coordinates(key_words(pa.array(made)), share), minlength=share)
        expected = len(made) / share
        assert abs(counts - expected).max() < 6 * math.sqrt(expected)


def test_rows_are_dealt_out_evenly_whatever_comes_first() -> None:
    cube = Hypercube((Dimension((None, None), own=0),), (5,))
    for first in (0, 3, 999):
        cells = cube.cells_of(0, [None], 1000, first)
        assert Counter(cells[:, 0].tolist()) == dict.fromkeys(range(5), 200)
        assert cube.cells_of(1, [None], 2, first).tolist() == [[0, 1, 2, 3, 4]] * 2
