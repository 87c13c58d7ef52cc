"""Where the components of tuples are: the values behind the row numbers of a batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.batch import Rows, TupleBatch, as_array, spread
from eddyline.engine.join_graph import Place
from eddyline.engine.join_query import JoinQuery
from eddyline.engine.relation import Relation, RowScope
from eddyline.engine.signature import Signature
from eddyline.expressions import Call, Expression
from eddyline.expressions.vector import Vector


class ComponentStores:
    """For each relation of a query its rows in the SteM, and those that are only passing.

    A component of a tuple is a row of the one if the signature says built, else of the other.
    """

    def __init__(
        self, query: JoinQuery, built: Sequence[Relation], passing: Sequence[Relation]
    ) -> None:
        """``built`` and ``passing`` have one holder of rows for each relation, by its number."""
        self.query = query
        self.built = tuple(built)
        self.passing = tuple(passing)

    def of(self, signature: Signature, relation: int) -> Relation:
        """Return where the rows of a relation's components are."""
        return (self.built if signature.built >> relation & 1 else self.passing)[relation]

    def places(self, batch: TupleBatch, relation: int) -> npt.NDArray[np.int64]:
        """Return the places of a relation's components in arrays beside its store."""
        rows = required_rows(batch, relation)
        first = self.of(batch.signature, relation).store.first
        return as_array(rows) - first if first else as_array(rows)

    def column(self, batch: TupleBatch, place: Place) -> pa.Array:
        """Return the values that tuples have in a column."""
        holder = self.of(batch.signature, place.relation)
        return holder.column(place.column, required_rows(batch, place.relation))

    def forget_collective_failures(self, expression: Expression, batch: TupleBatch) -> None:
        """Let tuples whose calls failed only together with others be tried again."""
        relations = self.query.relations_in(expression)
        for relation, rows in enumerate(batch.rows):
            if rows is not None and relations >> relation & 1:
                holder = self.of(batch.signature, relation)
                holder.forget_collective_failures(expression, rows)

    def scope(self, batch: TupleBatch) -> TupleScope:
        """Return the place where expressions find the values of tuples."""
        return TupleScope(self, batch.signature, batch.rows)


class TupleScope:
    """The values of columns and calls for tuples of one signature."""

    __slots__ = ("_calls", "_columns", "_components", "_signature", "rows")

    def __init__(
        self, components: ComponentStores, signature: Signature, rows: tuple[Rows | None, ...]
    ) -> None:
        self._components = components
        self._signature = signature
        self._columns: dict[int, pa.Array] = {}
        self._calls: dict[Call, Vector] = {}
        self.rows = rows

    def __len__(self) -> int:
        """Return the number of tuples."""
        return len(TupleBatch(self._signature, self.rows))

    def argument(self, index: int) -> pa.Array:
        """Return the values of a column of the query."""
        column = self._columns.get(index)
        if column is None:
            relation, place = self._components.query.place_of(index)
            holder = self._components.of(self._signature, relation)
            column = self._columns[index] = holder.column(place, self._rows_of(relation))
        return column

    def call(self, call: Call) -> Vector:
        """Return a call's results: for a call over one relation, once for each of its rows."""
        known = self._calls.get(call)
        if known is None:
            known = self._calls[call] = self._computed(call)
        return known

    def narrow(self, positions: npt.NDArray[np.int64]) -> TupleScope:
        """Return the scope of the tuples at ``positions``."""
        rows = tuple(None if part is None else spread(part, positions) for part in self.rows)
        return TupleScope(self._components, self._signature, rows)

    def _rows_of(self, relation: int) -> Rows:
        rows = self.rows[relation]
        if rows is None:
            raise ValueError(f"{self._signature} does not span relation {relation}")
        return rows

    def _computed(self, call: Call) -> Vector:
        query = self._components.query
        mask = query.relations_in(call)
        relation = max(mask.bit_length() - 1, 0)
        holder = self._components.of(self._signature, relation)
        if not mask or mask & (mask - 1):
            return holder.compute(call, self)
        rows = self._rows_of(relation)
        if isinstance(rows, range):
            return holder.results(call, ColumnScope(holder, rows, query.offsets[relation]))
        distinct, back = np.unique(rows, return_inverse=True)
        vector = holder.results(call, ColumnScope(holder, distinct, query.offsets[relation]))
        errors = (
            {at: vector.errors[d] for at, d in enumerate(back.tolist()) if d in vector.errors}
            if vector.errors
            else vector.errors
        )
        return Vector(vector.values.take(pa.array(back)), errors)


class ColumnScope(RowScope):
    """Rows of one relation, whose columns are numbered as those of the whole query."""

    __slots__ = ("_offset",)

    def __init__(self, relation: Relation, rows: Rows, offset: int) -> None:
        super().__init__(relation, rows)
        self._offset = offset

    def argument(self, index: int) -> pa.Array:
        """Return the values of a column of the query, which is one of this relation's."""
        return super().argument(index - self._offset)

    def narrow(self, positions: npt.NDArray[np.int64]) -> RowScope:
        """Return the scope of the rows at ``positions``."""
        return ColumnScope(self._relation, spread(self.rows, positions), self._offset)


def required_rows(batch: TupleBatch, relation: int) -> Rows:
    """Return the rows of a relation's components; ValueError where there are none."""
    rows = batch.rows[relation]
    if rows is None:
        raise ValueError(f"{batch.signature} does not span relation {relation}")
    return rows
