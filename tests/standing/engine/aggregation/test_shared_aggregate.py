"""What queries share of an aggregate is what each of them would have by itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from eddyline.expressions import Argument
from eddyline.standing.engine.aggregation.aggregate_functions import (
    Aggregate,
    AggregateFunction,
    value_of,
)
from eddyline.standing.engine.aggregation.aggregate_parts import (
    FEW_FRAGMENTS,
    START,
    AggregateParts,
)
from eddyline.standing.engine.aggregation.fragments import FRAGMENT
from eddyline.standing.engine.aggregation.shared_aggregate import SharedAggregate, by_query
from eddyline.standing.engine.aggregation.time_window import TimeWindow

COUNT = Aggregate(AggregateFunction.COUNT, None, pa.int64())
SUM = Aggregate(AggregateFunction.SUM, Argument(0, pa.int64()), pa.int64())
QUERIES = 4

Row = tuple[int, str | None, int, frozenset[int]]
"""A time, a group, a value, and the queries that want the row."""

Found = dict[tuple[int, str | None, int], tuple[int, int]]
"""Count and sum by the start of a window, group and query."""

rows = st.lists(
    st.tuples(
        st.integers(0, 60),
        st.sampled_from(["a", "b", None]),
        st.integers(-9, 9),
        st.frozensets(st.integers(0, QUERIES - 1), min_size=1),
    ),
    max_size=8,
)


def take(aggregate: AggregateParts, taken: list[Row]) -> npt.NDArray[np.bool_]:
    times, groups, values, wanted = zip(*taken, strict=True)
    fragments = list(dict.fromkeys(wanted))
    return aggregate.take(
        pa.array(times, pa.int64()),
        [pa.array(groups, pa.string())],
        {COUNT: None, SUM: pa.array(values, pa.int64())},
        [np.array(sorted(each)) for each in fragments],
        np.array([fragments.index(each) for each in wanted], np.int32),
    )


def read(table: pa.Table) -> Iterator[tuple[tuple[int, str | None, int], tuple[int, int]]]:
    keys = zip(*(table[n].to_pylist() for n in (START, "k0", FRAGMENT)), strict=True)
    values = []
    for aggregate in (COUNT, SUM):
        own = [n for n in table.column_names if n.startswith(aggregate.label)]
        parts = table.select(own).rename_columns([n.split(" ")[-1] for n in own])
        values.append(value_of(aggregate, parts).values.to_pylist())
    return zip(keys, zip(*values, strict=True), strict=True)


class Places:
    """Two places that take rows in turn, saved and loaded at times, beside what they must find."""

    def __init__(self, window: TimeWindow, delay: int) -> None:
        self.window, self.delay = window, delay
        self.places = [SharedAggregate(window, 1, delay) for _ in range(2)]
        self.saved: list[dict[int, pa.Table]] = [{}, {}]
        self.wanted: dict[tuple[int, str | None, int], list[int]] = defaultdict(list)
        self.found: Found = {}
        self.gone: set[int] = set()

    def close(self, until: int) -> None:
        due = [each for each in (place.due() for place in self.places) if each is not None]
        tables = [t for t in (place.close(until) for place in self.places) if t is not None]
        # A place is asked no sooner than it says.
        assert bool(tables) == any(each <= until for each in due)
        for key, values in read(by_query(tables, 1)) if tables else ():
            assert key not in self.found
            self.found[key] = values

    def take(self, taken: list[Row], watermark: int) -> None:
        live = [(t, g, v, q - self.gone) for t, g, v, q in taken if q - self.gone]
        for number, place in enumerate(self.places):
            if live[number::2]:
                take(place, live[number::2])
        for time, group, value, queries in live:
            for start in self.starts(time):
                if start + self.window.size + self.delay > watermark:
                    for query in queries:
                        self.wanted[start, group, query].append(value)

    def starts(self, time: int) -> list[int]:
        every = range(-20 * self.window.slide - 60, 120, 1)
        return [s for s in every if s % self.window.slide == 0 and s <= time < s + self.window.size]

    def drop(self, dropped: frozenset[int]) -> None:
        self.gone |= dropped
        for place in self.places:
            place.remove(dropped)
        for key in [k for k in self.wanted if k[2] in self.gone and k not in self.found]:
            del self.wanted[key]

    def save(self) -> None:
        for place, saved in zip(self.places, self.saved, strict=True):
            came, went = place.changes()
            for old in went:
                del saved[old]
            saved.update(came)

    def load(self, number: int) -> None:
        fresh = SharedAggregate(self.window, 1, self.delay)
        fresh.load(self.saved[number].items(), self.places[number].closed)
        fresh.remove(self.gone)
        self.places[number] = fresh


@settings(deadline=None)
@given(
    st.integers(1, 20),
    st.integers(0, 30),
    st.integers(0, 15),
    st.lists(
        st.tuples(
            rows,
            st.integers(0, 25),
            st.frozensets(st.integers(0, 3), max_size=1),
            st.none() | st.integers(0, 1),
        ),
        max_size=6,
    ),
)
def test_each_query_gets_the_windows_of_its_own_rows(
    slide: int,
    more: int,
    delay: int,
    batches: list[tuple[list[Row], int, frozenset[int], int | None]],
) -> None:
    places = Places(TimeWindow(slide + more, slide), delay)
    watermark = -1
    for taken, step, dropped, loaded in batches:
        watermark += step
        places.close(watermark)
        places.take(taken, watermark)
        places.drop(dropped)
        places.save()
        if loaded is not None:
            places.load(loaded)
    places.close(10_000)
    places.save()
    assert places.found == {k: (len(values), sum(values)) for k, values in places.wanted.items()}
    assert [place.stored() for place in places.places] == [(0, 0)] * 2
    assert places.saved == [{}, {}]


def test_rows_are_kept_once_for_all_queries_and_windows() -> None:
    """A thousand queries that want the same rows, in sixty windows each, keep one row a pane."""
    aggregate = SharedAggregate(TimeWindow(60, 1), 1)
    times = pa.array(np.arange(1000) % 10, pa.int64())
    groups, values = pa.array(["a"] * 1000), pa.array(np.ones(1000, np.int64))
    everybody = [np.arange(1000)]
    aggregate.take(times, [groups], {SUM: values}, everybody, np.zeros(1000, np.int32))
    assert aggregate.stored() == (10, 1)


def test_parts_stay_few() -> None:
    aggregate = SharedAggregate(TimeWindow(10, 10), 1)
    for number in range(200):
        take(aggregate, [(10 * number, "a", 1, frozenset({1}))])
        aggregate.changes()
    rows_kept, parts = aggregate.stored()
    assert rows_kept == 200
    assert parts <= 9


def test_sets_of_queries_are_forgotten_with_their_rows() -> None:
    aggregate = SharedAggregate(TimeWindow(10, 10), 1)
    for number in range(3 * FEW_FRAGMENTS):
        take(aggregate, [(number, "a", 1, frozenset({number, number + 1}))])
        aggregate.close(number)
        aggregate.changes()
    assert len(aggregate._fragments) <= FEW_FRAGMENTS + 1
    closed = aggregate.close(4 * FEW_FRAGMENTS)
    assert closed is not None
    last = by_query([closed], 1)
    assert max(last[FRAGMENT].to_pylist()) == 3 * FEW_FRAGMENTS


def test_a_row_without_a_time_is_in_no_window() -> None:
    aggregate = SharedAggregate(TimeWindow(10, 10), 0)
    times = pa.array([None, 5], pa.int64())
    late = aggregate.take(times, [], {COUNT: None}, [np.array([1])], np.zeros(2, np.int32))
    assert late.tolist() == [False, False]
    closed = aggregate.close(10)
    assert closed is not None
    assert closed[f"{COUNT.label} rows"].to_pylist() == [1]


def test_late_rows_are_told() -> None:
    aggregate = SharedAggregate(TimeWindow(20, 10), 0, delay=5)
    aggregate.close(30)
    times = pa.array([0, 5, 9, 10, 25], pa.int64())
    late = aggregate.take(times, [], {COUNT: None}, [np.array([1])], np.zeros(5, np.int32))
    assert late.tolist() == [True, True, True, False, False]
    closed = aggregate.close(35)
    assert closed is not None
    assert dict(
        zip(*(closed[n].to_pylist() for n in (START, f"{COUNT.label} rows")), strict=True)
    ) == {10: 2}


def test_what_is_one_group_to_spark_is_one() -> None:
    """NaN of any bits is NaN, and -0.0 is 0.0."""
    other_nan = np.array([0x7FF8000000000001], np.int64).view(np.float64)[0]
    prices = pa.array([0.0, -0.0, float("nan"), other_nan, -other_nan, None])
    aggregate = SharedAggregate(TimeWindow(10, 10), 1)
    times = pa.array(np.zeros(6, np.int64))
    aggregate.take(times, [prices], {COUNT: None}, [np.array([1])], np.zeros(6, np.int32))
    closed = aggregate.close(10)
    assert closed is not None
    groups = zip(closed["k0"].to_pylist(), closed[f"{COUNT.label} rows"].to_pylist(), strict=True)
    assert {(repr(group), rows) for group, rows in groups} == {("0.0", 2), ("nan", 3), ("None", 1)}
