"""What is known of a predicate before an eddy has asked it anything."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Prior:
    """What tuples before these did at a predicate, under all signatures together.

    ``returned`` of ``tuples`` passed, which took ``cost`` a tuple, in the clock's unit. ``nested``
    are the terms of an AND or OR in their order, None for one of which nothing is known.
    A prior says where to begin: whatever it says, routing alone depends on it, and no answer.
    ValueError for what no predicate can have done: NaN, infinities, no tuples, fewer than none that
    pass or more than there were, and a cost below nothing.
    """

    tuples: float
    returned: float
    cost: float
    nested: tuple[Prior | None, ...] = ()

    def __post_init__(self) -> None:
        if not (math.isfinite(self.tuples) and self.tuples > 0.0):
            raise ValueError(f"a prior rests on a number of tuples above 0, not {self.tuples}")
        if not 0.0 <= self.returned <= self.tuples:
            raise ValueError(f"of {self.tuples} tuples there cannot have passed {self.returned}")
        if not (math.isfinite(self.cost) and self.cost >= 0.0):
            raise ValueError(f"a tuple costs 0 or more, not {self.cost}")

    @property
    def selectivity(self) -> float:
        """The share of the tuples that passed."""
        return self.returned / self.tuples

    def inverted(self) -> Prior:
        """Return what is known of a term of an OR, which those leave that it accepts."""
        return replace(self, returned=self.tuples - self.returned)


NO_PRIORS: Final[Mapping[int, Prior]] = MappingProxyType({})
"""Nothing is known of any module beforehand."""

Priors: TypeAlias = Sequence[Prior | None]
"""What is known beforehand of terms, in their order, None for those of which nothing is."""


def nested_priors(prior: Prior | None, terms: int) -> Priors:
    """Return what is known of the terms of an AND or OR with so many of them."""
    known = () if prior is None else prior.nested
    return known if len(known) == terms else (None,) * terms


def by_number(priors: Priors, *, inverted: bool = False) -> dict[int, Prior]:
    """Return what is known of the modules of terms, which may be ``inverted``, by their number."""
    return {
        number: prior.inverted() if inverted else prior
        for number, prior in enumerate(priors)
        if prior is not None
    }
