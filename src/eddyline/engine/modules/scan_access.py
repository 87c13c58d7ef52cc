"""Scan access methods: they give all rows of a relation, some at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Arrival:
    """Rows that have come in: one array a column, each of length ``rows``.

    ``done`` is the mask of the predicates that they have passed before they came, numbered as
    in :attr:`~eddyline.engine.join_graph.JoinGraph.predicates`.
    """

    columns: tuple[pa.Array, ...]
    rows: int
    done: int = 0


class ScanAccess(Protocol):
    """A scan access method: it gives all rows of a relation, some at a time."""

    @property
    def ended(self) -> bool:
        """Whether all rows were given: the end of transmission."""
        ...

    @property
    def expected_rows(self) -> float | None:
        """How many rows may still come; None where nobody knows."""
        ...

    def poll(self) -> Arrival | None:
        """Return the next rows; None where none are there now, or none are left."""
        ...


class HeldScan:
    """An input whose rows are all there."""

    def __init__(self, arrivals: Iterable[Arrival]) -> None:
        """``arrivals`` are the pieces in which the rows are read."""
        self._waiting = deque(arrivals)
        self._rows = sum(arrival.rows for arrival in self._waiting)

    @property
    def ended(self) -> bool:
        """Whether all rows were given."""
        return not self._waiting

    @property
    def expected_rows(self) -> float | None:
        """How many rows are left."""
        return self._rows

    def poll(self) -> Arrival | None:
        """Return the next rows."""
        if not self._waiting:
            return None
        arrival = self._waiting.popleft()
        self._rows -= arrival.rows
        return arrival
