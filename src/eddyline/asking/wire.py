"""What tasks and the server of lookups say to each other.

A message is a line of JSON and, as long as its ``bytes`` says, an Arrow stream. A task says in its
hello to which job it belongs, and which access method it asks. Then it sends ``calls``, numbers of
its own, and a row of bind values for each. The server sends ``calls``, for each the number of its
``rows`` and the ``seconds`` that it took, and all these rows; or ``calls`` and an ``error``.

A key of a function is its arguments, and has one row: the value, or why there is none.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from eddyline.errors import BudgetSpentError, CostError

LINE: Final = 1 << 24
"""Bytes of a line of JSON at the most."""


VALUE, ERROR, STOP, PRICE = range(4)
"""The columns: a value, why there is none, which error ends the job, what it has cost."""

STOPS: Final = {kind.__name__: kind for kind in (BudgetSpentError, CostError)}
"""Errors that end the job, by name."""


def packed(table: pa.Table) -> bytes:
    """Return a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table.combine_chunks())
    stream_of: bytes = sink.getvalue().to_pybytes()
    return stream_of


def function_answers(
    values: pa.Array, errors: Sequence[str | None], end: Exception | None, prices: Sequence[float]
) -> pa.RecordBatch:
    """Return answers of a function, one a row; all are ``end``, where there is one."""
    stop = None if end is None else type(end).__name__
    return pa.RecordBatch.from_arrays(
        [
            values,
            pa.array(errors, pa.string()),
            pa.array([stop] * len(values), pa.string()),
            pa.array(prices, pa.float64()),
        ],
        names=["value", "error", "stop", "price"],
    )


def job_is_of(job: str, asked: str) -> bool:
    """Whether a job is the one that is asked about, or, after a slash, one of a run.

    >>> job_is_of("7/12", "7/1"), job_is_of("7/12", "7/12"), job_is_of("7/12", "7/")
    (False, True, True)
    """
    return job == asked or (asked.endswith("/") and job.startswith(asked))


def frozen(value: object) -> object:
    """Return what stands for a value in a dictionary, lists and dictionaries in it included.

    0.0 and -0.0 are two values to a function, and any NaN is the same to it. To Python two moments
    are the same if their clocks show the same time at the end of summer time.

    >>> frozen(0.0) == frozen(-0.0), frozen(math.nan) == frozen(math.nan), frozen([1, None])
    (False, True, ('list', 1, None))
    """
    if isinstance(value, float) and (value == 0 or math.isnan(value)):
        return "float", repr(value)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC)
    if isinstance(value, list | tuple):
        return ("list", *map(frozen, value))
    if isinstance(value, dict):
        return ("dict", *((key, frozen(item)) for key, item in value.items()))
    return value
