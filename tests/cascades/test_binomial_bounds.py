"""Bounds on counts of labels, compared with exact sums."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest

from eddyline.cascades.binomial_bounds import (
    binomial_tail,
    least_draws,
    proven_false,
    proven_rank,
)


def exact_tail(most: int, draws: int, share: Fraction) -> float:
    """The tail by fractions."""
    return float(
        sum(
            comb(draws, hits) * share**hits * (1 - share) ** (draws - hits)
            for hits in range(most + 1)
        )
    )


def hypergeometric_tail(most: int, draws: int, marked: int, rows: int) -> float:
    """The tail of drawing without replacement."""
    return float(
        sum(
            Fraction(comb(marked, hits) * comb(rows - marked, draws - hits), comb(rows, draws))
            for hits in range(most + 1)
        )
    )


@pytest.mark.parametrize("draws", [1, 7, 60, 500])
@pytest.mark.parametrize("share", [Fraction(1, 100), Fraction(1, 20), Fraction(1, 3)])
def test_the_tail_is_that_of_the_binomial(draws: int, share: Fraction) -> None:
    for most in range(-1, min(draws, 40) + 1):
        expected = exact_tail(most, draws, share)
        assert binomial_tail(most, draws, float(share)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("share", [0.02, 0.05, 0.1, 0.3])
@pytest.mark.parametrize("delta", [0.2, 0.05, 0.01])
def test_ranks_are_the_greatest_that_are_proven(share: float, delta: float) -> None:
    for draws in range(1, 400, 7):
        rank = proven_rank(draws, share, delta)
        if rank:
            assert binomial_tail(rank - 1, draws, share) <= delta
        else:
            assert draws < least_draws(share, delta)
        assert rank <= max(1, draws * share)


@pytest.mark.parametrize("share", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("delta", [0.2, 0.05, 0.01])
def test_few_false_ones_prove_that_they_are_few(share: float, delta: float) -> None:
    for true in range(1, 400, 7):
        false = proven_false(true, share, delta)
        if false >= 0:
            assert binomial_tail(false, true + false, share) <= delta
        else:
            assert true < least_draws(share, delta)


@pytest.mark.parametrize("rows", [100, 400, 2_000])
@pytest.mark.parametrize("share", [0.05, 0.1, 0.25])
def test_drawing_without_replacement_is_no_riskier(rows: int, share: float) -> None:
    """What is proven at delta by draws with replacement is wrong no more often without it."""
    delta = 0.05
    marked = int(share * rows) + 1  # the fewest of which the claim is wrong
    for draws in range(10, rows, max(1, rows // 20)):
        rank = proven_rank(draws, share, delta)
        if rank:
            assert hypergeometric_tail(rank - 1, draws, marked, rows) <= delta
