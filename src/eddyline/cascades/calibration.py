"""How a cascade's thresholds came about: labels of rows drawn at random, look by look."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from eddyline.cascades.label_plan import LOOKS, label_plan
from eddyline.cascades.targets import Targets
from eddyline.cascades.thresholds import ASK_ALL, Thresholds, proven_thresholds

Label: TypeAlias = tuple[float | None, bool]
"""A row's score by the proxy, and whether the oracle accepts it."""

Labeller: TypeAlias = Callable[[int, int], list[Label]]
"""Returns the labels of drawn rows, from one place to another in the order of drawing."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The thresholds of a cascade in a query, and what they rest on.

    Of about ``rows`` rows, ``labels`` drawn at random were shown to the oracle, which accepted
    ``accepted`` of them. ``spared`` is the share of these for which the thresholds would not have
    asked it. With no labels at all, ``why`` says why not.
    """

    name: str
    targets: Targets
    thresholds: Thresholds = ASK_ALL
    rows: int = 0
    labels: int = 0
    accepted: int = 0
    spared: float = 0.0
    why: str = ""

    def __str__(self) -> str:
        """Return it as lines of text."""
        lines = [f"Cascade {self.name}: {self.targets}"]
        if self.labels:
            lines.append(
                f"  asked for {self.labels:,} labels of about {self.rows:,} rows drawn at random; "
                f"{self.accepted:,} were accepted"
            )
        low, high = self.thresholds.low, self.thresholds.high
        if not self.thresholds.decides:
            why = self.why or "they prove nothing better"
            lines.append(f"  the oracle is asked for every row: {why}")
            return "\n".join(lines)
        cuts = []
        if low > high > -math.inf:  # what is left over is dropped
            low = high
        if high < math.inf:
            every = "every score" if high == -math.inf else f"scores above {high:.6g}"
            cuts.append(f"{every} accepted")
        if low > -math.inf:
            cuts.append(f"scores below {low:.6g} dropped")
        lines.append(
            f"  {', '.join(cuts)} by the proxy ({self.spared:.0%} of the rows drawn); "
            f"the oracle is asked for the rest"
        )
        return "\n".join(lines)


def calibrate(
    name: str, targets: Targets, rows: int, drawn: int, most: int, label: Labeller
) -> Calibration:
    """Set the thresholds of a cascade over so many rows, of which some were ``drawn``.

    ``most`` labels are asked for at the most. ``label`` may raise, and this raises the same.
    """
    plan = label_plan(rows, min(most, drawn), targets)
    if not plan.looks:
        why = f"{rows:,} rows are too few to prove anything about"
        return Calibration(name, targets, rows=rows, why=why)
    labelled: list[Label] = []
    for look in plan.looks:
        labelled += label(len(labelled), look)
        if plan.is_over(len(labelled), sum(accepted for _, accepted in labelled)):
            break
    scores = [score for score, _ in labelled]
    labels = [accepted for _, accepted in labelled]
    thresholds = proven_thresholds(scores, labels, targets, LOOKS)
    spared = sum(thresholds.verdict(score) is not None for score in scores) / len(scores)
    return Calibration(name, targets, thresholds, rows, len(labels), sum(labels), spared)
