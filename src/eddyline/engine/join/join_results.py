"""The end of a tuple's way: it becomes a row of the result, and errors that it holds count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eddyline.engine.batch import TupleBatch
from eddyline.engine.components import ComponentStores
from eddyline.engine.join_query import JoinQuery
from eddyline.engine.modules.join_selection import JoinSelection
from eddyline.engine.settling import Held, Verdict, cause, settle
from eddyline.expressions import evaluate
from eddyline.expressions.collective_failure import CollectiveFailure
from eddyline.expressions.expression import Expression
from eddyline.expressions.vector import Scope, Vector


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
        held: dict[int, dict[int, Held]] = {}
        for number, selection in enumerate(self._selections):
            for position, found in selection.held(batch):
                held.setdefault(position, {})[number] = found
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
