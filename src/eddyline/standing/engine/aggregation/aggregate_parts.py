"""What is kept of aggregates that queries share: rows of groups and fragments, in parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.distinct_values import distinct
from eddyline.standing.engine.aggregation.aggregate_functions import Aggregate, parts_of
from eddyline.standing.engine.aggregation.alike_values import grouped_alike
from eddyline.standing.engine.aggregation.estimates import Weights, weighted_parts
from eddyline.standing.engine.aggregation.fragments import (
    FRAGMENT,
    Fragments,
    renumbered,
    sets_of,
    with_sets,
)
from eddyline.standing.engine.aggregation.time_window import Times

START: Final = "start"
"""The column with the start of a window, in microseconds since 1970."""

END: Final = "end"
"""The column with the end of a session; windows of one size have none."""

GONE: Final = "gone"
"""The column with how many events of a group were dropped, where that is counted."""

GROUP_MORE: Final = "group more"
GROUP_SPREAD: Final = "group spread"
"""The columns with the sums of the weights of a group's rows that were sampled."""

FEW_FRAGMENTS: Final = 1 << 10
"""Sets of queries that are remembered whether anything is kept of them or not."""

_NEVER: Final = -(1 << 62)


class AggregateParts(ABC):
    """Aggregates of the rows of some queries, until what these ask for has closed.

    A row is aggregated once, whichever of the queries want it. What is kept is a row for each
    stretch of time, group and fragment; a query adds up what is its own. A new part takes in those
    that are not much larger, so there are few, and a row is written a logarithmic number of times.
    """

    def __init__(self, keys: int, delay: int = 0) -> None:
        """Rows are grouped by so many keys; windows close ``delay`` after the watermark."""
        self.delay = delay
        self.closed = _NEVER
        """The watermark up to which windows have closed."""
        self._keys = [f"k{number}" for number in range(keys)]
        self._fragments = Fragments()
        self._parts: dict[int, pa.Table] = {}
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
        Returns which rows have come too late; one without a time is in no window.
        """
        known = times.is_valid().to_numpy(zero_copy_only=False)
        words = times.cast(pa.int64()).fill_null(0).to_numpy()
        late: npt.NDArray[np.bool_] = known & self._is_late(words)
        kept = np.flatnonzero(known & ~late)
        if len(kept):
            numbers = np.array(
                [self._fragments.number(fragment) for fragment in fragments], np.int32
            )
            columns: dict[str, pa.Array] = {
                **self._stretches(words[kept]),
                FRAGMENT: pa.array(numbers[of_rows[kept]]),
            }
            chosen = None if len(kept) == len(words) else pa.array(kept)
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
            self._fresh.append(self._together(pa.table(columns)))
        return late

    @abstractmethod
    def close(self, watermark: int) -> pa.Table | None:
        """Close the windows that a watermark ends: a row for each window, group and fragment.

        The queries of its fragments are in the table's metadata. None where there are none.
        """

    @abstractmethod
    def due(self) -> int | None:
        """Return the watermark by which the next window closes; None where nothing is kept."""

    def stored(self) -> tuple[int, int]:
        """Return how many rows are kept, and in how many parts."""
        self._settle()
        return sum(map(len, self._parts.values())), len(self._parts)

    def remove(self, queries: Collection[int]) -> None:
        """Forget queries, and what was kept for them alone."""
        self._settle()
        new = self._fragments.without(queries)
        for number, table in list(self._parts.items()):
            before = table.column(FRAGMENT).to_numpy()
            after = new[before]
            if np.array_equal(after, before):
                continue
            left = renumbered(table, after).filter(pa.array(after >= 0))
            if len(left) == len(table):
                self._parts[number] = left
            else:
                self._drop(number)
                self._keep(self._together(left))

    def load(self, parts: Iterable[tuple[int, pa.Table]], closed: int) -> None:
        """Take what was kept before, in the place of all that is here; ``closed`` as it was."""
        self.closed = closed
        self._fragments = Fragments()
        self._parts, self._fresh = {}, []
        self._removed, self._unsaved = [], set()
        for number, table in parts:
            own = self._fragments.take(sets_of(table))
            here = renumbered(table, own[table.column(FRAGMENT).to_numpy()])
            self._parts[number] = here.replace_schema_metadata(None)
            self._next = max(self._next, number + 1)

    def changes(self) -> tuple[dict[int, pa.Table], list[int]]:
        """Return the parts that have come since the last time, by number, and those that went."""
        self._settle()
        came = {n: with_sets(self._parts[n], self._fragments) for n in sorted(self._unsaved)}
        went, self._removed, self._unsaved = self._removed, [], set()
        self._forget_fragments()
        return came, went

    @abstractmethod
    def _is_late(self, times: Times) -> npt.NDArray[np.bool_]:
        """Tell which rows come when all that they might be in has closed."""

    @abstractmethod
    def _stretches(self, times: Times) -> dict[str, pa.Array]:
        """Return the columns that say which stretches of time rows are in."""

    @abstractmethod
    def _together(self, rows: pa.Table) -> pa.Table:
        """Return rows with those put together that are one."""

    def _still_open(self, table: pa.Table) -> pa.Table:
        """Return those rows of a part that are not done with."""
        return table

    def _settle(self) -> None:
        """Put what has come together, and with parts that are not much larger."""
        if not self._fresh:
            return
        fresh = pa.concat_tables(self._fresh, promote_options="default")
        self._fresh = []
        while True:
            small = [n for n, table in self._parts.items() if len(table) <= 2 * len(fresh)]
            if not small:
                break
            tables = [self._still_open(self._parts[number]) for number in small]
            for number in small:
                self._drop(number)
            fresh = pa.concat_tables([*tables, fresh], promote_options="default")
            fresh = self._together(fresh)
        self._keep(self._together(fresh))

    def _forget_fragments(self) -> None:
        """Forget sets of queries of which nothing is kept, where they are most."""
        if len(self._fragments) <= FEW_FRAGMENTS:
            return
        numbers = [table.column(FRAGMENT).to_numpy() for table in self._parts.values()]
        used = distinct(np.concatenate(numbers)) if numbers else np.empty(0, np.int32)
        if len(self._fragments) > 2 * len(used):
            new = self._fragments.keep_only(used)
            self._parts = {
                number: renumbered(table, new[table.column(FRAGMENT).to_numpy()])
                for number, table in self._parts.items()
            }

    def _keep(self, table: pa.Table) -> None:
        if len(table):
            self._parts[self._next] = table
            self._unsaved.add(self._next)
            self._next += 1

    def _drop(self, number: int) -> None:
        del self._parts[number]
        if number in self._unsaved:
            self._unsaved.discard(number)
        else:
            self._removed.append(number)
