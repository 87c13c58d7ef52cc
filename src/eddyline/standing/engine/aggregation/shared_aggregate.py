"""An aggregate that queries share: those that group alike, in windows alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.standing.engine.aggregation.aggregate_parts import END, START, AggregateParts
from eddyline.standing.engine.aggregation.fragments import FRAGMENT, sets_of, with_sets
from eddyline.standing.engine.aggregation.merged_parts import put_together
from eddyline.standing.engine.aggregation.time_window import Times, TimeWindow

PANE: Final = "pane"
"""The column with the start of a pane, in microseconds since 1970."""


class SharedAggregate(AggregateParts):
    """Aggregates of the rows of some queries, pane by pane, until windows close.

    A row is aggregated once, whichever of the queries want it and in however many windows it is.
    A window closes when the watermark has reached its end and ``delay`` microseconds more; a row
    counts in the windows that are open when it comes. What is kept is a row for each pane, group
    and fragment. Time and memory grow with these, not with queries or windows.
    """

    def __init__(self, window: TimeWindow, keys: int, delay: int = 0) -> None:
        super().__init__(keys, delay)
        self.window = window

    def close(self, watermark: int) -> pa.Table | None:
        """Close the windows that end by a watermark: see :meth:`AggregateParts.close`."""
        self._settle()
        after, until = self.closed - self.delay, watermark - self.delay
        self.closed = max(self.closed, watermark)
        tables = []
        for table in self._parts.values():
            panes = table.column(PANE).to_numpy()
            places, starts = self.window.closing(panes, after, until)
            if len(places):
                rows = table.take(pa.array(places)).drop_columns([PANE])
                tables.append(rows.add_column(0, START, pa.array(starts)))
        for number in [n for n, table in self._parts.items() if not self._is_open(table).any()]:
            self._drop(number)
        if not tables:
            return None
        rows = pa.concat_tables(tables, promote_options="default")
        return with_sets(put_together(rows, [START, *self._keys, FRAGMENT]), self._fragments)

    def due(self) -> int | None:
        """Return the watermark by which the next window closes; None where nothing is kept."""
        self._settle()
        panes = [np.unique(table.column(PANE).to_numpy()) for table in self._parts.values()]
        if not panes:
            return None
        end = self.window.next_end(np.concatenate(panes), self.closed - self.delay)
        return None if end is None else end + self.delay

    def _is_late(self, times: Times) -> npt.NDArray[np.bool_]:
        late: npt.NDArray[np.bool_] = (
            self.window.last_ends(self.window.panes(times)) + self.delay <= self.closed
        )
        return late

    def _stretches(self, times: Times) -> dict[str, pa.Array]:
        return {PANE: pa.array(self.window.panes(times))}

    def _together(self, rows: pa.Table) -> pa.Table:
        return put_together(rows, [PANE, *self._keys, FRAGMENT])

    def _still_open(self, table: pa.Table) -> pa.Table:
        open_ = self._is_open(table)
        return table if open_.all() else table.filter(pa.array(open_))

    def _is_open(self, table: pa.Table) -> npt.NDArray[np.bool_]:
        """Tell which rows of a part are in a window that has yet to close."""
        panes: Times = table.column(PANE).to_numpy()
        open_: npt.NDArray[np.bool_] = self.window.last_ends(panes) + self.delay > self.closed
        return open_


def by_query(tables: Iterable[pa.Table], keys: int) -> pa.Table:
    """Return closed windows query by query: a row for each window, group and query.

    ``tables`` are what :meth:`AggregateParts.close` gave, be it of several places; the query is
    in the column :data:`~eddyline.standing.engine.aggregation.fragments.FRAGMENT`.
    """
    parts = []
    for table in tables:
        sets = sets_of(table)
        fragments = table.column(FRAGMENT).to_numpy()
        offsets, members = sets.offsets.to_numpy(), sets.values.to_numpy()
        sizes = np.diff(offsets)[fragments]
        places = np.repeat(np.arange(len(table)), sizes)
        firsts = np.repeat(offsets[:-1][fragments], sizes)
        within = np.arange(len(places)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        rows = table.replace_schema_metadata(None).take(pa.array(places))
        place = rows.schema.get_field_index(FRAGMENT)
        parts.append(rows.set_column(place, FRAGMENT, pa.array(members[firsts + within])))
    rows = pa.concat_tables(parts, promote_options="default")
    if END in rows.column_names:  # a session is in one place, and whole
        return rows
    return put_together(rows, [START, *(f"k{number}" for number in range(keys)), FRAGMENT])
