"""When calls waited for quota in the course of a query, service by service."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from eddyline.reports.block_report import BlockReport
from eddyline.reports.driver_records import AskedTable, CalledFunction


@dataclass(frozen=True, slots=True)
class QuotaWaits:
    """Times in which calls waited for quota, from ``start`` to ``end`` of a query.

    All are in seconds since the epoch. ``names`` are tables and functions for which anything
    waited, each with its ``stretches`` and with the ``seconds`` that it waited in all.
    """

    start: float
    end: float
    names: tuple[str, ...]
    stretches: tuple[tuple[tuple[float, float], ...], ...]
    seconds: tuple[float, ...]

    def shares(self, lane: int, bins: int) -> list[float]:
        """Return the part of each of so many equal bins of the query that was spent waiting.

        >>> waits = QuotaWaits(100.0, 110.0, ("rate",), (((101.0, 105.0), (109.0, 110.0)),), (5.0,))
        >>> waits.shares(0, bins=5)
        [0.5, 1.0, 0.5, 0.0, 0.5]
        """
        width = (self.end - self.start) / bins
        edges = [self.start + place * width for place in range(bins + 1)]
        return [
            min(1.0, sum(self._within(lane, left, right)) / width)
            for left, right in pairwise(edges)
        ]

    def _within(self, lane: int, left: float, right: float) -> Iterator[float]:
        for began, ended in self.stretches[lane]:
            yield max(0.0, min(ended, right) - max(began, left))


def quota_waits(
    blocks: Sequence[BlockReport],
    called: Sequence[CalledFunction],
    asked: Sequence[AskedTable],
) -> QuotaWaits | None:
    """Return when tables and functions waited for quota; None where none did.

    The query begins with the first rows in a block or the first wait, and ends with the last.
    """
    waited: list[AskedTable | CalledFunction] = [table for table in asked if table.waits]
    waited += [function for function in called if function.waits]
    if not waited:
        return None
    slices = [
        piece for block in blocks if block.record is not None for piece in block.record.orders
    ]
    moments = [moment for one in waited for wait in one.waits for moment in wait]
    moments += [moment for piece in slices for moment in (piece.start, piece.end)]
    start, end = min(moments), max(moments)
    if end <= start:
        return None
    return QuotaWaits(
        start,
        end,
        tuple(one.name for one in waited),
        tuple(one.waits for one in waited),
        tuple(one.waited for one in waited),
    )
