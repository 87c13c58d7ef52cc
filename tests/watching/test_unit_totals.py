"""The variance of totals over units of one relation, or of pairs of units of two."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from eddyline.watching.unit_totals import UnitTotals

CELLS = np.random.default_rng(3).exponential(size=(4, 5, 2))  # rows, columns, measures
FACTORS = {"x": np.array([1.0]), "y": np.array([-0.5])}


def totals_of(rows: tuple[int, ...], columns: tuple[int, ...]) -> UnitTotals:
    totals = UnitTotals(CELLS.shape[:2], ("x", "y"))
    places = np.zeros(len(rows) * len(columns), np.int64)
    numbers = np.array(list(product(range(len(rows)), range(len(columns)))))
    cells = CELLS[np.ix_(rows, columns)].reshape(-1, 2)
    for part in (slice(0, 2), slice(2, None)):  # cells come as they are joined
        totals.add(places[part], list(numbers[part].T), cells[part])
    totals.done[:] = len(rows), len(columns)
    return totals


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (2, 3), (3, 4), (4, 3), (4, 5)])
def test_the_variance_is_that_of_all_samples(rows: int, columns: int) -> None:
    """On the average over all samples: an estimate without bias."""
    estimates, variances = [], []
    for chosen in combinations(range(4), rows):
        for others in combinations(range(5), columns):
            totals = totals_of(chosen, others)
            estimates.append(totals.total("x", 1)[0] - 0.5 * totals.total("y", 1)[0])
            found = totals.variance(FACTORS)
            assert found.known
            variances.append((sum(found.of_inputs) - found.twice)[0])
            greatest = max(part[0] for part in found.of_inputs)
            assert found.whole[0] == pytest.approx(max(variances[-1], greatest))
    assert np.mean(estimates) == pytest.approx((CELLS @ [1.0, -0.5]).sum())
    assert np.mean(variances) == pytest.approx(np.var(estimates))


def test_entries_are_added_up_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = totals_of((0, 2, 3), (1, 4)).variance(FACTORS)
    monkeypatch.setattr("eddyline.watching.unit_totals.ADDED_AT_ONCE", 1)
    again = totals_of((0, 2, 3), (1, 4)).variance(FACTORS)
    assert np.allclose(np.stack(again.of_inputs), np.stack(whole.of_inputs))
    assert np.allclose(again.twice, whole.twice)
    assert np.allclose(again.degrees, whole.degrees)


def test_one_unit_varies_from_no_other() -> None:
    assert not totals_of((1,), (0, 2, 3)).known
    assert not totals_of((1, 2), (3,)).known


def test_three_relations_are_too_many() -> None:
    with pytest.raises(ValueError, match="not the units of one or two relations"):
        UnitTotals((2, 2, 2), ("x",))
