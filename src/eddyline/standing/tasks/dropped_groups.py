"""Which groups dropped events were in: summaries of what is not worked, as in Data Triage.

Reiss and Hellerstein (2005). What a query groups by is often all that it asks of an event. Then
the dropped events of a window are counted by the columns that it groups by, exactly: so no group
vanishes because none of its events was taken, and the number of its events is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.expressions import Argument
from eddyline.standing.engine.aggregation.aggregate_parts import GONE
from eddyline.standing.engine.aggregation.grouping import Grouping
from eddyline.standing.engine.aggregation.shared_aggregate import PANE
from eddyline.standing.engine.aggregation.time_window import TimeWindow
from eddyline.standing.log.engine_inputs import aggregation_of
from eddyline.standing.query_template import QueryTemplate, place_of

SUMMARY: Final = b"eddyline grouping"
"""Where the metadata of a summary have the label of its grouping."""

MOST_GROUPS: Final = 1 << 12
"""Rows that a task's summary may have whatever it stands for; beyond that, one for four events.

Where nearly each event is a group of its own, to count them is to work them.
"""

_EVENTS_A_GROUP: Final = 4


def key_columns(grouping: Grouping) -> frozenset[int]:
    """Return the columns of a stream that are grouped by."""
    nodes = (node for key in grouping.keys for node in key.walk())
    return frozenset(place_of(node.index).column for node in nodes if isinstance(node, Argument))


def is_countable(template: QueryTemplate) -> bool:
    """Tell whether what a query groups by says all that it asks of an event.

    It is of one stream, in windows that are no sessions, and selects by nothing but the columns
    that it groups by, without Python functions; and not by the time, of which only the pane is
    known.
    """
    if template.aggregated is None or len(template.inputs) > 1 or template.functions:
        return False
    grouping = template.aggregated.aggregation.grouping
    columns = key_columns(grouping)
    if template.aggregated.in_sessions:
        return False
    return template.selected[0] <= columns and grouping.time.column not in columns


def countable_groupings(
    inputs: tuple[str, ...], templates: Iterable[QueryTemplate]
) -> dict[Grouping, tuple[int, ...]]:
    """Return the groupings of countable queries, with the columns that are grouped by."""
    groupings: dict[Grouping, tuple[int, ...]] = {}
    for template in templates:
        if is_countable(template):
            aggregation = aggregation_of(inputs, template)
            if aggregation is not None:
                grouping = aggregation.grouping
                groupings[grouping] = tuple(sorted(key_columns(grouping)))
    return groupings


class DroppedGroups:
    """Counts the dropped events of a task by the groups of one grouping."""

    def __init__(self, grouping: Grouping, columns: Sequence[int]) -> None:
        """``columns`` of the stream are grouped by; TypeError for a grouping of sessions."""
        if not isinstance(grouping.window, TimeWindow):
            raise TypeError("dropped events are in windows, not in sessions")
        self._grouping, self._window = grouping, grouping.window
        self._columns = columns
        self._found: pa.Table | None = None
        self._events = 0
        self._too_many = False

    def add(
        self, rows: pa.RecordBatch, place: dict[int, int], dropped: npt.NDArray[np.bool_]
    ) -> None:
        """Count those of some events that were dropped.

        ``place`` says where the columns of the stream are in them.
        """
        own = [rows.column(place[number]) for number in self._columns]
        self._too_many |= any(pa.types.is_nested(column.type) for column in own)
        times = rows.column(place[self._grouping.time.column])
        known = pa.array(dropped & times.is_valid().to_numpy(zero_copy_only=False))
        panes = self._window.panes(times.filter(known).cast(pa.int64()).to_numpy())
        if self._too_many or not len(panes):
            return
        columns = {PANE: pa.array(panes), GONE: pa.array(np.ones(len(panes), np.int64))}
        for number, column in zip(self._columns, own, strict=True):
            columns[str(number)] = column.filter(known)
        came = pa.table(columns)
        if self._found is not None:
            came = pa.concat_tables([self._found, came])
        keys = [PANE, *map(str, self._columns)]
        summed = came.group_by(keys, use_threads=False).aggregate([(GONE, "sum")])
        self._found = summed.rename_columns([*keys, GONE])
        self._events += len(panes)
        groups = len(self._found)
        self._too_many = groups > max(MOST_GROUPS, self._events // _EVENTS_A_GROUP)

    def batches(self) -> list[pa.RecordBatch]:
        """Return how many events of each group were dropped; nothing for too many groups."""
        if self._found is None or self._too_many or not len(self._found):
            return []
        table = self._found.replace_schema_metadata({SUMMARY: self._grouping.label.encode()})
        batches: list[pa.RecordBatch] = table.combine_chunks().to_batches()
        return batches
