"""What a step sends where all of it is gathered in one value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from eddyline.exchange.blobs import unpacked
from eddyline.exchange.framing import framed


@dataclass(frozen=True, slots=True)
class FramedSide:
    """The function of a step whose blobs are framed, so that Spark needs only to append them."""

    side: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a frame for each blob of the partition."""
        for sent in self.side(batches):
            yield from map(framed, unpacked(sent))
