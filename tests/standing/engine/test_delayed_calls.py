"""Functions of joined streams are called before rows are stored or after, as it pays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.expressions.vector import Vector
from eddyline.standing.engine.delayed_calls import DelayedCalls
from eddyline.standing.engine.shared_query import SharedQuery
from tests.properties import examples
from tests.standing.engine.test_evaluated_selections import (
    Row,
    Run,
    called,
    joined,
    pushes,
    queries,
    wanted,
)


def test_what_joins_nothing_is_not_called() -> None:
    run = Run(None, {0: SharedQuery({0: called(0, 4), 1: None}, joined)})
    run.push([(1, [(key, 0) for key in range(0, 2_000, 400)])])
    run.push([(0, [(key, key + 10) for key in range(2_000)])])
    assert sum(run.functions[0].calls.values()) == 5
    assert run.answer == {(0, ((key, key + 10), (key, 0))): 1 for key in range(0, 2_000, 400)}


def test_calls_of_queries_that_join_nothing_are_not_delayed() -> None:
    asked = {
        0: SharedQuery({0: called(0, 4), 1: None}, joined),
        1: SharedQuery({0: called(0, 4)}),
    }
    run = Run(None, asked).push([(0, [(1, 1), (2, 2)])])
    assert run.answer == {(1, ((2, 2),)): 1}
    run.eddy.remove([1])
    run.push([(0, [(3, 3)])])
    assert 3 not in run.functions[0].calls


class Turns(DelayedCalls):
    """Takes rows one way or the other as it is told, some of a push this and some that way."""

    turns: Iterator[bool]

    def parts(self, stream: int, arrivals: range, *, only_stored: bool = False) -> Iterator[range]:
        known = self._streams.get(stream)
        if known is None or only_stored:
            yield from super().parts(stream, arrivals, only_stored=only_stored)
            return
        half = len(arrivals) // 2
        for part in (arrivals[:half], arrivals[half:]):
            if len(part):
                yield from self._in_one_way(known, stream, part, late=next(self.turns))


@examples(100)
@given(
    st.dictionaries(st.integers(0, 99), queries, min_size=1, max_size=5),
    pushes,
    st.lists(st.booleans(), min_size=12, max_size=12),
)
def test_answers_do_not_depend_on_when_functions_are_called(
    asked: dict[int, SharedQuery], given_: list[tuple[int, list[Row]]], turns: list[bool]
) -> None:
    run = Run(None, {})
    run.eddy.delayed.__class__ = Turns
    run.eddy.delayed.turns = iter(turns)  # type: ignore[attr-defined]
    run.eddy.add(asked)
    run.push(given_)
    assert run.answer == wanted(asked, given_)


@examples(60)
@given(st.dictionaries(st.integers(0, 99), queries, min_size=1, max_size=5), pushes, pushes)
def test_rows_that_were_here_before_are_asked_when_they_are_joined(
    asked: dict[int, SharedQuery],
    before: list[tuple[int, list[Row]]],
    given_: list[tuple[int, list[Row]]],
) -> None:
    asked = {number: query for number, query in asked.items() if query.edges}
    run, fresh = Run(None, asked).push(before), Run(None, asked)
    known = run.answer.copy()
    for stream, came in before:
        fresh.restore(stream, came)
    fresh.push(given_)
    run.push(given_)
    assert fresh.answer == run.answer - known


class ManualClock:
    """Goes on as it is told."""

    resolution = 0.0

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time


def run_through(
    delayed: DelayedCalls, clock: ManualClock, call: float, passing: float, made: float, join: float
) -> list[bool]:
    """Push 200 times 1,000 rows; return which way each row was taken.

    A row is joined to so many rows, if it passes or is not asked; what it fails to pass meets only
    those that are there.
    """

    class Function:
        vectorized = False

        def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:  # noqa: ARG002 - as called
            clock.time += rows * call
            return Vector(pa.nulls(rows, pa.int64()))

    (function,) = delayed.metered([Function()]) if not delayed._functions else delayed._functions
    function._function = Function()
    ways: list[bool] = []
    arrivals = 0
    for _ in range(200):
        for part in delayed.parts(0, range(arrivals, arrivals + 1_000)):
            late, rows = delayed._now[0], len(part)
            ways += [late] * rows
            asked = round(rows * min(made, 1.0)) if late else rows
            before = clock.time
            if asked:
                function([], asked)
            stored = rows if late else rows * passing
            tuples = round(stored * made)
            if late:
                delayed.took(0, clock.time - before, round(tuples * (1 - passing)))
            before = clock.time
            clock.time += tuples * join
            if tuples:
                delayed.made(tuples, clock.time - before)
        arrivals += 1_000
    return ways


@pytest.mark.parametrize(
    ("call", "passing", "made", "join", "way"),
    [
        (1e-3, 0.5, 0.01, 1e-5, "late"),  # a costly function of rows that hardly join
        (1e-6, 0.01, 50.0, 1e-6, "early"),  # a cheap one that spares joins
        (1e-3, 0.01, 10.0, 1e-2, "early"),  # a costly one that spares even more
        (1e-3, 0.9, 0.5, 1e-6, "late"),
    ],
)
def test_rows_are_taken_the_cheaper_way(
    call: float, passing: float, made: float, join: float, way: str
) -> None:
    clock = ManualClock()
    delayed = DelayedCalls(clock)
    delayed.added({0: SharedQuery({0: called(0, 4), 1: None}, joined)}, ())
    ways = run_through(delayed, clock, call, passing, made, join)
    late, early = min(made, 1) * call + (1 - passing) * made * join, call
    assert way == ("late" if late < early else "early")
    assert ways.count(way == "late") > 0.97 * len(ways)


def test_a_choice_is_changed_when_costs_change() -> None:
    clock = ManualClock()
    delayed = DelayedCalls(clock)
    delayed.added({0: SharedQuery({0: called(0, 4), 1: None}, joined)}, ())
    assert run_through(delayed, clock, 1e-6, 0.01, 50.0, 1e-5)[-1] is False
    assert run_through(delayed, clock, 1e-3, 0.5, 0.01, 1e-6)[-1] is True
    assert run_through(delayed, clock, 1e-6, 0.01, 50.0, 1e-5)[-1] is False


@pytest.mark.parametrize("stalls_at", [0, 1])
def test_a_stall_is_no_reason_for_long(stalls_at: int) -> None:
    """Of 200 pushes one may be taken the wrong way, and none where the very first row stalls."""
    clock = ManualClock()
    delayed = DelayedCalls(clock)
    delayed.added({0: SharedQuery({0: called(0, 4), 1: None}, joined)}, ())
    took, times = delayed.took, 0

    def stalls(stream: int, seconds: float, failed: int) -> None:
        nonlocal times
        took(stream, seconds + 20 * (times == stalls_at), failed)
        times += 1

    delayed.took = stalls  # type: ignore[method-assign]
    ways = run_through(delayed, clock, 1e-3, 0.5, 0.1, 1e-5)
    assert ways.count(False) <= 1_000 * stalls_at


def test_rows_that_failed_meet_nobody_else() -> None:
    run = Run(None, {0: SharedQuery({0: called(0, 4), 1: None}, joined)})
    run.push([(0, [(1, 1), (1, 2), (1, 3)])])
    for _ in range(3):
        run.push([(1, [(1, 0)] * 10)])
    assert run.functions[0].calls == {1: 1, 2: 1, 3: 1}
    assert run.eddy.statistics().made == 2 * 30  # (1, 1) is no more
    assert len(run.eddy.stored_arrivals(0)) == 2


def test_changes_of_rows_that_are_gone_are_forgotten() -> None:
    delayed = DelayedCalls(ManualClock())
    delayed.added({0: SharedQuery({0: called(0, 4), 1: None}, joined)}, ())
    known = delayed._streams[0]
    for number, late in enumerate([True, False, True, False, True]):
        list(delayed._in_one_way(known, 0, range(10 * number, 10 * number + 10), late=late))
    ways = delayed.undecided(0, range(25, 50))  # type: ignore[arg-type]
    delayed.forget_before(0, 25)
    assert len(known.changes) == 3
    assert list(delayed.undecided(0, range(25, 50))) == list(ways)  # type: ignore[arg-type]
