"""Who asks for a condition, and who decides where its value is an error."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from eddyline.expressions.expression import Expression
from eddyline.expressions.vector import Scope, Vector
from eddyline.standing.engine.lineage import DEAD, Lineages, LineageSets


class Undecided(Protocol):
    """Evaluates for tuples of a batch, and decides of one for which that was an error."""

    def evaluated(
        self,
        expression: Expression,
        scope: Scope,
        positions: npt.NDArray[np.int64],
        constants: npt.NDArray[np.int64] | None = None,
    ) -> Vector:
        """Return an expression's values in a scope, which has the tuples at these positions.

        Each with the constants of that number, where there are any in the expression.
        """
        ...

    def wants(self, query: int, position: int, error: Exception) -> bool:
        """Tell whether a query wants a tuple after all; tell of its error where that counts."""
        ...


class AskedBy:
    """The queries that ask for something, with the number of their set."""

    def __init__(self) -> None:
        """Start without queries."""
        self.queries: set[int] = set()
        self._known: tuple[int, int] | None = None

    def add(self, queries: Iterable[int]) -> None:
        """Take further queries."""
        self.queries.update(queries)
        self._known = None

    def remove(self, queries: Collection[int]) -> None:
        """Forget queries."""
        self.queries.difference_update(queries)
        self._known = None

    def number(self, sets: LineageSets) -> int:
        """Return the number of the set of queries."""
        known = self._known
        if known is None or known[0] != sets.generation:
            known = self._known = sets.generation, sets.number(self.queries)
        return known[1]

    def positions(self, lineages: Lineages, sets: LineageSets) -> npt.NDArray[np.int64]:
        """Return the positions of tuples that are alive for a query that asks."""
        return np.flatnonzero(sets.within(lineages, self.number(sets)) != DEAD)
