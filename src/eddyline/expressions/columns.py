"""Columns at hand as the scope of expressions over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.expressions.expression import Call


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns by the numbers that arguments have, each of so many ``rows``; no function is called.

    Fulfils :class:`~eddyline.expressions.vector.Scope`; ValueError for a call.
    """

    columns: Mapping[int, pa.Array]
    rows: int

    def argument(self, index: int) -> pa.Array:
        """Return a column; KeyError for one that is not there."""
        return self.columns[index]

    def call(self, call: Call) -> NoReturn:
        """Refuse."""
        raise ValueError(f"{call} is no expression over columns alone")

    def narrow(self, positions: npt.NDArray[np.int64]) -> Columns:
        """Return the scope of some of the rows."""
        chosen = pa.array(positions)
        taken = {number: column.take(chosen) for number, column in self.columns.items()}
        return Columns(taken, len(positions))

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.rows
