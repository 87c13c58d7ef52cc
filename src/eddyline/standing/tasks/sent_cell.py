"""A cell as Spark sends it: it declares its state, and loads the rest with its first rows.

To plan the first micro-batch of a job, Spark starts a Python process of its own that only asks
which state there is, and waits ten seconds for it. Its 1.3 s of processor time were to one half
pandas, Numba and the engine, which it has no use for: so this module, and that of the state, import
nothing but PySpark.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.cloudpickle import cloudpickle

from eddyline.quirks.state_in_python import StatefulProcessor, StatefulProcessorHandle
from eddyline.standing.tasks.cell_state import CellState

if TYPE_CHECKING:
    import pandas as pd

    from eddyline.standing.tasks.cell import Cell


class SentCell(StatefulProcessor):
    """Stands for a cell where Spark asks for its state, and runs it where there are rows."""

    def __init__(self, cell: Cell) -> None:
        """Take the cell, which is sent as bytes."""
        self._pickled: bytes = cloudpickle.dumps(cell)  # type: ignore[no-untyped-call]  # PySpark's own

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state."""
        self._state = CellState(handle)
        self._cell: Cell | None = None

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,  # noqa: ANN401 - a tuple of what is grouped by
        rows: Iterator[Any],
        timerValues: Any,  # noqa: ANN401, N803 - Spark's name
    ) -> Iterator[pd.DataFrame]:
        """Take the blobs of a batch; yield results."""
        return self._loaded().run(int(key[0]), rows, timerValues)

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self,
        key: Any,  # noqa: ANN401 - a tuple of what is grouped by
        timerValues: Any,  # noqa: ANN401, N803 - Spark's name
        expiredTimerInfo: Any,  # noqa: ANN401, ARG002, N803 - Spark's name
    ) -> Iterator[pd.DataFrame]:
        """Close windows in a batch that may have no rows for this cell."""
        return self._loaded().run(int(key[0]), iter(()), timerValues)

    def close(self) -> None:
        """Do nothing: the rows stay for the next batch."""

    def _loaded(self) -> Cell:
        if self._cell is None:
            cell: Cell = pickle.loads(self._pickled)  # noqa: S301 - made in the driver
            cell.begin(self._state)
            self._cell = cell
        return self._cell
