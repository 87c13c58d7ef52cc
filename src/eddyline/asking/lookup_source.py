"""What a lookup asks for rows, and how it is told that there will be none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import pyarrow as pa

from eddyline.asking.patience import Gate

Key: TypeAlias = tuple[object, ...]
"""The values of the bind columns, in their order, none of them NULL."""


@dataclass(frozen=True, slots=True)
class LookedUpTable:
    """A table of which a source knows the rows, given the values of its ``bind`` columns.

    >>> LookedUpTable("t", ("zip", "income"), (pa.string(), pa.float64()), (0,)).bind_names
    ('zip',)
    """

    name: str
    columns: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    bind: tuple[int, ...]

    @property
    def bind_names(self) -> tuple[str, ...]:
        """The names of the bind columns."""
        return tuple(self.columns[column] for column in self.bind)

    @property
    def schema(self) -> pa.Schema:
        """The columns as Arrow has them."""
        return pa.schema(list(zip(self.columns, self.types, strict=True)))


class LookupConnection(Protocol):
    """A source that is open; used by one event loop, for many calls at a time."""

    async def fetch(self, keys: Sequence[Key]) -> pa.RecordBatch:
        """Return all rows of the table for the given keys, in any order; others may be among them.

        Raises :class:`~eddyline.asking.no_answer.TryAgainError` where that may help,
        :class:`~eddyline.asking.no_answer.NoAnswerError` where not; any other error means the
        latter. Where some of the keys may be to blame, others are asked for without them.
        """
        ...

    async def close(self) -> None:
        """Let go of all that is open."""
        ...


class LookupSource(Protocol):
    """Where the rows of a table come from: a description, which opens nothing and holds no secret.

    ``label`` names it in messages; ``keys_per_call`` is how many keys it takes in one.
    """

    @property
    def label(self) -> str:
        """The source as people know it, without secrets."""
        ...

    @property
    def keys_per_call(self) -> int:
        """Keys that one call may ask for, 1 at least."""
        ...

    def check(self, table: LookedUpTable) -> None:
        """Raise ValueError where this cannot be a source of the table; nothing is opened.

        :class:`~eddyline.errors.MissingSecretError` where a secret is not set.
        """
        ...

    def connect(self, table: LookedUpTable, gate: Gate) -> LookupConnection:
        """Open it; every request goes through the gate."""
        ...
