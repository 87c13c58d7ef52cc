"""Ripple joins: exact at the end, intervals that hold, and the input read that narrows them."""

from __future__ import annotations

import functools
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.join.join_eddy import JoinEddy
from eddyline.engine.join.join_results import Joined
from eddyline.engine.join.reading_rates import Rates, even_rates, narrowing_rates
from eddyline.engine.modules.scan_access import Arrival
from eddyline.engine.policies.catalogue import make_policy
from eddyline.expressions import Argument
from eddyline.simulation.virtual_clock import VirtualClock
from eddyline.watching.aggregate import WatchedAggregate, WatchedFunction
from eddyline.watching.ripple_join import RippleJoin, SampledInput, rates_of, with_units
from eddyline.watching.running_aggregates import Estimates, RunningAggregates
from eddyline.watching.watched_values import Values
from tests.joins import EQUAL, LESS, Row, query_of, relation
from tests.properties import examples

R, S, T = range(3)
INT = pa.int64()
COUNT = WatchedAggregate(WatchedFunction.COUNT, None, "n", INT)
SUM = WatchedAggregate(WatchedFunction.SUM, 1, "s", INT)
AVG = WatchedAggregate(WatchedFunction.AVG, 1, "m", pa.float64())
KEYED = query_of([relation("R"), relation("S")], ((R, 0), EQUAL, (S, 0)))
"""R(k, x) and S(k, y); outputs are their columns in this order."""

Ints = npt.NDArray[np.int64]


class Units:
    """A scan whose units are there when they are wanted."""

    def __init__(self, units: Sequence[Arrival], seconds: float, clock: VirtualClock) -> None:
        self._units = deque(units)
        self._seconds = seconds
        self._clock = clock
        self.wanted = 0

    @property
    def ended(self) -> bool:
        return not self._units

    def want(self, units: int) -> None:
        self.wanted += units

    def poll(self) -> Arrival | None:
        if not self.wanted:
            return None
        self.wanted -= 1
        self._clock.advance(self._seconds)
        return self._units.popleft()


def dealt(rows: Ints, units: int, generator: np.random.Generator) -> list[Arrival]:
    """Deal rows, of shape (rows, columns), out to units at random."""
    unit = generator.integers(0, units, len(rows))
    return [
        Arrival(tuple(map(pa.array, rows[unit == n].T)), int((unit == n).sum()))
        for n in range(units)
    ]


class SumByKeys:
    """Joins units by few keys, as an eddy does; a row of the result is the sum over a cell.

    Quick, for tests that count over many runs: the result has a row for each group and pair.
    """

    def __init__(self) -> None:
        self._seen: dict[int, list[tuple[Ints, int]]] = {R: [], S: []}

    def push(self, relation: int, arrival: Arrival) -> Iterator[Joined]:
        keys, values, unit = (column.to_numpy() for column in arrival.columns)
        here = np.bincount(keys, values if relation == R else None, KEYS * GROUPS)
        number = int(unit[0])
        self._seen[relation].append((here, number))
        others = self._seen[1 - relation]
        if not others:
            return
        sums = np.array([summed(here, there) for there, _ in others])
        own = np.full(sums.size, number)
        theirs = np.repeat([other for _, other in others], GROUPS)
        units = (own, theirs) if relation == R else (theirs, own)
        groups = np.tile(np.arange(GROUPS), len(others))
        yield Joined(tuple(map(pa.array, (groups, sums.ravel(), *units))), sums.size)

    def end(self, relation: int) -> Sequence[Joined]:
        del relation
        return ()

    def finish(self) -> Sequence[Joined]:
        return ()


KEYS = 20
"""Of a group."""

GROUPS = 12
"""Of what is joined quickly."""


def summed(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return by group what the rows of two inputs join to, each given by key."""
    sums: npt.NDArray[Any] = (left * right).reshape(GROUPS, KEYS).sum(axis=1)
    return sums


def ripple(
    r: Ints,
    s: Ints,
    units: tuple[int, int],
    rates: Rates,
    *,
    seed: int = 0,
    seconds: tuple[float, float] = (1.0, 1.0),
    aggregates: Sequence[WatchedAggregate] = (COUNT, SUM),
    quick: bool = False,
    room: float = float("inf"),
) -> tuple[RippleJoin, Iterator[Estimates]]:
    """Return a ripple join of two relations, and its estimates."""
    generator = np.random.default_rng(seed)
    clock = VirtualClock()
    scans = [
        Units(dealt(rows, of, generator), cost, clock)
        for rows, of, cost in zip((r, s), units, seconds, strict=True)
    ]
    eddy: JoinEddy | SumByKeys = (
        SumByKeys()
        if quick
        else JoinEddy(
            with_units(KEYED, (R, S)),
            [],
            lambda: make_policy("benefit"),
            VirtualClock(),
            np.random.default_rng(0),
        )
    )
    join = RippleJoin(
        eddy,
        [SampledInput(n, scan, of) for n, (scan, of) in enumerate(zip(scans, units, strict=True))],
        Values([Argument(0, INT), Argument(1, INT)]),
        RunningAggregates((("g", INT),) if quick else (), aggregates, units),
        clock.now,
        room=room,
        **(
            {} if rates is narrowing_rates else {"rates": rates}
        ),  # which is what it takes by itself
    )

    def wait() -> None:
        raise AssertionError("all units are there")

    return join, join.run(wait)


ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(-3, 3)), max_size=8)


@examples(40)
@given(ROWS, ROWS, st.tuples(st.integers(1, 5), st.integers(1, 5)), st.integers(0, 5))
def test_they_end_exact(r: list[Row], s: list[Row], units: tuple[int, int], seed: int) -> None:
    tables = [np.array(rows, np.int64).reshape(-1, 2) for rows in (r, s)]
    for rates in (even_rates, narrowing_rates):
        _, estimates = ripple(tables[0], tables[1], units, rates, seed=seed)
        *_, last = estimates
        matches = [x for (k, x), (j, _) in product(r, s) if k == j]
        (row,) = last.table.to_pylist()
        assert last.exact
        assert (row["n"], row["s"]) == (len(matches), sum(matches) if matches else None)
        assert (row["n_low"], row["n_high"]) == (len(matches), len(matches))


def one_varies(seed: int = 1, rows: int = 2000) -> tuple[Ints, Ints]:
    """Return two relations: what R adds to a sum varies a lot, what S adds hardly does."""
    generator = np.random.default_rng(seed)
    values = (1000 * generator.exponential(size=rows) ** 3).astype(np.int64)
    r = np.stack([generator.integers(0, KEYS, rows), values], axis=1)
    s = np.stack([generator.integers(0, KEYS, rows), np.ones(rows, np.int64)], axis=1)
    return r, s


def after(total: int, rates: Rates, seed: int) -> tuple[float, tuple[int, ...]]:
    """Return how wide the sum's interval is after so many units of both, and the units of each."""
    r, s = one_varies()
    join, estimates = ripple(r, s, (40, 40), rates, seed=seed, aggregates=(SUM,))
    for found in estimates:
        done = tuple(source.done for source in join.inputs)
        if sum(done) == total:
            (row,) = found.table.to_pylist()
            return row["s_high"] - row["s_low"], done
    raise AssertionError(f"{total} units of 80")


def test_the_input_that_varies_most_is_read_most_and_narrows_the_interval() -> None:
    widths: dict[Rates, list[float]] = {even_rates: [], narrowing_rates: []}
    for seed in range(5):
        for rates, found in widths.items():
            width, done = after(44, rates, seed)
            found.append(width)
            if rates is even_rates:
                assert done == (22, 22)
            else:
                assert done[0] >= 2 * done[1]
    chosen, even = (np.array(widths[rates]) for rates in (narrowing_rates, even_rates))
    assert (chosen < even).all()
    assert np.median(chosen / even) < 0.85


def test_a_seed_repeats_every_decision() -> None:
    assert after(44, narrowing_rates, 3) == after(44, narrowing_rates, 3)


def test_the_slower_input_is_read_less() -> None:
    generator = np.random.default_rng(4)
    r, s = (
        np.stack([generator.integers(0, 4, 400), generator.integers(0, 9, 400)], axis=1)
        for _ in range(2)
    )
    for seconds, sign in (((1.0, 16.0), 1), ((16.0, 1.0), -1)):
        join, estimates = ripple(
            r, s, (40, 40), narrowing_rates, seconds=seconds, aggregates=(COUNT,)
        )
        for _ in estimates:
            left, right = (source.done for source in join.inputs)
            if left + right == 40:
                break
        assert sign * (left - right) > 10
        rates = rates_of(join.inputs)
        assert rates[R][0] == (left, 40)
        assert sum(rate or 0.0 for _, rate in rates.values()) == pytest.approx(1.0)


def test_the_smaller_input_is_read_to_its_end_where_memory_is_full() -> None:
    generator = np.random.default_rng(5)
    r, s = (
        np.stack([generator.integers(0, 50, n), generator.integers(0, 9, n)], axis=1)
        for n in (600, 200)
    )
    join, estimates = ripple(r, s, (30, 30), even_rates, room=16 * 250)
    for _ in estimates:
        if join.inputs[S].is_complete:
            break
    # Full after some ten units of each; two rounds were on their way.
    assert join.inputs[R].done <= 20
    *_, last = estimates
    (row,) = last.table.to_pylist()
    keys = [Counter(rows[:, 0].tolist()) for rows in (r, s)]
    assert row["n"] == sum(n * keys[1][key] for key, n in keys[0].items())


MOMENTS = (10, 20, 30)
"""Units of 100 after which intervals are judged."""


@functools.cache
def coverage(rates: Rates, runs: int = 40) -> dict[int, float]:
    """Return for each moment how often the 95 % intervals of sums hold the truth."""
    generator = np.random.default_rng(11)
    hits = dict.fromkeys(MOMENTS, 0)
    for run in range(runs):
        # R's values are skewed, and some keys of S are frequent.
        keys = generator.integers(0, KEYS * GROUPS, 2000 * GROUPS)
        values = (10 + 100 * generator.exponential(size=len(keys))).astype(np.int64)
        often = np.minimum(generator.geometric(0.1, len(keys)) - 1, KEYS - 1)
        others = often + KEYS * generator.integers(0, GROUPS, len(keys))
        r, s = (np.stack(columns, axis=1) for columns in ((keys, values), (others, others)))
        truths = summed(
            *(np.bincount(k, w, KEYS * GROUPS) for k, w in ((keys, values), (others, None)))
        )
        join, estimates = ripple(r, s, (50, 50), rates, seed=run, aggregates=(SUM,), quick=True)
        for found in estimates:
            done = sum(source.done for source in join.inputs)
            if done in hits:
                for row in found.table.to_pylist():
                    hits[done] += row["s_low"] <= truths[row["g"]] <= row["s_high"]
            if done == max(MOMENTS):
                break
    return {done: n / runs / GROUPS for done, n in hits.items()}


@pytest.mark.statistical
@pytest.mark.parametrize("done", MOMENTS)
@pytest.mark.parametrize("rates", [even_rates, narrowing_rates], ids=["even", "chosen"])
def test_the_intervals_hold_as_often_as_they_say(rates: Rates, done: int) -> None:
    assert 0.93 <= coverage(rates)[done] <= 0.975


def test_units_are_columns_of_the_result() -> None:
    query = query_of(
        [relation("R"), relation("T"), relation("S")],
        ((0, 0), EQUAL, (1, 0)),
        ((1, 1), LESS, (2, 1)),
    )
    marked = with_units(query, (2, 0))
    assert [len(described.types) for described in marked.relations] == [3, 2, 3]
    places = [marked.place_of(output.index) for output in marked.outputs]  # type: ignore[attr-defined]  # columns
    assert places == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (0, 2)]
    (_, compared) = marked.predicates
    assert [marked.place_of(side.index) for side in compared.children] == [(1, 1), (2, 1)]  # type: ignore[attr-defined]
