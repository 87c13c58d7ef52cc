"""Hundreds of modules: what the adaptive policy does for each tuple does not grow with them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.simulation.known_costs import Known
from eddyline.engine.filter.filter_eddy import FilterEddy, FilterPlan
from eddyline.engine.modules.nested import Nested
from eddyline.engine.policies.adaptive import AdaptivePolicy
from eddyline.engine.policies.adaptive_knowledge import STATIONS, Knowledge
from eddyline.engine.policies.adaptive_order import PooledOrder
from eddyline.engine.policies.adaptive_plan import HORIZON
from eddyline.engine.routes import Routes
from eddyline.engine.signature import ENTERING, Signature
from eddyline.expressions import And, Argument, Call, Or
from eddyline.expressions.vector import Vector
from eddyline.simulation.virtual_clock import VirtualClock

ROWS = 2_000


class Counted(Knowledge):
    """Counts how often it is asked what a module does."""

    asked = 0

    def estimate(self, signature: Signature, module: int) -> tuple[float, ...]:  # type: ignore[override]
        Counted.asked += 1
        return super().estimate(signature, module)


class Watched(AdaptivePolicy):
    """The policy, with a count of what its decisions look at."""

    new_knowledge = Counted


def run(terms: int, *, either: bool, passing: float = 0.999) -> tuple[int, int, set[int]]:
    """Return visits, estimates and rows kept of cheap terms over one batch of rows."""
    clock = VirtualClock()
    decisive = np.random.default_rng(5).random((terms, ROWS)) >= passing
    column = Argument(0, pa.int64())
    kind = Or if either else And
    eddy = FilterEddy(
        FilterPlan(kind(tuple(Call(n, (column,), pa.bool_()) for n in range(terms)))),
        [Known(clock, np.full(ROWS, 2e-7), each if either else ~each) for each in decisive],
        Watched,
        clock,
        np.random.default_rng(0),
    )
    Counted.asked = 0
    kept = eddy.filter([pa.array(np.arange(ROWS))], ROWS).kept
    visits = eddy.statistics().eddy.decisions
    for module in eddy.eddy.modules.values():
        if isinstance(module, Nested):
            visits += module.eddy.statistics().decisions
    survives = decisive.any(axis=0) if either else ~decisive.any(axis=0)
    assert set(kept) == set(np.flatnonzero(survives))
    return visits, Counted.asked, set(kept.tolist())


@pytest.mark.parametrize("either", [False, True], ids=["and", "or"])
@pytest.mark.parametrize("terms", [20, 80, 300, 1000])
def test_visits_and_estimates_grow_no_faster_than_terms(terms: int, *, either: bool) -> None:
    visits, estimates, _ = run(terms, either=either)
    assert visits <= 12 * terms
    assert estimates <= 2 * HORIZON * visits


class Noisy:
    """A cheap predicate on a machine where visits take twice as long or half, some ten times."""

    vectorized = False

    def __init__(
        self, clock: VirtualClock, noise: np.random.Generator, accepts: npt.NDArray[np.bool_]
    ) -> None:
        self._clock = clock
        self._noise = noise
        self._accepts = accepts

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        disturbed = self._noise.lognormal(0.0, 0.5) * (10.0 if self._noise.random() < 0.05 else 1.0)
        self._clock.advance((100e-6 + 2e-7 * rows) * disturbed)
        return Vector(pa.array(self._accepts[columns[0].to_numpy()]))


@pytest.mark.parametrize("seed", range(6))
def test_tuples_keep_company_where_the_clock_is_noisy(seed: int) -> None:
    """Groups that the noise has parted come together again, or each visits every module alone."""
    terms, rows = 300, 5_000
    clock, noise = VirtualClock(), np.random.default_rng(seed)
    accepts = noise.random((terms, rows)) < 0.9995
    column = Argument(0, pa.int64())
    eddy = FilterEddy(
        FilterPlan(And(tuple(Call(n, (column,), pa.bool_()) for n in range(terms)))),
        [Noisy(clock, noise, each) for each in accepts],
        AdaptivePolicy,
        clock,
        np.random.default_rng(0),
    )
    kept = eddy.filter([pa.array(np.arange(rows))], rows).kept
    assert set(kept) == set(np.flatnonzero(accepts.all(axis=0)))
    assert eddy.statistics().eddy.decisions <= 12 * terms


def naive_candidates(modules: int, done: int) -> tuple[int, ...]:
    return tuple(module for module in range(modules) if not done >> module & 1)


@given(st.integers(0, 70), st.integers(0, 2**70 - 1))
def test_candidates_are_what_is_not_done(modules: int, done: int) -> None:
    done &= (1 << modules) - 1
    routes = Routes(modules)
    assert routes.candidates(Signature(done=done)) == naive_candidates(modules, done)
    assert routes.remaining(Signature(done=done)) == naive_candidates(modules, done)


def test_only_so_many_candidates_are_remembered() -> None:
    """A task of a thousand predicates meets new signatures for as long as it runs."""
    routes = Routes(1000)
    for module in range(3000):
        routes.candidates(Signature(done=1 << (module % 1000), built=module))
    assert sum(map(len, routes._known.values())) <= 1 << 20


def test_only_so_many_signatures_are_remembered() -> None:
    knowledge = Knowledge(Routes(20))
    for done in range(1 << 15):
        knowledge.of(Signature(done=done)).last_used = done
    assert len(knowledge.signatures) <= 2 * STATIONS
    assert Signature(done=(1 << 15) - STATIONS // 2) in knowledge.signatures


VISITS = st.lists(
    st.tuples(
        st.integers(0, 11),  # module
        st.integers(0, 4095),  # done
        st.integers(1, 50),  # tuples
        st.floats(0.0, 1.0),  # part of them that comes back
        st.floats(1e-7, 1e-3),  # cost of one
    ),
    max_size=60,
)


def learned(visits: Sequence[tuple[int, int, int, float, float]]) -> Knowledge:
    knowledge = Knowledge(Routes(12))
    now = 0
    for module, done, tuples, back, cost in visits:
        now += tuples
        signature = Signature(done=done & ~(1 << module))
        found = knowledge.learn(signature, module, now, tuples, round(back * tuples), cost * tuples)
        if found is not None:
            knowledge.forget(signature, module, found)
    return knowledge


@given(VISITS)
def test_sums_that_are_kept_up_are_those_of_all_records(
    visits: list[tuple[int, int, int, float, float]],
) -> None:
    knowledge = learned(visits)
    knowledge.pool()
    kept_up = knowledge.shared_by_module()
    knowledge._void = True
    knowledge.pool()
    for one, other in zip(kept_up, knowledge.shared_by_module(), strict=True):
        assert one == pytest.approx(other, rel=1e-9)


@given(VISITS, st.integers(0, 4095))
def test_the_next_modules_are_those_first_in_the_order(
    visits: list[tuple[int, int, int, float, float]], done: int
) -> None:
    knowledge = learned(visits)
    knowledge.pool()
    order = PooledOrder(knowledge, range(12))
    order.sort()
    expected = list(order.remaining(done))
    ranks = knowledge.shared_by_module()
    seen = [ranks[module].rank for module in expected if ranks[module].seen]
    assert seen == sorted(seen)
    if expected:
        assert order.first(done) == expected[0]
        near = order.next(done, 4)
        assert list(near.modules) == expected[:4]
        for module, place in near.far:
            assert module in expected[4:]
            assert place >= 4


def test_noise_of_the_clock_changes_no_order() -> None:
    knowledge = Knowledge(Routes(50))
    knowledge.overhead = lambda _: 20e-6
    order = PooledOrder(knowledge, range(50))
    noise = np.random.default_rng(0)
    for visit in range(10):
        for module in range(50):
            cost = 1e-7 * float(np.exp(0.5 * noise.standard_normal()))
            knowledge.learn(ENTERING, module, 1000 * visit, 100, 99, 100 * cost)
        knowledge.pool()
        order.entered += 100
        order.sort()
        if not visit:
            first = list(order.remaining(0))
    assert list(order.remaining(0)) == first


def test_a_better_order_is_taken_once_it_would_have_paid() -> None:
    knowledge = Knowledge(Routes(20))
    knowledge.overhead = lambda _: 20e-6
    order = PooledOrder(knowledge, range(20))
    for module in range(20):
        knowledge.learn(ENTERING, module, 1, 100, 99, 100e-6)
    knowledge.pool()
    order.sort()
    before = list(order.remaining(0))
    knowledge.learn(ENTERING, before[-1], 2, 1000, 10, 1000e-6)
    knowledge.pool()
    order.entered = 5  # saves 18 microseconds each, and a change costs 400
    order.sort()
    assert list(order.remaining(0)) == before
    order.entered = 100
    order.sort()
    assert next(order.remaining(0)) == before[-1]
