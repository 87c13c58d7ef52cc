"""What a cell keeps in Spark's state store."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from eddyline.quirks.state_in_python import StatefulProcessorHandle

Place = tuple[int, int]
"""The micro-batch that brought a blob of rows, and its number there."""

PartKey = tuple[str, int]
"""The label of a grouping, and the number of a part of what is aggregated in it."""

NO_TIMER: Final = -1
"""The timer of a cell in which no window is open."""

_KEY: Final = StructType(
    [
        StructField("kind", IntegerType()),
        StructField("grouping", StringType()),
        StructField("first", LongType()),
        StructField("second", LongType()),
    ]
)

_VALUE: Final = StructType([StructField("value", BinaryType())])

_PROGRESS, _ROWS, _PART, _BOUND = range(4)

_NEVER_CLOSED: Final = -1

_NUMBERS: Final = struct.Struct("<4q")

_ORIGIN: Final = struct.Struct("<2q")
"""Before a blob of rows: its length keeps the blob aligned as Arrow wants it."""


class CellProgress(NamedTuple):
    """How far a cell has come."""

    batch: int = -1
    """The last micro-batch."""
    told: int = 0
    """The number from which on queries were not there yet."""
    closed: int | None = None
    """The watermark up to which windows are closed and absences known; None before the first."""
    timer: int = NO_TIMER
    """When Spark calls the cell, in milliseconds of event time."""


class StoredRows(NamedTuple):
    """A blob of rows of a stream."""

    stream: int
    before: int
    blob: memoryview


@dataclass(slots=True)
class CellContents:
    """What is there, but for rows and aggregates themselves."""

    places: list[Place] = field(default_factory=list)
    parts: list[PartKey] = field(default_factory=list)
    bounds: dict[int, int] = field(default_factory=dict)
    """Since when a query finds rows, by its number."""


class CellState:
    """Rows blob by blob, partial aggregates, since when queries find rows, and the progress.

    All of it is in one map: to declare a map takes 12 ms of each task, and each schema that is
    text is another call to the JVM. Five states with schemas of text took 70 of the 180 ms of a
    task with a hundred aggregates.
    """

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state, of which Spark learns so."""
        self._handle = handle
        self._kept = handle.getMapState("kept", _KEY, _VALUE)

    def progress(self) -> CellProgress:
        """Return how far the cell has come."""
        value = self._value(_PROGRESS)
        if value is None:
            return CellProgress()
        batch, told, closed, timer = _NUMBERS.unpack(value)
        return CellProgress(batch, told, None if closed == _NEVER_CLOSED else closed, timer)

    def set_progress(self, progress: CellProgress) -> None:
        """Store how far the cell has come."""
        closed = _NEVER_CLOSED if progress.closed is None else progress.closed
        numbers = progress.batch, progress.told, closed, progress.timer
        self._update(_NUMBERS.pack(*numbers), _PROGRESS)

    def contents(self) -> CellContents:
        """Return what is there; reads all keys."""
        contents = CellContents()
        for kind, grouping, first, second in self._kept.keys():  # noqa: SIM118 - no dictionary
            if kind == _ROWS:
                contents.places.append((int(first), int(second)))
            elif kind == _PART:
                contents.parts.append((str(grouping), int(first)))
            elif kind == _BOUND:
                contents.bounds[int(first)] = int(second)
        contents.places.sort()
        return contents

    def rows(self, place: Place) -> StoredRows | None:
        """Return the rows of a place."""
        value = self._value(_ROWS, "", *place)
        if value is None:
            return None
        stream, before = _ORIGIN.unpack_from(value)
        return StoredRows(stream, before, memoryview(value)[_ORIGIN.size :])

    def keep_rows(self, place: Place, stream: int, before: int, blob: bytes) -> None:
        """Store rows of a stream, in place of those that were there."""
        self._update(_ORIGIN.pack(stream, before) + blob, _ROWS, "", *place)

    def drop_rows(self, place: Place) -> None:
        """Let the rows of a place go."""
        self._kept.removeKey((_ROWS, "", *place))

    def part(self, key: PartKey) -> bytes:
        """Return a part of what is aggregated; KeyError where there is none."""
        value = self._value(_PART, *key)
        if value is None:
            raise KeyError(key)
        return value

    def keep_part(self, key: PartKey, blob: bytes) -> None:
        """Store a part of what is aggregated, in place of the one that was there."""
        self._update(blob, _PART, *key)

    def drop_part(self, key: PartKey) -> None:
        """Let a part of what is aggregated go."""
        self._kept.removeKey((_PART, *key, 0))

    def keep_bound(self, query: int, since: int) -> None:
        """Store since when a query finds rows; once for each query."""
        self._update(b"", _BOUND, "", query, since)

    def call_at(self, timer: int) -> None:
        """Have Spark call the cell when the watermark has come to so many milliseconds."""
        self._handle.registerTimer(timer)

    def _value(
        self, kind: int, grouping: str = "", first: int = 0, second: int = 0
    ) -> bytes | None:
        row = self._kept.getValue((kind, grouping, first, second))
        return None if row is None else bytes(row[0])

    def _update(
        self, value: bytes, kind: int, grouping: str = "", first: int = 0, second: int = 0
    ) -> None:
        self._kept.updateValue((kind, grouping, first, second), (value,))
