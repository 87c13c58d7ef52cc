"""How many events windows have had, and lost, by events that come in any order."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eddyline.standing.engine.aggregation.aggregate_parts import START
from eddyline.standing.engine.aggregation.tallies import SOME_TIME, WindowTallies, together
from eddyline.standing.engine.aggregation.time_window import TimeWindow
from eddyline.standing.engine.shared_query import NEVER


def take(tallies: WindowTallies, share: float, counted: dict[int, tuple[int, int]]) -> None:
    events, taken = zip(*counted.values(), strict=True)
    columns = (list(counted), events, taken)
    panes, events_, taken_ = (pa.array(column, pa.int64()) for column in columns)
    tallies.take(panes, events_, taken_, share)


def told(table: pa.Table | None) -> dict[int, tuple[float, ...]]:
    if table is None:
        return {}
    names = ("events", "taken", "more", "near")
    return {row[START]: tuple(row[name] for name in names) for row in table.to_pylist()}


def test_events_are_counted_in_all_windows_that_are_open() -> None:
    tallies = WindowTallies(TimeWindow(20, 10))
    take(tallies, 1.0, {0: (5, 5), 10: (3, 3)})
    take(tallies, 0.5, {10: (8, 4)})
    assert tallies.due(-100) == 10
    assert told(tallies.close(-100, 20)) == {-10: (5, 5, 0.0, 0), 0: (16, 12, 4.0, 4)}
    take(tallies, 0.5, {0: (4, 2), 10: (2, 1)})  # of the first no window is open
    assert told(tallies.close(20, 30)) == {10: (13, 8, 5.0, 5)}
    assert tallies.due(30) is None
    assert len(tallies) == 0


def test_what_is_kept_is_saved_and_loaded() -> None:
    tallies = WindowTallies(TimeWindow(10, 10))
    assert tallies.changes() == (None, False)
    take(tallies, 0.5, {0: (4, 2)})
    saved, gone = tallies.changes()
    assert not gone
    assert tallies.changes() == (None, False)
    other = WindowTallies(TimeWindow(10, 10))
    other.load(saved)
    assert told(other.close(-1, 10)) == {0: (4, 2, 2.0, 2)}
    assert other.changes() == (None, True)
    take(other, 0.5, {0: (4, 2)})
    other.close(10, 10)
    assert other.changes() == (None, False)  # it was never saved


def test_what_may_be_joined_with_a_window_is_near_it() -> None:
    """Events up to 5 before one, and up to 15 after it."""
    tallies = WindowTallies(TimeWindow(10, 10), delay=15, early=5)
    take(tallies, 0.5, {0: (2, 1)})
    take(tallies, 1.0, dict.fromkeys((10, 20, 30), (1, 1)))
    take(tallies, 0.5, {40: (8, 4)})
    assert told(tallies.close(-100, 45)) == {
        0: (2, 1, 1.0, 1),
        10: (1, 1, 0.0, 1),
        20: (1, 1, 0.0, 4),
    }
    assert told(tallies.close(45, 200)) == {30: (1, 1, 0.0, 4), 40: (8, 4, 4.0, 4)}
    assert len(tallies) == 0


@pytest.mark.parametrize("kind", ["unbounded", "without a time"])
def test_what_may_be_joined_for_ever_is_near_all_windows(kind: str) -> None:
    tallies = WindowTallies(TimeWindow(10, 10), early=NEVER if kind == "unbounded" else 0)
    take(tallies, 0.5, {0 if kind == "unbounded" else SOME_TIME: (2, 1)})
    tallies.close(-100, 100)
    take(tallies, 1.0, {200: (3, 3)})
    assert told(tallies.close(100, 300)) == {200: (3, 3, 0.0, 1)}


def test_several_places_tell_of_one_window() -> None:
    tables = []
    for label, share in (("a", 0.5), ("a", 1.0), ("b", 0.5)):
        tallies = WindowTallies(TimeWindow(10, 10))
        take(tallies, share, {0: (4, int(4 * share))})
        closed = tallies.close(-1, 10)
        assert closed is not None
        tables.append(closed.append_column("grouping", pa.array([label])))
    found = {row["grouping"]: row for row in together(tables, "grouping").to_pylist()}
    assert (found["a"]["events"], found["a"]["taken"], found["b"]["events"]) == (8, 6, 4)


def test_dropped_events_that_were_counted_by_group_are_told_apart() -> None:
    tallies = WindowTallies(TimeWindow(10, 10))
    take(tallies, 0.5, {0: (4, 2), 10: (8, 4)})
    tallies.take_summed(pa.array([0, 0]), pa.array([1, 1]))
    saved, _ = tallies.changes()
    other = WindowTallies(TimeWindow(10, 10))
    other.load(saved)
    closed = other.close(-1, 20)
    assert closed is not None
    assert [tuple(row.values()) for row in closed.select([START, "summed"]).to_pylist()] == [
        (0, 2),
        (10, 0),
    ]
