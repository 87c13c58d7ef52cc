"""Where expressions find the values of joined tuples."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.batch import Rows, TupleBatch, spread
from eddyline.engine.components import ColumnScope
from eddyline.engine.relation import Relation
from eddyline.expressions import Argument, Call
from eddyline.expressions.vector import Vector
from eddyline.standing.engine.join_conditions import MOST_COLUMNS, streams_in
from eddyline.standing.engine.stems import StreamRows


class JoinedScope:
    """The values of columns and calls for joined tuples, arguments numbered as in conditions.

    Arguments below 0 are constants: for each tuple those of the query that asks.
    """

    __slots__ = ("_calls", "_columns", "_constants", "_rows", "_streams")

    def __init__(
        self,
        streams: tuple[StreamRows, ...],
        rows: tuple[Rows | None, ...],
        constants: Mapping[int, pa.Array] | None = None,
    ) -> None:
        self._streams = streams
        self._rows = rows
        self._constants = constants or {}
        self._columns: dict[int, pa.Array] = {}
        self._calls: dict[Call, Vector] = {}

    @classmethod
    def of(cls, streams: tuple[StreamRows, ...], batch: TupleBatch) -> JoinedScope:
        """Return the scope of the tuples of a batch."""
        return cls(streams, batch.rows)

    def __len__(self) -> int:
        """Return the number of tuples."""
        return next(len(rows) for rows in self._rows if rows is not None)

    def argument(self, index: int) -> pa.Array:
        """Return the values of a column of a stream, or of a constant."""
        if index < 0:
            return self._constants[index]
        column = self._columns.get(index)
        if column is None:
            stream, number = divmod(index, MOST_COLUMNS)
            column = self._streams[stream].built.column(number, self._rows_of(stream))
            self._columns[index] = column
        return column

    def call(self, call: Call) -> Vector:
        """Return a call's results: for a call over columns of one stream, once for each row."""
        known = self._calls.get(call)
        if known is None:
            known = self._calls[call] = self._computed(call)
        return known

    def narrow(self, positions: npt.NDArray[np.int64]) -> JoinedScope:
        """Return the scope of the tuples at ``positions``."""
        chosen = pa.array(positions)
        return JoinedScope(
            self._streams,
            self._spread(positions),
            {index: column.take(chosen) for index, column in self._constants.items()},
        )

    def asked(
        self, positions: npt.NDArray[np.int64], constants: Mapping[int, pa.Array]
    ) -> JoinedScope:
        """Return the scope of tuples, each as often as its position is given, with constants."""
        return JoinedScope(self._streams, self._spread(positions), constants)

    def holders(self) -> list[tuple[Relation, Rows]]:
        """Return where the components of tuples are, and their numbers there."""
        return [
            (held.built, rows)
            for held, rows in zip(self._streams, self._rows, strict=True)
            if rows is not None
        ]

    def _spread(self, positions: npt.NDArray[np.int64]) -> tuple[Rows | None, ...]:
        return tuple(None if rows is None else spread(rows, positions) for rows in self._rows)

    def _rows_of(self, stream: int) -> Rows:
        rows = self._rows[stream]
        if rows is None:
            raise ValueError(f"these tuples do not span stream {stream}")
        return rows

    def _computed(self, call: Call) -> Vector:
        mask = streams_in(call)
        stream = max(mask.bit_length() - 1, 0)
        holder = self._streams[stream].built
        constant = any(isinstance(node, Argument) and node.index < 0 for node in call.walk())
        if constant or not mask or mask & (mask - 1):
            return holder.compute(call, self)
        distinct, back = np.unique(self._rows_of(stream), return_inverse=True)
        vector = holder.results(call, ColumnScope(holder, distinct, stream * MOST_COLUMNS))
        errors = vector.errors
        if errors:
            errors = {at: errors[d] for at, d in enumerate(back.tolist()) if d in errors}
        return Vector(vector.values.take(pa.array(back)), errors)
