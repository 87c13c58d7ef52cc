"""A column of results in which single rows may hold an error instead of a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.expressions.expression import Call

NO_ERRORS: Mapping[int, Exception] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Vector:
    """``values`` of length n, and the positions among them (0 to n-1) that failed.

    Where a position is in ``errors`` its value is NULL and means nothing: an
    error is a third thing beside a value and NULL, and travels with the row
    until the row is known to be wanted or not.
    """

    values: pa.Array
    errors: Mapping[int, Exception] = field(default_factory=lambda: NO_ERRORS)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.values)


class Function(Protocol):
    """A user's function as the engine calls it: columns in, one column out.

    It must return one result per row, in order, and must not raise for what the
    user's own code raises: such errors come back in :attr:`Vector.errors`.
    """

    @property
    def vectorized(self) -> bool:
        """Whether the user's code sees whole vectors, so that a visit has a large fixed cost."""
        ...

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        """Call the function for ``rows`` rows; each column has that length."""
        ...


class Scope(Protocol):
    """Where an expression finds the values of its leaves, for rows given by number."""

    def argument(self, index: int) -> pa.Array:
        """Return column ``index`` for the rows of this scope."""
        ...

    def call(self, call: Call) -> Vector:
        """Return a call's results; each row is computed at most once."""
        ...

    def narrow(self, positions: npt.NDArray[np.int64]) -> Scope:
        """Return the scope of some of the rows; ``positions`` point into this scope's rows."""
        ...

    def __len__(self) -> int:
        """Return the number of rows."""
        ...
