"""What an eddy has seen of its modules, per signature."""

from __future__ import annotations

import math
from dataclasses import dataclass

from eddyline.engine.signature import Signature


@dataclass(frozen=True, slots=True)
class VisitStatistics:
    """Totals of the visits that tuples of one signature paid to one module.

    ``seconds`` is in the unit of the clock. ``rows_out`` may exceed ``rows_in``
    where a module joins.
    """

    visits: int = 0
    rows_in: int = 0
    rows_out: int = 0
    seconds: float = 0.0

    @property
    def selectivity(self) -> float:
        """Tuples returned for a tuple given; 1 where nothing was seen."""
        return self.rows_out / self.rows_in if self.rows_in else 1.0

    @property
    def cost(self) -> float:
        """Seconds for a tuple given; 0 where nothing was seen."""
        return self.seconds / self.rows_in if self.rows_in else 0.0


@dataclass(frozen=True, slots=True)
class EddyStatistics:
    """One eddy's totals: ``visits`` per (signature, module), and what routing cost."""

    visits: dict[tuple[Signature, int], VisitStatistics]
    decisions: int
    work_seconds: float
    routing_seconds: float


class StatisticsTable:
    """Running totals per (signature, module), for policies and reports."""

    def __init__(self) -> None:
        """Start with nothing seen."""
        self._cells: dict[tuple[Signature, int], list[float]] = {}

    def record(
        self, signature: Signature, module: int, rows_in: int, rows_out: int, seconds: float
    ) -> None:
        """Add one visit."""
        cell = self._cells.get((signature, module))
        if cell is None:
            self._cells[signature, module] = [1, rows_in, rows_out, seconds]
        else:
            cell[0] += 1
            cell[1] += rows_in
            cell[2] += rows_out
            cell[3] += seconds

    def of(self, signature: Signature, module: int) -> VisitStatistics:
        """Return the totals of one signature at one module."""
        cell = self._cells.get((signature, module))
        if cell is None:
            return VisitStatistics()
        return VisitStatistics(int(cell[0]), int(cell[1]), int(cell[2]), cell[3])

    def rank(self, signature: Signature, module: int) -> float:
        """Return (selectivity - 1) / cost, the lower the sooner; minus infinity where unseen."""
        cell = self._cells.get((signature, module))
        if cell is None:
            return -math.inf
        _, rows_in, rows_out, seconds = cell
        # Both sides multiplied by rows_in: (out/in - 1) / (seconds/in).
        return (rows_out - rows_in) / max(seconds, 1e-300)

    def of_module(self, module: int) -> VisitStatistics:
        """Return a module's totals over all signatures."""
        visits = rows_in = rows_out = 0
        seconds = 0.0
        for (_, visited), cell in self._cells.items():
            if visited == module:
                visits += int(cell[0])
                rows_in += int(cell[1])
                rows_out += int(cell[2])
                seconds += cell[3]
        return VisitStatistics(visits, rows_in, rows_out, seconds)

    def snapshot(self) -> dict[tuple[Signature, int], VisitStatistics]:
        """Return all totals."""
        return {key: self.of(*key) for key in self._cells}
