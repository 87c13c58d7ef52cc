"""What a cascade promises."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real


@dataclass(frozen=True, slots=True)
class Targets:
    """The least recall and the least precision, and how often they may be missed.

    ``recall``: of the rows that the oracle would accept, at least this share is accepted.
    ``precision``: of the rows that are accepted, at least this share would the oracle accept.
    None where nothing is given away: the oracle is asked. Both hold together in all but a share
    ``delta`` of calibrations.
    """

    recall: float | None
    precision: float | None
    delta: float

    def __str__(self) -> str:
        """Return the targets in words."""
        wanted = {"recall": self.recall, "precision": self.precision}
        parts = [f"{name} {share:g}" for name, share in wanted.items() if share is not None]
        return f"{' and '.join(parts)} with probability {1 - self.delta:g}"


def checked_targets(recall: object, precision: object, delta: object) -> Targets:
    """Return targets; TypeError for what is no number, ValueError for what is no target."""
    if recall is None and precision is None:
        raise ValueError("recall= or precision= says what a cascade promises, as recall=0.95")
    return Targets(
        None if recall is None else _share(recall, "recall"),
        None if precision is None else _share(precision, "precision"),
        _share(delta, "delta"),
    )


def _share(given: object, name: str) -> float:
    if isinstance(given, bool) or not isinstance(given, Real):
        raise TypeError(f"{name} is a number between 0 and 1, not {given!r}")
    share = float(given)
    if math.isnan(share) or not 0 < share < 1:
        raise ValueError(f"{name} is a number between 0 and 1, not {given!r}")
    return share
