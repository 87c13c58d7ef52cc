"""Several scans of one relation, in competition."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from eddyline.engine.modules.scan_access import Arrival, ScanAccess


class CompetingScans:
    """Several scans of the same rows, of which whichever has some to give gives them.

    The first that ends ends them all, since all rows have come by then. A row that two of
    them give is absorbed in its SteM, by the relation's key (Raman, Deshpande and
    Hellerstein, 2003, Section 3.2).
    """

    def __init__(self, inputs: Sequence[ScanAccess]) -> None:
        self._inputs = deque(inputs)

    @property
    def ended(self) -> bool:
        """Whether one of them has given all rows."""
        return any(source.ended for source in self._inputs)

    @property
    def expected_rows(self) -> float | None:
        """How many rows may still come, at the least."""
        known = [rows for source in self._inputs if (rows := source.expected_rows) is not None]
        return min(known, default=None)

    def poll(self) -> Arrival | None:
        """Return the next rows of the first that has some."""
        if self.ended:
            return None
        for _ in range(len(self._inputs)):
            arrival = self._inputs[0].poll()
            self._inputs.rotate(-1)
            if arrival is not None or self.ended:
                return arrival
        return None
