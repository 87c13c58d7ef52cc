"""What shared queries hand over, and what they have done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.batch import TupleBatch, as_array
from eddyline.standing.engine.lineage import Lineages, LineageStatistics
from eddyline.standing.engine.stems import StreamRows


@dataclass(frozen=True, slots=True)
class SharingStatistics:
    """What was done so far, and what is held now.

    ``stored`` are rows in SteMs, by name of the stream; ``made`` tuples that joins have made.
    """

    stored: Mapping[str, int]
    made: int
    lineage: LineageStatistics


@dataclass(frozen=True, slots=True)
class SharedResults:
    """Tuples that are results, each with the queries that it is a result of: numbers of sets.

    They are of one combination of streams; :meth:`column` gives their values. The numbers of sets
    hold until the receiver of the results returns: then sets may get others.
    """

    batch: TupleBatch
    lineages: Lineages
    _streams: tuple[StreamRows, ...]

    def __len__(self) -> int:
        """Return the number of tuples."""
        return len(self.lineages)

    @property
    def streams(self) -> tuple[int, ...]:
        """The streams whose components they have."""
        return tuple(s for s, rows in enumerate(self.batch.rows) if rows is not None)

    def column(self, stream: int, column: int) -> pa.Array:
        """Return the values of a column of a stream; ValueError where they have none of it."""
        rows = self.batch.rows[stream]
        if rows is None:
            raise ValueError(f"results of {self.batch.signature} have nothing of stream {stream}")
        return self._streams[stream].of(self.batch).column(column, rows)

    def arrivals(self, stream: int) -> npt.NDArray[np.int64]:
        """Return the numbers by which the components of a stream have come in, from 0 on."""
        rows = self.batch.rows[stream]
        if rows is None:
            raise ValueError(f"results of {self.batch.signature} have nothing of stream {stream}")
        held = self._streams[stream]
        if not self.batch.signature.built:
            return as_array(rows)
        return held.arrivals[as_array(rows) - held.built.store.first]
