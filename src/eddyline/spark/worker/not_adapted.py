"""What stands for a lookup table in a plan: it fails if Spark runs it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from eddyline.errors import EddylineError


class NotAdaptedError(EddylineError, RuntimeError):
    """A query over a lookup table runs without having been adapted."""


@dataclass(frozen=True, slots=True)
class NotAdapted:
    """The function of a lookup table's leaf; ``number`` tells tables of one name apart."""

    table: str
    bind: tuple[tuple[str, ...], ...]
    number: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - Spark's protocol
        """Raise NotAdaptedError: nobody knows for which values of its bind columns to ask."""
        ways = " or ".join(map(" and ".join, self.bind))
        raise NotAdaptedError(
            f"{self.table} is a lookup table, which answers only for given values of {ways}. Run "
            f"the query through eddyline.adapt(df), which asks for the values that the query has "
            f"for them."
        )
