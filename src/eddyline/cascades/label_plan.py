"""For how many rows the oracle is asked to set thresholds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from eddyline.cascades.binomial_bounds import least_draws
from eddyline.cascades.targets import Targets

MOST_SHARE: Final = 0.4
"""Of all rows, the most that are labelled: with more there is little left to spare."""

LOOKS: Final = 4
"""At how many numbers of labels one may stop, each twice the one before."""

SMALL_SHARE: Final = 0.08
"""Of all rows, what may be labelled to have thresholds that give more rows to the proxy. The second
look, at 0.1, comes to that, also where the number of rows is only estimated."""

_ENOUGH, _AMPLE = 1.5, 4.0
"""Accepted rows, in times of the least that proves anything, after which labelling ends: where more
labels would cost more than a small share of the rows, and anywhere. With four times as many, the
rank that is proven is worth 2/3 of the target's allowance; with one, 1/3."""

_FORLORN = 0.7
"""Of the least accepted rows, what is to be expected in the end for labelling to go on."""


@dataclass(frozen=True, slots=True)
class LabelPlan:
    """After how many labels one looks whether there are enough.

    ``wanted`` is how many accepted rows prove anything for each target, ``some`` for one of them.
    Only labels decide when to stop, never scores: the proof of the thresholds needs that.
    """

    rows: int
    looks: tuple[int, ...]
    some: int
    wanted: int

    def is_over(self, labels: int, accepted: int) -> bool:
        """Whether no more labels are asked for after so many, of which some were accepted."""
        if not self.looks or labels >= self.looks[-1]:
            return True
        if accepted >= _AMPLE * self.wanted:
            return True
        if accepted >= _ENOUGH * self.wanted and labels >= SMALL_SHARE * self.rows:
            return True
        # At the first look a few accepted rows more or less are chance.
        expected = (accepted + 1) * self.looks[-1] / labels
        return expected < _FORLORN * self.some


def label_plan(rows: int, most: int, targets: Targets) -> LabelPlan:
    """Return the plan for a number of rows; it has no looks where labels would prove nothing.

    >>> from eddyline.cascades.targets import Targets
    >>> label_plan(10_000, 10_000, Targets(0.95, None, 0.05)).looks
    (500, 1000, 2000, 4000)
    >>> label_plan(100, 10_000, Targets(0.95, None, 0.05)).looks
    ()
    """
    needed = []
    both = targets.recall is not None and targets.precision is not None
    delta = targets.delta / 2 if both else targets.delta
    if targets.recall is not None:
        needed.append(least_draws(1 - targets.recall, delta))
    if targets.precision is not None:
        stays = 1.0 if targets.recall is None else targets.recall
        odds = stays * (1 - targets.precision) / targets.precision
        needed.append(least_draws(odds / (1 + odds), delta / LOOKS))
    last = min(most, math.floor(MOST_SHARE * rows))
    if last < min(needed):
        return LabelPlan(rows, (), min(needed), max(needed))
    first = (last >> step for step in reversed(range(LOOKS)))
    looks = tuple(dict.fromkeys(max(look, min(needed)) for look in first))
    return LabelPlan(rows, looks, min(needed), max(needed))
