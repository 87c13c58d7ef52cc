"""How many of some labels may contradict a claim about all rows that is then still proven.

All bounds are exact for labels of rows drawn with or without replacement. Without it, a count of
labels is that of independent draws of unequal odds (Vatutin and Mikhailov, 1982), whose lower tail
is no heavier than the binomial one as far as the mean less one (Hoeffding, 1956); no bound here
looks beyond.
"""

from __future__ import annotations

import math


def binomial_tail(most: int, draws: int, share: float) -> float:
    """Return the probability of at most ``most`` hits in some draws that hit with odds ``share``.

    >>> round(binomial_tail(1, 3, 0.5), 6)
    0.5
    """
    if most < 0:
        return 0.0
    if most >= draws:
        return 1.0
    hit, miss = math.log(share), math.log1p(-share)
    terms = (
        math.exp(
            math.lgamma(draws + 1)
            - math.lgamma(hits + 1)
            - math.lgamma(draws - hits + 1)
            + hits * hit
            + (draws - hits) * miss
        )
        for hits in range(most + 1)
    )
    return min(1.0, math.fsum(terms))


def least_draws(share: float, delta: float) -> int:
    """Return how many draws, with no hit among them, prove that less than ``share`` would hit.

    >>> least_draws(0.05, 0.05)
    59
    """
    return math.ceil(math.log(delta) / math.log1p(-share))


def proven_rank(draws: int, share: float, delta: float) -> int:
    """Return the k such that at most ``share`` of all values are below the k-th smallest of some.

    Wrong with probability ``delta`` at most, whatever the values, however many are equal; 0 where
    there are too few draws. Were more of all values below that one, fewer than k draws would be
    among the smallest ``share`` of all, of which each draw is one with odds of ``share`` or more.

    >>> [proven_rank(draws, 0.05, 0.05) for draws in (58, 59, 93, 400)]
    [0, 1, 2, 13]
    """
    most = math.floor(draws * share)
    rank = 0
    while rank < max(1, most) and binomial_tail(rank, draws, share) <= delta:
        rank += 1
    return rank


def proven_false(true: int, share: float, delta: float) -> int:
    """Return how many false ones may be beside some true ones, so that ``share`` of all is less.

    -1 where even none proves nothing. Wrong with probability ``delta`` at most.

    >>> [proven_false(true, 0.05, 0.05) for true in (58, 59, 92, 400)]
    [-1, 0, 1, 13]
    """
    false = 0
    while binomial_tail(false, true + false, share) <= delta:
        if false > max(0.0, share * (true + false) - 1):
            break
        false += 1
    return false - 1
