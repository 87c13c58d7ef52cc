"""Precision sharing, counted: what was done to a tuple twice, and what was made for nobody.

Krishnamurthy et al. (2004, Section 3): PS1, "for each tuple processed, any given operation may
be applied to it, or any copy of it, at most once"; PS2, "no operator shall produce a zombie".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from eddyline.expressions import Expression

Arrivals = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Precision:
    """``repeated`` operations beyond the first on a tuple or a copy of it (PS1), by kind.

    ``made`` is what joins have made, a tuple as often as it was made.
    """

    repeated: dict[str, int]
    made: int


class Audit:
    """Notes every operation on every tuple: memory grows with all that is done."""

    def __init__(self) -> None:
        self._done: Counter[tuple[str, *tuple[Hashable, ...]]] = Counter()
        self.tuples: list[tuple[int, tuple[int, ...]]] = []
        """What joins have made: the streams spanned, and the arrival of each component."""

    def evaluated(self, stream: int, expression: Expression, arrivals: Arrivals) -> None:
        """Note that an expression was evaluated for the components of tuples."""
        for arrival in arrivals.tolist():
            self._done["evaluate", stream, expression, arrival] += 1

    def compared(
        self,
        spanned: int,
        expression: Expression,
        arrivals: Sequence[Arrivals],
        constants: Arrivals,
    ) -> None:
        """Note that an expression was evaluated for joined tuples, with numbered constants."""
        self._done.update(
            ("compare", spanned, expression, of_tuple, each)
            for of_tuple, each in zip(constants.tolist(), _each(arrivals), strict=True)
        )

    def selected(self, stream: int, arrivals: Arrivals) -> None:
        """Note that the selections on a stream were evaluated for its components of tuples."""
        self._done.update(("select", stream, arrival) for arrival in arrivals.tolist())

    def built(self, stream: int, arrivals: Arrivals) -> None:
        """Note that rows of a stream were stored."""
        self._done.update(("build", stream, arrival) for arrival in arrivals.tolist())

    def probed(self, join: Hashable, spanned: int, arrivals: Sequence[Arrivals]) -> None:
        """Note that tuples have probed."""
        self._done.update(("probe", join, spanned, each) for each in _each(arrivals))

    def put_out(self, spanned: int, arrivals: Sequence[Arrivals]) -> None:
        """Note that tuples were put out."""
        self._done.update(("output", spanned, each) for each in _each(arrivals))

    def made(self, spanned: int, arrivals: Sequence[Arrivals]) -> None:
        """Note that a join has made tuples."""
        self.tuples += ((spanned, each) for each in _each(arrivals))

    def precision(self) -> Precision:
        """Return what was counted."""
        repeated: Counter[str] = Counter()
        for (kind, *_), times in self._done.items():
            repeated[kind] += times - 1
        return Precision({k: n for k, n in repeated.items() if n}, len(self.tuples))


def _each(arrivals: Sequence[Arrivals]) -> list[tuple[int, ...]]:
    return list(zip(*(each.tolist() for each in arrivals), strict=True))
