"""The end of a tuple's way: it becomes a row of the result, and errors that it holds count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eddyline.engine.batch import TupleBatch
from eddyline.engine.join.components import ComponentStores
from eddyline.engine.modules.join_selection import Held, JoinSelection
from eddyline.evaluation import evaluate
from eddyline.evaluation.collective_failure import CollectiveFailure
from eddyline.evaluation.vector import Scope, Vector
from eddyline.query.expressions import Expression
from eddyline.query.join_query import JoinQuery


@dataclass(frozen=True, slots=True)
class Joined:
    """Joined rows: an array for each output of the query."""

    outputs: tuple[pa.Array, ...]
    rows: int


class Results:
    """Makes joined rows of the tuples that have visited all modules."""

    def __init__(
        self, query: JoinQuery, components: ComponentStores, selections: Sequence[JoinSelection]
    ) -> None:
        """Take what tuples point into, and the predicates that they may hold errors of."""
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
        held: dict[int, list[tuple[JoinSelection, Held]]] = {}
        for selection in self._selections:
            for position, found in selection.held(batch):
                held.setdefault(position, []).append((selection, found))
        rejected = []
        for position in sorted(held):
            one = batch.at(np.array([position]), batch.signature)
            errors: list[Exception] = []
            for selection, found in held[position]:
                verdict = (
                    selection.passes_alone(one) if isinstance(found, CollectiveFailure) else found
                )
                if verdict is False:
                    rejected.append(position)
                    break
                if isinstance(verdict, Exception):
                    errors.append(verdict)
            else:
                if errors:
                    raise errors[0]
        if not rejected:
            return batch
        mask = np.ones(len(batch), np.bool_)
        mask[rejected] = False
        return batch.keep(mask, batch.signature)

    def _output(self, output: Expression, batch: TupleBatch, scope: Scope) -> pa.Array:
        """Return an output's values for tuples that are wanted; its errors count at once."""
        vector: Vector = evaluate(output, scope)
        if any(isinstance(error, CollectiveFailure) for error in vector.errors.values()):
            # Rows that nobody wants may have failed them.
            self._components.forget_collective_failures(output, batch)
            vector = evaluate(output, self._components.scope(batch))
        if vector.errors:
            error = vector.errors[min(vector.errors)]
            raise error.error if isinstance(error, CollectiveFailure) else error
        return vector.values
