"""Two thresholds on a proxy's scores, from the labels of rows that were drawn at random."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from eddyline.cascades.binomial_bounds import proven_false, proven_rank
from eddyline.cascades.targets import Targets


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What a proxy may decide.

    A row of a score above ``high`` is accepted, of the others one below ``low`` is dropped; for the
    rest the oracle is asked, as for a row without a score, None or NaN.

    >>> cut = Thresholds(low=0.2, high=0.9)
    >>> [cut.verdict(score) for score in (0.1, 0.2, 0.9, 0.95, math.nan)]
    [False, None, None, True, None]
    """

    low: float = -math.inf
    high: float = math.inf

    def verdict(self, score: float | None) -> bool | None:
        """Return whether a row of this score is accepted; None where the oracle is to be asked."""
        if score is None or math.isnan(score):
            return None
        if score > self.high:
            return True
        return False if score < self.low else None

    def less_of(self, other: Thresholds) -> Thresholds:
        """Return thresholds that decide what both decide alike, which keep the targets of both."""
        return Thresholds(min(self.low, other.low), max(self.high, other.high))

    @property
    def decides(self) -> bool:
        """Whether there is any score for which the oracle is not asked."""
        return self.low > -math.inf or self.high < math.inf


ASK_ALL: Final = Thresholds()
"""The oracle is asked for every row, which is always right."""


def proven_thresholds(
    scores: Sequence[float | None], labels: Sequence[bool], targets: Targets, looks: int = 1
) -> Thresholds:
    """Return the thresholds that give most rows to the proxy and are proven to keep the targets.

    ``scores`` and ``labels`` are those of rows drawn uniformly from all, with or without
    replacement. How many were drawn may hang on the labels, not on the scores. Then, with
    probability 1 - delta:

    - *Recall.* Given their labels, the scores of accepted rows are draws from the scores of all
      rows that the oracle accepts, so one of the smallest of them is a lower bound for a quantile
      of these (:func:`~eddyline.cascades.binomial_bounds.proven_rank`).
    - *Precision.* Of the rows that the oracle accepts, at least the target of recall stays. What is
      to be shown of a threshold is that the rows above it which the oracle rejects are few beside
      these. From the highest threshold down, it gets worse with each such row: the tests are a
      sequence with one first wrong one, and the first that fails ends it. ``looks`` is at how many
      numbers of labels one could have stopped; each has its part of delta, since labels decide.

    Either has half of delta where both are wanted.
    """
    both = targets.recall is not None and targets.precision is not None
    delta = targets.delta / 2 if both else targets.delta
    low, high = -math.inf, math.inf
    known = [math.nan if score is None else score for score in scores]
    if targets.recall is not None:
        # A row without a score is never dropped, as if its score were above all others.
        accepted = sorted(
            math.inf if math.isnan(score) else score
            for score, label in zip(known, labels, strict=True)
            if label
        )
        rank = proven_rank(len(accepted), 1 - targets.recall, delta)
        if rank and math.isfinite(accepted[rank - 1]):
            low = accepted[rank - 1]
    if targets.precision is not None:
        high = _high(known, labels, targets, delta / looks)
    return Thresholds(low, high)


def _high(scores: Sequence[float], labels: Sequence[bool], targets: Targets, delta: float) -> float:
    """Return the threshold above which rows are accepted."""
    if targets.precision is None:
        return math.inf
    stays = 1.0 if targets.recall is None else targets.recall
    odds = stays * (1 - targets.precision) / targets.precision
    most = proven_false(sum(labels), odds / (1 + odds), delta)
    if most < 0:
        return math.inf
    # One without a score is never accepted unasked.
    rejected = sorted(
        (
            score
            for score, label in zip(scores, labels, strict=True)
            if not label and not math.isnan(score)
        ),
        reverse=True,
    )
    return rejected[most] if most < len(rejected) else -math.inf
