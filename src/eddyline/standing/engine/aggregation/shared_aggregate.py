"""An aggregate that queries share: those that group alike, in windows alike."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.standing.engine.aggregation.aggregate_functions import Aggregate, parts_of
from eddyline.standing.engine.aggregation.alike_values import grouped_alike
from eddyline.standing.engine.aggregation.estimates import Weights, weighted_parts
from eddyline.standing.engine.aggregation.merged_parts import put_together
from eddyline.standing.engine.aggregation.time_window import Times, TimeWindow


class Fragments:
    """Fragments, rows that the same queries want: their sets of queries, under numbers.

    Queries that group alike and select differently share an aggregate by fragments: what is
    aggregated of the rows that exactly the same queries want is right for each of these queries,
    and each adds up its own fragments (Krishnamurthy, Wu and Franklin, 2006). Numbers hold until
    :meth:`without` is called.
    """

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._queries: list[npt.NDArray[np.int32]] = []

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._queries)

    def number(self, queries: npt.NDArray[np.integer]) -> int:
        """Return the number of a set of queries, ascending."""
        members = queries.astype(np.int32)
        key = members.tobytes()
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = len(self._queries)
            self._queries.append(members)
        return known

    def queries(self, number: int) -> npt.NDArray[np.int32]:
        """Return the queries of a fragment."""
        return self._queries[number]

    def take(self, sets: pa.Array) -> npt.NDArray[np.int32]:
        """Return the numbers of sets that are given as lists."""
        values = sets.values.to_numpy()
        offsets = sets.offsets.to_numpy()
        numbers = [self.number(values[begin:end]) for begin, end in pairwise(offsets.tolist())]
        return np.array(numbers, np.int32)

    def lists(self, numbers: Iterable[int]) -> pa.Array:
        """Return fragments as lists of queries."""
        members = [self._queries[number] for number in numbers]
        offsets = np.cumsum([0, *map(len, members)])
        every = np.concatenate(members) if members else np.empty(0, np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(every, pa.int32()))

    def without(self, queries: Collection[int]) -> npt.NDArray[np.int32]:
        """Forget some queries; return the new number of each fragment, -1 where none is left."""
        gone = np.array(sorted(queries), np.int32)
        before, self._queries, self._numbers = self._queries, [], {}
        left = [members[~np.isin(members, gone)] for members in before]
        new = [self.number(members) if len(members) else -1 for members in left]
        return np.array(new, np.int32)


PANE: Final = "pane"
"""The column with the start of a pane, in microseconds since 1970."""

START: Final = "start"
"""The column with the start of a window."""

FRAGMENT: Final = "fragment"
"""The column with the number of a fragment."""

GONE: Final = "gone"
"""The column with how many events of a group were dropped, where that is counted."""

GROUP_MORE: Final = "group more"
GROUP_SPREAD: Final = "group spread"
"""The columns with the sums of the weights of a group's rows that were sampled."""

SETS: Final = b"eddyline fragments"
"""Where the metadata of a table have the queries of each of its fragments."""

_NEVER: Final = -(1 << 62)


@dataclass(frozen=True, slots=True)
class AggregatePart:
    """Aggregates of panes, a row for each pane, group and fragment.

    ``until`` is the time that the watermark has to pass for all its windows to be closed.
    """

    table: pa.Table
    until: int


class SharedAggregate:
    """Aggregates of the rows of some queries, pane by pane, until windows close.

    A row is aggregated once, whichever of the queries want it and in however many windows it is.
    A window closes when the watermark has reached its end and ``delay`` microseconds more; a row
    counts in the windows that are open when it comes. What is kept is a row for each pane, group
    and fragment; a query adds up what is its own. Time and memory grow with these, not with
    queries or windows.
    """

    def __init__(self, window: TimeWindow, keys: int, delay: int = 0) -> None:
        self.window = window
        self.delay = delay
        self.closed = _NEVER
        """The watermark up to which windows have closed."""
        self._keys = [f"k{number}" for number in range(keys)]
        self._fragments = Fragments()
        self._parts: dict[int, AggregatePart] = {}
        self._fresh: list[pa.Table] = []
        self._next = 0
        self._removed: list[int] = []
        self._unsaved: set[int] = set()

    def take(
        self,
        times: pa.Array,
        keys: Sequence[pa.Array],
        aggregated: Mapping[Aggregate, pa.Array | None],
        fragments: Sequence[npt.NDArray[np.int64]],
        of_rows: npt.NDArray[np.int32],
        weights: Weights | None = None,
        gone: npt.NDArray[np.int64] | None = None,
    ) -> npt.NDArray[np.bool_]:
        """Take rows: their times, the keys that they are grouped by, and values of aggregates.

        ``fragments`` are sets of queries, ascending; ``of_rows`` says which of them want a row.
        ``weights`` are those of sampled rows, None where each stands for itself. Where ``gone``
        is given, each row tells how many events like it were dropped, and is none itself.
        Returns which rows have come too late for all windows that they are in; one without a time
        is in none.
        """
        known = times.is_valid().to_numpy(zero_copy_only=False)
        words = times.cast(pa.int64()).fill_null(0).to_numpy()
        panes = self.window.panes(words)
        closed = self.window.last_ends(panes) + self.delay <= self.closed
        late: npt.NDArray[np.bool_] = known & closed
        kept = np.flatnonzero(known & ~late)
        if len(kept):
            numbers = np.array(
                [self._fragments.number(fragment) for fragment in fragments], np.int32
            )
            columns: dict[str, pa.Array] = {
                PANE: pa.array(panes[kept]),
                FRAGMENT: pa.array(numbers[of_rows[kept]]),
            }
            chosen = None if len(kept) == len(panes) else pa.array(kept)
            for name, key in zip(self._keys, keys, strict=True):
                columns[name] = grouped_alike(key if chosen is None else key.take(chosen))
            for aggregate, values in aggregated.items():
                own = values if values is None or chosen is None else values.take(chosen)
                parts = parts_of(aggregate, own, len(kept))
                if weights is not None:
                    parts |= weighted_parts(aggregate, own, weights.take(kept))
                for part, column in parts.items():
                    columns[f"{aggregate.label} {part}"] = column
            if gone is not None:
                columns[GONE] = pa.array(gone[kept])
            if weights is not None and weights.spread is not None:
                columns[GROUP_MORE] = pa.array(weights.more[kept])
                columns[GROUP_SPREAD] = pa.array(weights.spread[kept])
            self._fresh.append(self._together(pa.table(columns), PANE))
        return late

    def close(self, watermark: int) -> pa.Table | None:
        """Close the windows that end by a watermark: a row for each window, group and fragment.

        The queries of its fragments are in the table's metadata. None where there are none.
        """
        self._settle()
        after, until = self.closed - self.delay, watermark - self.delay
        self.closed = max(self.closed, watermark)
        tables = []
        for part in self._parts.values():
            panes = part.table.column(PANE).to_numpy()
            places, starts = self.window.closing(panes, after, until)
            if len(places):
                rows = part.table.take(pa.array(places)).drop_columns([PANE])
                tables.append(rows.add_column(0, START, pa.array(starts)))
        for number in [n for n, part in self._parts.items() if part.until <= self.closed]:
            self._drop(number)
        if not tables:
            return None
        rows = pa.concat_tables(tables, promote_options="default")
        return self._with_sets(self._together(rows, START))

    def due(self) -> int | None:
        """Return the watermark by which the next window closes; None where nothing is kept."""
        self._settle()
        panes = [np.unique(part.table.column(PANE).to_numpy()) for part in self._parts.values()]
        if not panes:
            return None
        end = self.window.next_end(np.concatenate(panes), self.closed - self.delay)
        return None if end is None else end + self.delay

    def stored(self) -> tuple[int, int]:
        """Return how many rows are kept, and in how many parts."""
        self._settle()
        return sum(len(part.table) for part in self._parts.values()), len(self._parts)

    def remove(self, queries: Collection[int]) -> None:
        """Forget queries, and what was kept for them alone."""
        self._settle()
        new = self._fragments.without(queries)
        for number, part in list(self._parts.items()):
            before = part.table.column(FRAGMENT).to_numpy()
            after = new[before]
            if np.array_equal(after, before):
                continue
            place = part.table.schema.get_field_index(FRAGMENT)
            table = part.table.set_column(place, FRAGMENT, pa.array(after))
            table = table.filter(pa.array(after >= 0))
            if len(table) == len(part.table):
                self._parts[number] = AggregatePart(table, part.until)
            else:
                self._drop(number)
                self._keep(self._together(table, PANE))

    def load(self, parts: Iterable[tuple[int, pa.Table]], closed: int) -> None:
        """Take what was kept before, in the place of all that is here; ``closed`` as it was."""
        self.closed = closed
        self._fragments = Fragments()
        self._parts, self._fresh = {}, []
        self._removed, self._unsaved = [], set()
        for number, table in parts:
            own = self._fragments.take(_sets_of(table))
            place = table.schema.get_field_index(FRAGMENT)
            numbers = own[table.column(FRAGMENT).to_numpy()]
            here = table.set_column(place, FRAGMENT, pa.array(numbers))
            self._parts[number] = AggregatePart(
                here.replace_schema_metadata(None), self._until(here)
            )
            self._next = max(self._next, number + 1)

    def changes(self) -> tuple[dict[int, pa.Table], list[int]]:
        """Return the parts that have come since the last time, by number, and those that went."""
        self._settle()
        came = {n: self._with_sets(self._parts[n].table) for n in sorted(self._unsaved)}
        went, self._removed, self._unsaved = self._removed, [], set()
        return came, went

    def _settle(self) -> None:
        """Put what has come together, and with parts that are not much larger.

        So there are few parts, and a row is written a logarithmic number of times.
        """
        if not self._fresh:
            return
        fresh = pa.concat_tables(self._fresh, promote_options="default")
        self._fresh = []
        while True:
            small = [n for n, part in self._parts.items() if len(part.table) <= 2 * len(fresh)]
            if not small:
                break
            tables = [self._still_open(self._parts[number].table) for number in small]
            for number in small:
                self._drop(number)
            fresh = pa.concat_tables([*tables, fresh], promote_options="default")
            fresh = self._together(fresh, PANE)
        self._keep(self._together(fresh, PANE))

    def _still_open(self, table: pa.Table) -> pa.Table:
        panes = table.column(PANE).to_numpy()
        open_ = self.window.last_ends(panes) + self.delay > self.closed
        return table if open_.all() else table.filter(pa.array(open_))

    def _keep(self, table: pa.Table) -> None:
        if len(table):
            self._parts[self._next] = AggregatePart(table, self._until(table))
            self._unsaved.add(self._next)
            self._next += 1

    def _drop(self, number: int) -> None:
        del self._parts[number]
        if number in self._unsaved:
            self._unsaved.discard(number)
        else:
            self._removed.append(number)

    def _until(self, table: pa.Table) -> int:
        panes: Times = table.column(PANE).to_numpy()
        return int(self.window.last_ends(panes).max()) + self.delay

    def _together(self, rows: pa.Table, time: str) -> pa.Table:
        return put_together(rows, [time, *self._keys, FRAGMENT])

    def _with_sets(self, table: pa.Table) -> pa.Table:
        """Return a table with its own numbers of fragments, and their queries in its metadata."""
        used, numbers = np.unique(table.column(FRAGMENT).to_numpy(), return_inverse=True)
        place = table.schema.get_field_index(FRAGMENT)
        own = table.set_column(place, FRAGMENT, pa.array(numbers.astype(np.int32)))
        sets = pa.record_batch({FRAGMENT: self._fragments.lists(used.tolist())})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, sets.schema) as to:
            to.write_batch(sets)
        return own.replace_schema_metadata({SETS: sink.getvalue().to_pybytes()})


def by_query(tables: Iterable[pa.Table], keys: int) -> pa.Table:
    """Return closed windows query by query: a row for each window, group and query.

    ``tables`` are what :meth:`SharedAggregate.close` gave, be it of several places; the query is
    in the column :data:`FRAGMENT`.
    """
    parts = []
    for table in tables:
        sets = _sets_of(table)
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
    return put_together(rows, [START, *(f"k{number}" for number in range(keys)), FRAGMENT])


def queries_in(table: pa.Table) -> npt.NDArray[np.int32]:
    """Return the queries of a table with fragments, some of them more than once."""
    queries: npt.NDArray[np.int32] = _sets_of(table).values.to_numpy()
    return queries


def _sets_of(table: pa.Table) -> pa.Array:
    with pa.ipc.open_stream(table.schema.metadata[SETS]) as stream:
        return stream.read_all().column(0).combine_chunks()
