"""The values of a watched query's columns, by those of its block's outputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.engine.settling import cause
from eddyline.expressions import Argument, Call, Expression, evaluate
from eddyline.expressions.vector import Vector


class Values:
    """Evaluates expressions over the outputs of a block."""

    def __init__(self, expressions: Sequence[Expression]) -> None:
        """``Argument(i)`` in the expressions is output number i."""
        self._expressions = tuple(expressions)
        self._needed = tuple(
            {node.index for node in expression.walk() if isinstance(node, Argument)}
            for expression in self._expressions
        )

    def of(self, outputs: Sequence[pa.Array], rows: int) -> list[pa.Array]:
        """Return the values for rows; raise the first error of any."""
        return [self._value(expression, outputs, rows) for expression in self._expressions]

    def where_possible(self, outputs: Sequence[pa.Array], rows: int) -> list[pa.Array]:
        """Return the values for rows; NULL where one fails."""
        columns = []
        for expression in self._expressions:
            vector = evaluate(expression, WatchedColumns(outputs, rows))
            failed = np.zeros(rows, np.bool_)
            failed[list(vector.errors)] = True
            values = vector.values
            columns.append(pc.if_else(pa.array(failed), None, values) if vector.errors else values)
        return columns

    def known(self, outputs: Sequence[pa.Array | None], rows: int) -> list[pa.Array | None]:
        """Return the values for rows without some outputs; None where one of these is needed."""
        given = [pa.nulls(rows) if output is None else output for output in outputs]
        missing = {number for number, output in enumerate(outputs) if output is None}
        return [
            None if needed & missing else self._value(expression, given, rows)
            for expression, needed in zip(self._expressions, self._needed, strict=True)
        ]

    def _value(self, expression: Expression, outputs: Sequence[pa.Array], rows: int) -> pa.Array:
        if isinstance(expression, Argument):
            return outputs[expression.index]
        vector = evaluate(expression, WatchedColumns(outputs, rows))
        if vector.errors:
            raise cause(vector.errors[min(vector.errors)])
        return vector.values


class WatchedColumns:
    """Columns as the scope of an expression without calls."""

    def __init__(self, columns: Sequence[pa.Array], rows: int) -> None:
        """``Argument(i)`` is column number i of so many rows."""
        self._columns = columns
        self._rows = rows

    def argument(self, index: int) -> pa.Array:
        """Return a column."""
        return self._columns[index]

    def call(self, call: Call) -> Vector:
        """Raise: calls are outputs themselves."""
        raise AssertionError(f"{call} is an output")

    def narrow(self, positions: npt.NDArray[np.int64]) -> WatchedColumns:
        """Return some of the rows."""
        places = pa.array(positions)
        return WatchedColumns([column.take(places) for column in self._columns], len(positions))

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._rows
