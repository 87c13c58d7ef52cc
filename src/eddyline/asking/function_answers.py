"""What a task is told of a function's value: the value, or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from eddyline.errors import BudgetSpentError, CostError

VALUE, ERROR, STOP, PRICE = range(4)
"""The columns: a value, why there is none, which error ends the job, what it has cost."""

STOPS: Final = {kind.__name__: kind for kind in (BudgetSpentError, CostError)}
"""Errors that end the job, by name."""


def answers(
    values: pa.Array,
    errors: Sequence[str | None],
    stops: Sequence[str | None],
    prices: Sequence[float],
) -> pa.RecordBatch:
    """Return answers, one a row."""
    return pa.RecordBatch.from_arrays(
        [
            values,
            pa.array(errors, pa.string()),
            pa.array(stops, pa.string()),
            pa.array(prices, pa.float64()),
        ],
        names=["value", "error", "stop", "price"],
    )
