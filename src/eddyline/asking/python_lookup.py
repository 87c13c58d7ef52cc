"""A Python function as the source of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa

from eddyline.asking.lookup_source import (
    Key,
    LookedUpTable,
    NoAnswerError,
    TryAgainError,
    described_error,
)
from eddyline.asking.patience import Gate
from eddyline.asking.refusals import refusal_in
from eddyline.asking.source_rows import RowReader
from eddyline.asking.users_function import ABANDONED, UsersFunction
from eddyline.checked_values import whole_number


@dataclass(frozen=True, slots=True)
class PythonLookup:
    """A source of rows: a Python function, which is called where the driver is.

    ``function`` takes a list of keys: values where there is one bind column, tuples in the order of
    ``bind`` where there are several. It returns the rows for them: mappings by column name,
    sequences in the order of the columns, an Arrow table or a pandas DataFrame. An ``async def``
    function runs on the event loop of all lookups; any other runs in a thread, and may return an
    awaitable. ``keys_per_call`` is the longest list.

    >>> PythonLookup(lambda keys: [(key, key * key) for key in keys]).keys_per_call
    1
    """

    function: Callable[[list[Any]], object]
    keys_per_call: int = 1

    def __post_init__(self) -> None:
        """Check what was given; TypeError, ValueError."""
        if not callable(self.function):
            raise TypeError(f"a PythonLookup needs a function, not {self.function!r}")
        whole_number(self.keys_per_call, "keys_per_call", 1)

    @property
    def label(self) -> str:
        """The function's name."""
        return f"function {getattr(self.function, '__name__', type(self.function).__name__)}"

    def check(self, table: LookedUpTable) -> None:
        """Any table may be a function's."""

    def connect(self, table: LookedUpTable, gate: Gate) -> PythonConnection:
        """Get ready to call."""
        return PythonConnection(self, table, gate)


class PythonConnection:
    """Calls the function."""

    def __init__(self, source: PythonLookup, table: LookedUpTable, gate: Gate) -> None:
        self._table = table
        self._reader = RowReader(table)
        self._gate = gate
        self._function = UsersFunction(source.function, gate.width)

    async def fetch(self, keys: Sequence[Key]) -> pa.RecordBatch:
        """Call the function; an OSError, as of a network, may pass, and nothing else."""
        given = [key[0] for key in keys] if len(self._table.bind) == 1 else list(keys)
        async with self._gate.request():
            if (refusal := ABANDONED.refusal()) is not None:
                raise NoAnswerError(refusal, of_keys=False)
            answer, error = await self._function.outcome(given)
            if error is not None and (refused := refusal_in(error)) is not None:
                raise refused from error
        if isinstance(error, OSError):
            gone = isinstance(error, ConnectionError | TimeoutError)  # for any key
            raise TryAgainError(described_error(error), of_keys=not gone) from error
        if error is not None:
            raise error
        return self._batch(answer, keys)

    async def close(self) -> None:
        """Let the threads end."""
        self._function.close()

    def _batch(self, found: object, keys: Sequence[Key]) -> pa.RecordBatch:
        rows: object = found
        if isinstance(found, pd.DataFrame):
            rows = pa.Table.from_pandas(found, preserve_index=False)
        if isinstance(rows, pa.Table | pa.RecordBatch):
            rows = rows.to_pylist()
        if rows is None or not isinstance(rows, Iterable) or isinstance(rows, str | bytes | dict):
            raise NoAnswerError(f"returned {type(found).__name__}, not rows")
        return self._reader.batch(rows, keys)
