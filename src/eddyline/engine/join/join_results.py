"""The rows of a result: joined ones, whose errors count, and partial ones before all is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eddyline.engine.batch import TupleBatch
from eddyline.engine.components import ComponentStores
from eddyline.engine.join_graph import JoinGraph
from eddyline.engine.join_query import JoinQuery
from eddyline.engine.modules.join_selection import JoinSelection
from eddyline.engine.settling import Held, Verdict, cause, settle
from eddyline.engine.signature import Signature
from eddyline.expressions import Call, Expression, evaluate
from eddyline.expressions.vector import CollectiveFailure, Scope, Vector


@dataclass(frozen=True, slots=True)
class Joined:
    """Joined rows: an array for each output of the query."""

    outputs: tuple[pa.Array, ...]
    rows: int


class JoinResults:
    """Makes joined rows of the tuples that have visited all modules."""

    def __init__(
        self, query: JoinQuery, components: ComponentStores, selections: Sequence[JoinSelection]
    ) -> None:
        self._query = query
        self._components = components
        self._selections = tuple(selections)
        self._everything = (1 << len(query.relations)) - 1
        self.rows = 0  # in all so far

    def joined(self, finished: list[TupleBatch]) -> Iterator[Joined]:
        """Turn finished tuples into rows; errors that they hold count now."""
        for batch in finished:
            if batch.signature.spanned != self._everything:
                raise AssertionError(f"{batch.signature} has nowhere to go")
            settled = self._settled(batch)
            if not len(settled):
                continue
            scope = self._components.scope(settled)
            outputs = tuple(self._output(output, settled, scope) for output in self._query.outputs)
            self.rows += len(settled)
            yield Joined(outputs, len(settled))

    def _settled(self, batch: TupleBatch) -> TupleBatch:
        """Raise the first error that a tuple holds; return the tuples that pass after all."""
        held: dict[int, dict[int, Held]] = {}
        for number, selection in enumerate(self._selections):
            for position, outcome in selection.held(batch):
                held.setdefault(position, {})[number] = outcome
        if not held:
            return batch

        def ask_again(selection: int, positions: Sequence[int]) -> list[Verdict]:
            asked = batch.at(np.array(positions), batch.signature)
            return self._selections[selection].ask_again(asked)

        rejected = settle(held, ask_again)
        if not rejected:
            return batch
        mask = np.ones(len(batch), np.bool_)
        mask[list(rejected)] = False
        return batch.keep(mask, batch.signature)

    def _output(self, output: Expression, batch: TupleBatch, scope: Scope) -> pa.Array:
        """Return an output's values for tuples that are wanted; its errors count at once."""
        vector: Vector = evaluate(output, scope)
        if any(isinstance(error, CollectiveFailure) for error in vector.errors.values()):
            # Rows that nobody wants may have failed them.
            self._components.forget_collective_failures(output, batch)
            vector = evaluate(output, self._components.scope(batch))
        if vector.errors:
            raise cause(vector.errors[min(vector.errors)])
        return vector.values


@dataclass(frozen=True, slots=True)
class Partial:
    """Partial rows: an array for each output that is known, None for each that is not.

    ``spanned`` is the mask of the relations that they have components of.
    """

    outputs: tuple[pa.Array | None, ...]
    rows: int
    spanned: int


class PartialResults:
    """Notes the tuples that come into being on the way to the result.

    A tuple is noted once, when it has passed all predicates over the relations that it spans.
    No tuple is noted twice: an eddy that obeys the routing constraints makes each only once
    (Raman, Deshpande and Hellerstein, 2003, Theorem 3). It may still turn out to be part of no
    row of the result. Outputs that call functions are not known before the end.
    """

    def __init__(self, graph: JoinGraph, components: ComponentStores) -> None:
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
