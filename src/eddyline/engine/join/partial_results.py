"""Partial results: what is known of rows of the result before all of their components are."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from eddyline.engine.batch import TupleBatch
from eddyline.engine.components import ComponentStores
from eddyline.engine.join_graph import JoinGraph
from eddyline.engine.signature import Signature
from eddyline.expressions import evaluate
from eddyline.expressions.expression import Call, Expression


@dataclass(frozen=True, slots=True)
class Partial:
    """Partial rows: an array for each output that is known, None for each that is not.

    ``spanned`` is the mask of the relations of which they have a component.
    """

    outputs: tuple[pa.Array | None, ...]
    rows: int
    spanned: int


class PartialResults:
    """Notes the tuples that come into being on the way to the result.

    A tuple is noted once, when it has passed all predicates over the relations that it spans.
    No tuple is noted twice: an eddy that obeys the routing constraints makes each but once
    (Raman, Deshpande and Hellerstein, 2003, Theorem 3). It may still turn out to be part of no
    row of the result. Outputs that call functions are not known before the end.
    """

    def __init__(self, graph: JoinGraph, components: ComponentStores) -> None:
        """Look at tuples of a query's eddy."""
        self._components = components
        self._masks = tuple(mask or 1 for mask in graph.masks)
        query = graph.query
        self._everything = (1 << len(query.relations)) - 1
        self._built = sum(
            1 << r for r, relation in enumerate(query.relations) if not relation.only_scanned
        )
        self._outputs = tuple(
            (output, query.relations_in(output), _calls(output)) for output in query.outputs
        )
        self._noted: list[Partial] = []

    def note(self, before: Signature | None, batch: TupleBatch) -> None:
        """Look at tuples that a module returns; ``before`` is what it was given, if anything."""
        signature = batch.signature
        if not self._is_partial(signature):
            return
        if before is not None:
            if before.spanned & ~signature.spanned:
                return  # released by what was built: it was noted before it had to wait
            if before.spanned == signature.spanned and self._is_partial(before):
                return
        scope = self._components.scope(batch)
        outputs = tuple(
            None if calls or mask & ~signature.spanned else evaluate(output, scope).values
            for output, mask, calls in self._outputs
        )
        self._noted.append(Partial(outputs, len(batch), signature.spanned))

    def take(self) -> list[Partial]:
        """Return what was noted since the last time."""
        noted, self._noted = self._noted, []
        return noted

    def _is_partial(self, signature: Signature) -> bool:
        """Tell whether tuples of a signature count as partial results."""
        spanned = signature.spanned
        if spanned == self._everything or self._built & spanned & ~signature.built:
            return False  # a copy may be dropped when it is to be built
        return all(
            signature.done >> predicate & 1
            for predicate, mask in enumerate(self._masks)
            if not mask & ~spanned
        )


def _calls(output: Expression) -> bool:
    return any(isinstance(node, Call) for node in output.walk())
