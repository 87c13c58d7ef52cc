"""What a user wants sooner than the rest: tuples are told apart by a predicate, and marked.

Raman, Deshpande and Hellerstein (2003, Sections 4.1 and 4.6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from eddyline.engine.batch import TupleBatch
from eddyline.engine.components import ComponentStores
from eddyline.engine.join_graph import JoinGraph, Place
from eddyline.engine.signature import Signature
from eddyline.expressions import Argument, Expression, calls_in, require_boolean, with_arguments
from eddyline.expressions.terms import decide, terms_of

PREFERRED = 10.0
"""What a row that a user prefers is worth beside another, unless told otherwise."""


class Preference:
    """Rows that satisfy a predicate are worth ``weight`` times as much as others.

    A tuple is marked as soon as it has a value for each column of the predicate. That need not
    be the column itself: where R.a = S.b, a preference for values of R.a is one for the same
    values of S.b, in every tuple of S. The mark is part of the signature, so tuples that are
    preferred wait in lanes of their own, and routing sees no row.

    It is about time and not about answers: a predicate that is NULL or fails for a row
    says only that it is not preferred.
    """

    def __init__(self, number: int, predicate: Expression, weight: float) -> None:
        """``number`` counts preferences from 1 on: marks of others mean nothing.

        ValueError for a weight that is not above 0 and finite, for what is no predicate, and
        for one that calls a user's functions, which a mark is not worth.
        """
        if not (0.0 < weight < math.inf):
            raise ValueError(f"the weight of a preference is a number above 0, not {weight}")
        require_boolean(predicate)
        if calls_in(predicate):
            raise ValueError("a preference calls no function: prefer by values of columns")
        self.predicate = predicate
        self.weight = weight
        self._other, self._preferred = 2 * number, 2 * number + 1

    def weight_of(self, signature: Signature) -> float:
        """Return the weight of tuples; 1 for those that are not known to satisfy the predicate."""
        return self.weight if signature.mark == self._preferred else 1.0

    def has_marked(self, signature: Signature) -> bool:
        """Tell whether tuples bear one of its marks."""
        return signature.mark in (self._other, self._preferred)

    def marked(
        self, batch: TupleBatch, graph: JoinGraph, components: ComponentStores
    ) -> Sequence[TupleBatch]:
        """Return tuples under signatures with its marks, as far as they can be told apart."""
        signature = batch.signature
        predicate = over(graph, self.predicate, signature.spanned)
        if predicate is None:
            return [batch.under(signature._replace(mark=0))]
        preferred, _ = decide(terms_of(predicate), components.scope(batch))
        marks = ((preferred, self._preferred), (~preferred, self._other))
        return [
            batch.keep(chosen, signature._replace(mark=mark))
            for chosen, mark in marks
            if np.any(chosen)
        ]


def sorting(
    preference: Preference | None, graph: JoinGraph, components: ComponentStores
) -> Callable[[TupleBatch], Sequence[TupleBatch]]:
    """Return a function that tells tuples apart by a preference, once; None removes marks."""

    def sort(batch: TupleBatch) -> Sequence[TupleBatch]:
        if preference is None:
            return [batch.under(batch.signature._replace(mark=0))]
        if preference.has_marked(batch.signature):
            return [batch]
        return preference.marked(batch, graph, components)

    return sort


def over(graph: JoinGraph, predicate: Expression, spanned: int) -> Expression | None:
    """Return a predicate over columns that tuples have; None where they lack a value."""
    query = graph.query

    def here(column: Argument) -> Expression:
        place = Place(*query.place_of(column.index))
        equal = next((places for places in graph.classes if place in places), (place,))
        for known in (place, *equal):
            if spanned >> known.relation & 1:
                return query.column(*known)
        raise LookupError

    try:
        return with_arguments(predicate, here)
    except LookupError:
        return None
