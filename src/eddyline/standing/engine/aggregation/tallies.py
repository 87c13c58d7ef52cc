"""How many events windows have had, and how many of them were taken."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import pyarrow as pa

from eddyline.standing.engine.aggregation.aggregate_parts import START
from eddyline.standing.engine.aggregation.shared_aggregate import PANE
from eddyline.standing.engine.aggregation.time_window import Times, TimeWindow
from eddyline.standing.engine.shared_query import NEVER

SOME_TIME: Final = -(1 << 62)
"""The pane of events whose time is not known any more, or never was."""

OPEN: Final = pa.schema(
    {
        PANE: pa.int64(),
        "events": pa.int64(),
        "taken": pa.int64(),
        "more": pa.float64(),
        "spread": pa.float64(),
        "summed": pa.int64(),
    }
)
"""What is kept: events of a pane, those that were taken, and the sums of the weights of these; and
those dropped that were counted in their groups."""

CLOSED: Final = pa.schema(
    [pa.field(START, pa.int64()), *list(OPEN)[1:], pa.field("near", pa.int64())]
)
"""What is told of a window that has closed; ``near`` are dropped events that might have been joined
with its own, be they in it or not."""

_SUMS: Final = (*OPEN.names[1:], "near")


class WindowTallies:
    """Counts of the events of windows until these close, pane by pane.

    Windows close as those of a shared aggregate do, ``delay`` after the watermark has passed their
    ends. Events of joined streams count by their own times; those from ``early`` before a window
    to ``delay`` after it may be joined with its own. What is kept is a row for each pane.
    """

    def __init__(self, window: TimeWindow, delay: int = 0, early: int = 0) -> None:
        """Where a bound is :data:`~eddyline.standing.engine.shared_query.NEVER` there is none."""
        self.window = window
        self._delay = delay
        self.early = early
        self._open = OPEN.empty_table()
        self._unsaved = self._saved = False

    def __len__(self) -> int:
        """Return for how many panes something is kept."""
        return len(self._open)

    def take(self, panes: pa.Array, events: pa.Array, taken: pa.Array, share: float) -> None:
        """Take numbers of events by pane, where such a share of them was taken."""
        more, spread = 1 / share - 1, (1 - share) / share**2
        numbers = taken.cast(pa.float64()).to_numpy(zero_copy_only=False)
        none = pa.array(np.zeros(len(panes), np.int64))
        weights = [pa.array(numbers * weight) for weight in (more, spread)]
        self._add([panes, events, taken, *weights, none])

    def take_summed(self, panes: pa.Array, gone: pa.Array) -> None:
        """Take how many dropped events were counted in their groups, by pane."""
        none, nothing = np.zeros(len(panes), np.int64), np.zeros(len(panes))
        self._add([panes, *map(pa.array, (none, none, nothing, nothing)), gone])

    def _add(self, columns: list[pa.Array]) -> None:
        came = pa.Table.from_arrays(columns, schema=OPEN)
        self._open = _summed([self._open, came], PANE, OPEN)
        self._unsaved = True

    def close(self, closed: int, watermark: int) -> pa.Table | None:
        """Return the windows that end after one watermark and by another; None for none.

        What no window needs any more is forgotten.
        """
        if not len(self._open):
            return None
        own = self._open.filter(pa.compute.not_equal(self._open[PANE], SOME_TIME))
        panes: Times = own[PANE].to_numpy()
        places, starts = self.window.closing(panes, closed - self._delay, watermark - self._delay)
        windows = None
        if len(places):
            rows = own.take(pa.array(places)).drop_columns([PANE])
            rows = rows.add_column(0, START, pa.array(starts))
            rows = rows.append_column("near", pa.array(np.zeros(len(rows), np.int64)))
            windows = self._with_near(_summed([rows], START, CLOSED))
        self._forget(max(closed, watermark))
        return windows

    def due(self, closed: int) -> int | None:
        """Return the watermark by which the next window closes; None where nothing is kept."""
        panes = self._open[PANE].to_numpy()
        panes = panes[panes != SOME_TIME]
        end = self.window.next_end(panes, closed - self._delay)
        return None if end is None else end + self._delay

    def load(self, kept: pa.Table | None) -> None:
        """Take what was kept before, in the place of all that is here."""
        self._open = OPEN.empty_table() if kept is None else kept.cast(OPEN)
        self._unsaved, self._saved = False, kept is not None

    def forget(self) -> None:
        """Forget all."""
        self._open, self._unsaved = OPEN.empty_table(), True

    def changes(self) -> tuple[pa.Table | None, bool]:
        """Return what is to be saved since the last time, and whether what was saved is to go."""
        if not self._unsaved:
            return None, False
        was, self._saved, self._unsaved = self._saved, len(self._open) > 0, False
        return (self._open, False) if self._saved else (None, was)

    def _with_near(self, windows: pa.Table) -> pa.Table:
        panes: Times = self._open[PANE].to_numpy()
        dropped = self._open["events"].to_numpy() - self._open["taken"].to_numpy()
        starts = windows[START].to_numpy()
        first = starts - min(self.early, NEVER)
        last = starts + self.window.size + self._delay
        near = []
        for one, other in zip(first.tolist(), last.tolist(), strict=True):
            close = (panes + self.window.pane > one) & (panes < other)
            near.append(int(dropped[close | (panes == SOME_TIME)].sum()))
        place = windows.schema.get_field_index("near")
        return windows.set_column(place, "near", pa.array(near, pa.int64()))

    def _forget(self, closed: int) -> None:
        """Forget panes whose windows have closed, but for what later ones might be joined with."""
        panes: Times = self._open[PANE].to_numpy()
        wait = self._delay + (self.early if self.early < NEVER else 0)
        until = self.window.last_ends(panes) + wait
        gone = (until <= closed) & (panes != SOME_TIME)
        if not gone.any():
            return
        self._unsaved = True
        kept = [self._open.filter(pa.array(~gone))]
        if self.early >= NEVER:
            old = self._open.filter(pa.array(gone))
            kept.append(old.set_column(0, PANE, pa.array(np.full(len(old), SOME_TIME))))
        self._open = _summed(kept, PANE, OPEN)


def together(tables: Iterable[pa.Table], key: str) -> pa.Table:
    """Return what several places told of closed windows as one; ``key`` tells groupings apart."""
    every = pa.concat_tables(tables)
    groups = every.group_by([key, START], use_threads=False).aggregate([(n, "sum") for n in _SUMS])
    return groups.rename_columns([key, START, *_SUMS])


def _summed(tables: Iterable[pa.Table], by: str, schema: pa.Schema) -> pa.Table:
    every = pa.concat_tables(tables)
    sums = [(name, "sum") for name in schema.names if name != by]
    groups = every.group_by([by], use_threads=False).aggregate(sums)
    return (
        groups.rename_columns([by, *(name for name, _ in sums)]).select(schema.names).cast(schema)
    )
