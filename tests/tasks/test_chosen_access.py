"""Keys asked for, by one way or two, or a scan begun at any moment: the rows are those of a join.

The tasks are ours, and the driver's side is; what Spark does around them is put together here.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias
from unittest import mock

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyspark import TaskContext

from eddyline.asking import asked_or_scanned, lookup_server
from eddyline.asking.access_method import AccessMethod
from eddyline.asking.driver_channel import DriverChannel
from eddyline.asking.event_loop import EventLoop
from eddyline.asking.limits import Limits
from eddyline.asking.lookup_server import LookupServer
from eddyline.asking.lookup_source import LookedUpTable
from eddyline.asking.python_lookup import PythonLookup
from eddyline.asking.scan_choice import AskingProgress, ScanChoice
from eddyline.tasks.chosen_access import AskedKeys, AskedWay

Row: TypeAlias = tuple[int | None, int | None, int]
Given: TypeAlias = tuple[int | None, int | None]

COLUMNS = ("a", "b", "v")
TYPES = (pa.int64(), pa.int64(), pa.int64())


@dataclass(frozen=True)
class Case:
    """What the table has, by which columns it is joined, and what happens meanwhile.

    The scan begins when ``scanned_after`` keys have answers. ``failing`` are keys without any, by
    the column that they are asked for by. Of ``few`` keys the rows come with the outcome.
    """

    table: Sequence[Row]
    given: Sequence[Given]
    columns: tuple[int, ...]
    tasks: int
    scanned_after: int | None
    failing: tuple[frozenset[int], frozenset[int]]
    keys_per_call: int
    few: int = 3


class ScannedThen(ScanChoice):
    """A choice that falls when so many keys have answers."""

    after: int | None = None

    def look(self, *progress: AskingProgress) -> bool:
        if self.after is not None and sum(way.done for way in progress) >= self.after:
            self.why = self.why or "it is told to"
        return super().look(*progress)


class Place(threading.local):
    """Which task of Spark's a thread is."""

    number = 0

    def getLocalProperty(self, _: str) -> str:  # noqa: N802 - PySpark's name
        return "7"

    def stageId(self) -> int:  # noqa: N802 - likewise
        return 0

    def partitionId(self) -> int:  # noqa: N802 - likewise
        return self.number


@contextmanager
def serving(case: Case, asked: Counter[tuple[int, int]]) -> Iterator[LookupServer]:
    """Serve the ways to the table; count what each key was asked for."""

    def method(column: int) -> AccessMethod:
        def rows(keys: list[int]) -> list[Row]:
            asked.update((column, key) for key in keys)
            time.sleep(0.001)
            if case.failing[column].intersection(keys):
                raise ValueError("no answer")
            return [row for row in case.table if row[column] in keys]

        table = LookedUpTable("t", COLUMNS, TYPES, (column,))
        limits = Limits(max_in_flight=2, retries=0)
        return AccessMethod(table, PythonLookup(rows, case.keys_per_call), limits)

    loop, channel = EventLoop(), DriverChannel()
    methods = {f"t/{column}": method(column) for column in case.columns}
    server = LookupServer(loop, methods, time.monotonic, channel)
    try:
        yield server
    finally:
        server.close()
        channel.close()
        loop.close()


def joined(case: Case, rows: Sequence[Row]) -> Counter[Any]:
    return Counter(
        (given, row)
        for given in case.given
        for row in rows
        if all(given[c] is not None and given[c] == row[c] for c in case.columns)
    )


def came_of(case: Case, server: LookupServer) -> list[dict[str, Any]]:
    """Return the rows of all tasks, as they are shuffled."""
    keys = {tuple(given[c] for c in case.columns) for given in case.given}
    distinct = sorted(key for key in keys if None not in key)
    ways = tuple(AskedWay(f"t/{c}", (place,)) for place, c in enumerate(case.columns))
    ask = AskedKeys(server.address, 1, 0, ways, 60.0, COLUMNS, TYPES, alone=case.tasks == 1)
    place = Place()

    def task(number: int) -> list[dict[str, Any]]:
        place.number = number
        own = distinct[number :: case.tasks]
        columns = [pa.array([key[n] for key in own], pa.int64()) for n in range(len(case.columns))]
        batch = pa.record_batch(columns, names=[f"k{n}" for n in range(len(columns))])
        return [row for part in ask(iter([batch])) for row in part.to_pylist()]

    with mock.patch.object(TaskContext, "get", return_value=place), ThreadPoolExecutor(2) as cores:
        return [row for rows in cores.map(task, range(case.tasks)) for row in rows]


numbers = st.integers(0, 6)
maybe = st.one_of(st.none(), numbers)
cases = st.builds(
    Case,
    st.lists(st.tuples(maybe, maybe, st.integers(0, 2)), max_size=12),
    st.lists(st.tuples(maybe, maybe), max_size=20),
    st.sampled_from([(0,), (0, 1)]),
    st.integers(1, 3),
    st.one_of(st.none(), st.integers(0, 8)),
    st.tuples(st.frozensets(numbers, max_size=1), st.frozensets(numbers, max_size=1)),
    st.integers(1, 3),
    st.sampled_from([0, 3, 100]),
)
NO_KEYS = frozenset[int]()
MANY = [(n % 7, n % 5, n % 2) for n in range(20)]


@settings(max_examples=25, deadline=None)
@example(Case(MANY, [(n % 6, n % 4) for n in range(9)], (0, 1), 1, None, (NO_KEYS,) * 2, 1))
@example(Case(MANY, [(n, n % 4) for n in range(9)], (0,), 3, 2, (NO_KEYS,) * 2, 1))
@example(Case([], [(0, 1), (1, 0)], (0, 1), 1, None, (frozenset([0]), NO_KEYS), 2))
@given(cases)
def test_any_mixture_of_access_methods_gives_the_rows_of_the_join(case: Case) -> None:
    if len(case.columns) > 1:  # then one task brings all keys
        case = replace(case, tasks=1)
    asked: Counter[tuple[int, int]] = Counter()
    with (
        mock.patch.object(lookup_server, "ScanChoice", ScannedThen),
        mock.patch.object(ScannedThen, "after", case.scanned_after),
        mock.patch.object(asked_or_scanned, "LOOKING", 0.0005),
        mock.patch.object(asked_or_scanned, "FEW", case.few),
        serving(case, asked) as server,
    ):
        came = came_of(case, server)
    # One task says so by giving nothing, of several each that knows.
    if not came if case.tasks == 1 else any(row["table scanned"] for row in came):
        rows = list(case.table)
    else:
        rows = [(row["a"], row["b"], row["v"]) for row in came if row["table scanned"] is None]
        # Keys of a call that fails are asked for again, each half of them alone.
        failed = {
            c for c in case.columns if any(given[c] in case.failing[c] for given in case.given)
        }
        assert not any(count > 1 for (c, _), count in asked.items() if c not in failed)
    assert joined(case, rows) == joined(case, case.table)
