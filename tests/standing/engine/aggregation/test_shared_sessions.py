"""What queries share of sessions is what each of them would have by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eddyline.standing.engine.aggregation import shared_sessions
from eddyline.standing.engine.aggregation.aggregate_functions import value_of
from eddyline.standing.engine.aggregation.aggregate_parts import END, START
from eddyline.standing.engine.aggregation.fragments import FRAGMENT
from eddyline.standing.engine.aggregation.shared_aggregate import by_query
from eddyline.standing.engine.aggregation.shared_sessions import SharedSessions
from eddyline.standing.engine.aggregation.time_window import SessionWindow
from tests.standing.engine.aggregation.test_shared_aggregate import COUNT, SUM, Row, rows, take

Session = tuple[int, int, str | None, int, int, int]
"""Start, end, group, query, count and sum."""


@pytest.fixture(scope="module", autouse=True)
def in_turns() -> Iterator[None]:
    """Sessions are closed a few at a time, as very many are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_sessions, "AT_ONCE", 3)
        yield


@dataclass
class Alone:
    """The sessions of each query and group, as lists of rows, by themselves."""

    gap: int
    delay: int
    closed: int = -(1 << 62)

    def __post_init__(self) -> None:
        self.open: list[tuple[str | None, int, list[tuple[int, int]]]] = []
        self.late = 0

    def end(self, session: tuple[str | None, int, list[tuple[int, int]]]) -> int:
        return max(time for time, _ in session[2]) + self.gap

    def take(self, taken: list[Row]) -> None:
        for time, group, value, queries in taken:
            if time + self.gap + self.delay < self.closed:
                self.late += 1
                continue
            for query in queries:
                met, rest = [(time, value)], []
                for session in self.open:
                    near = any(abs(time - other) <= self.gap for other, _ in session[2])
                    if session[:2] == (group, query) and near:
                        met += session[2]
                    else:
                        rest.append(session)
                self.open = [*rest, (group, query, met)]

    def close(self, watermark: int) -> set[Session]:
        self.closed = max(self.closed, watermark)
        done = [each for each in self.open if self.end(each) + self.delay < watermark]
        self.open = [each for each in self.open if each not in done]
        return {
            (
                min(time for time, _ in each[2]),
                self.end(each),
                *each[:2],
                len(each[2]),
                sum(value for _, value in each[2]),
            )
            for each in done
        }


def found(table: pa.Table | None) -> set[Session]:
    if table is None:
        return set()
    every = by_query([table], 1)
    columns = [every[name].to_pylist() for name in (START, END, "k0", FRAGMENT)]
    for aggregate in (COUNT, SUM):
        own = [n for n in every.column_names if n.startswith(aggregate.label)]
        parts = every.select(own).rename_columns([n.split(" ")[-1] for n in own])
        columns.append(value_of(aggregate, parts).values.to_pylist())
    told = list(zip(*columns, strict=True))
    assert len(told) == len(set(told))
    return set(told)


@settings(deadline=None)
@given(
    st.integers(1, 12),
    st.integers(0, 5),
    st.lists(
        st.tuples(
            rows, st.integers(0, 20), st.frozensets(st.integers(0, 3), max_size=1), st.booleans()
        ),
        max_size=7,
    ),
)
def test_each_query_gets_the_sessions_of_its_own_rows(
    gap: int, delay: int, batches: list[tuple[list[Row], int, frozenset[int], bool]]
) -> None:
    alone, shared = Alone(gap, delay), SharedSessions(SessionWindow(gap), 1, delay)
    saved: dict[int, pa.Table] = {}
    gone: set[int] = set()
    watermark = -1
    for taken, step, dropped, restarted in [*batches, ([], 10_000, frozenset(), False)]:
        watermark += step
        due = shared.due()
        told = found(shared.close(watermark))
        assert told == alone.close(watermark)
        assert not told or (due is not None and due <= watermark)
        live = [(t, g, v, q - gone) for t, g, v, q in taken if q - gone]
        if live:
            before = alone.late
            alone.take(live)
            assert take(shared, live).sum() == alone.late - before
        gone |= dropped
        alone.open = [each for each in alone.open if each[1] not in dropped]
        shared.remove(dropped)
        came, went = shared.changes()
        saved = {n: table for n, table in saved.items() if n not in went} | came
        if restarted:
            shared = SharedSessions(SessionWindow(gap), 1, delay)
            shared.load(saved.items(), watermark)
            shared.remove(gone)
    assert shared.stored() == (0, 0)
    assert saved == {}


def test_rows_are_kept_once_for_all_queries() -> None:
    """A thousand queries that want the same rows keep one stretch, and all have its session."""
    sessions = SharedSessions(SessionWindow(5), 0)
    everybody = [np.arange(1000)]
    times = pa.array(np.arange(100), pa.int64())
    sessions.take(times, [], {COUNT: None}, everybody, np.zeros(100, np.int32))
    assert sessions.stored() == (1, 1)
    assert sessions.close(104) is None
    closed = sessions.close(105)
    assert closed is not None
    assert len(closed) == 1
    assert len(by_query([closed], 0)) == 1000


def test_what_has_ended_becomes_one_stretch_of_whose_session_has_not() -> None:
    """One query wants all rows, others each a few: their sets go as their sessions close."""
    sessions = SharedSessions(SessionWindow(10), 1)
    for number in range(300):
        take(sessions, [(5 * number, "a", 1, frozenset({0, 1 + number // 10 % 20}))])
        sessions.close(5 * number)
        sessions.changes()
    assert sessions.stored()[0] <= 5
    closed = found(sessions.close(10_000))
    assert {each[4] for each in closed if each[3] == 0} == {300}
