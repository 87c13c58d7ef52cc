"""How the mix of orders moved over a run: slices of time, spread over equal bins.

The run is measured in *busy time*: the moments at which some task was inside
the block. Gaps, whether between two actions on one DataFrame or in a wait for the next batch, are
cut out, so that no part of a picture is blank.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from eddyline.reports.records import OTHER_ORDERS, Order, OrderSlice

_SHORTEST_SECONDS = 1e-6  # what clocks of today tell apart


@dataclass(frozen=True, slots=True)
class BusyTime:
    """Moments at which a block was at work, as stretches that do not touch each other.

    ``starts`` and ``ends`` are seconds since the epoch; ``before`` is the busy
    time in seconds that lies before each start.
    """

    starts: tuple[float, ...]
    ends: tuple[float, ...]
    before: tuple[float, ...]

    @property
    def seconds(self) -> float:
        """The busy time altogether, in seconds; 0.0 if there was none."""
        return self.before[-1] + (self.ends[-1] - self.starts[-1]) if self.starts else 0.0

    def at(self, when: float) -> float:
        """Busy seconds before the moment ``when``; moments outside the run count as its ends."""
        stretch = bisect_right(self.starts, when) - 1
        if stretch < 0:
            return 0.0
        # The brackets keep rounding from letting a later moment come out before an earlier one.
        return self.before[stretch] + (min(when, self.ends[stretch]) - self.starts[stretch])


def busy_time(slices: Sequence[OrderSlice]) -> BusyTime:
    """Join the stretches of the slices where they overlap or touch."""
    starts: list[float] = []
    ends: list[float] = []
    for piece in sorted(slices, key=lambda piece: piece.start):
        end = max(piece.start, piece.end)  # a clock that was set back gives an end before the start
        if ends and piece.start <= ends[-1]:
            ends[-1] = max(ends[-1], end)
        else:
            starts.append(piece.start)
            ends.append(end)
    before = [0.0]
    for start, end in zip(starts, ends, strict=True):
        before.append(before[-1] + (end - start))
    return BusyTime(tuple(starts), tuple(ends), tuple(before[:-1]))


@dataclass(frozen=True, slots=True)
class Timeline:
    """Shares of the orders in every bin of a run.

    ``orders`` has the orders with the most rows, most first, and
    :data:`OTHER_ORDERS` at the end if there are more. ``shares[k][j]`` is the
    share of order k among the rows of bin j, 0 to 1; all are 0 in a bin without
    rows. ``rows[k]`` is the number of rows of order k in the whole run. The
    bins are equally long and together :attr:`seconds`. ``came[j]`` are the rows of bin j.
    """

    busy: BusyTime
    orders: tuple[Order, ...]
    rows: tuple[int, ...]
    shares: tuple[tuple[float, ...], ...]
    came: tuple[float, ...]

    @property
    def bins(self) -> int:
        """The number of bins; 0 if no rows came."""
        return len(self.shares[0]) if self.shares else 0

    @property
    def seconds(self) -> float:
        """The length of the run, at least a microsecond."""
        return max(self.busy.seconds, _SHORTEST_SECONDS)

    @property
    def edges(self) -> tuple[float, ...]:
        """Where the bins begin and end, in busy seconds: one more than there are bins."""
        bins = self.bins
        return tuple(self.seconds * bin_ / bins for bin_ in range(bins + 1)) if bins else ()

    @property
    def row_edges(self) -> tuple[float, ...]:
        """Where the bins begin and end, in rows that have come: the areas of shares are rows."""
        return (0.0, *accumulate(self.came)) if self.bins else ()

    def rows_at(self, when: float) -> float:
        """Return how many rows had come by a moment, in seconds since the epoch."""
        place = self.busy.at(when) / self.seconds * self.bins
        bin_ = min(int(place), self.bins - 1)
        return self.row_edges[bin_] + self.came[bin_] * min(place - bin_, 1.0)


def timeline(
    slices: Sequence[OrderSlice], order_rows: Sequence[tuple[Order, int]], bins: int, top: int
) -> Timeline:
    """Spread the rows of every slice evenly over its stretch and count them by bin and order.

    ``order_rows`` are the rows of every order in the whole run, most first (see
    :attr:`~eddyline.reports.records.TaskRecord.order_rows`). At most ``top``
    orders are kept apart. A run too short for the clock becomes a single bin.
    """
    busy = busy_time(slices)
    if busy.seconds < _SHORTEST_SECONDS:
        bins = 1
    named = [item for item in order_rows if item[0] != OTHER_ORDERS and item[1]][:top]
    other = sum(rows for _, rows in order_rows) - sum(rows for _, rows in named)
    orders = [order for order, _ in named]
    rows = [rows for _, rows in named]
    if other:
        orders.append(OTHER_ORDERS)
        rows.append(other)
    place = {order: number for number, order in enumerate(orders)}
    counts = [[0.0] * bins for _ in orders]
    for piece in slices:
        weights = _weights(busy, piece, bins)
        for order, number in piece.shares:
            row = counts[place.get(order, len(orders) - 1)] if number else []
            for bin_, weight in weights if row else ():
                row[bin_] += number * weight
    totals = [sum(column) for column in zip(*counts, strict=True)]
    return Timeline(
        busy=busy,
        orders=tuple(orders),
        rows=tuple(rows),
        shares=tuple(
            tuple(count / total if total else 0.0 for count, total in zip(row, totals, strict=True))
            for row in counts
        ),
        came=tuple(totals),
    )


def _weights(busy: BusyTime, piece: OrderSlice, bins: int) -> list[tuple[int, float]]:
    """Return the bins that a slice lies in, each with the part of the slice in it."""
    if bins == 1:
        return [(0, 1.0)]
    per_second = bins / busy.seconds
    start = busy.at(piece.start) * per_second
    end = busy.at(max(piece.start, piece.end)) * per_second
    first, last = min(int(start), bins - 1), min(int(end), bins - 1)
    if first == last:
        return [(first, 1.0)]
    return [
        (bin_, (min(end, bin_ + 1) - max(start, bin_)) / (end - start))
        for bin_ in range(first, last + 1)
    ]
