"""What every policy owes an eddy: legal choices, the same answer, repeatable decisions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.simulation.known_costs import Known
from eddyline.engine.filter.filter_eddy import FilterEddy, FilterPlan
from eddyline.engine.policies.adaptive import AdaptivePolicy
from eddyline.engine.policies.catalogue import PolicyName, make_policy, policy_name
from eddyline.engine.policies.lottery import LotteryPolicy
from eddyline.engine.policies.policy import Policy
from eddyline.engine.policies.rank import RankPolicy
from eddyline.engine.policies.static import StaticPolicy
from eddyline.engine.quantum import MeasuredQuantum, Quantum
from eddyline.engine.routes import Routes
from eddyline.engine.signature import ENTERING, Signature
from eddyline.errors import EddylineError, UnknownPolicyError
from eddyline.expressions import And, Argument, Call
from eddyline.simulation.fixed_quantum import FixedQuantum
from eddyline.simulation.virtual_clock import VirtualClock
from tests.properties import examples

EVERY_POLICY = pytest.mark.parametrize("name", list(PolicyName))
COLUMN = Argument(0, pa.int64())


class Watch:
    """Writes every visit down."""

    def __init__(self) -> None:
        self.visits: list[tuple[Signature, int, int, int]] = []

    def visited(
        self,
        signature: Signature,
        module: int,
        tuples_in: int,
        tuples_out: int,
        seconds: float,  # noqa: ARG002 - times are the clock's
    ) -> None:
        self.visits.append((signature, module, tuples_in, tuples_out))


def run(
    name: str,
    costs: list[float],
    passes: np.ndarray,
    quantum: Quantum,
    *,
    seed: int = 0,
    batch: int = 100,
) -> tuple[list[int], Watch, float]:
    """Return rows kept, visits and virtual seconds."""
    clock, watch = VirtualClock(), Watch()
    predicates, rows = passes.shape
    eddy = FilterEddy(
        FilterPlan(And(tuple(Call(i, (COLUMN,), pa.bool_()) for i in range(predicates)))),
        [Known(clock, np.full(rows, costs[i]), passes[i]) for i in range(predicates)],
        lambda: make_policy(name),
        clock,
        np.random.default_rng(seed),
        quantum=quantum,
        instrument=watch,
    )
    kept: list[int] = []
    for start in range(0, rows, batch):
        stop = min(start + batch, rows)
        result = eddy.filter([pa.array(np.arange(start, stop))], stop - start)
        kept += (result.kept + start).tolist()
    return kept, watch, clock.now()


@examples(60)
@given(
    name=st.sampled_from(list(PolicyName)),
    costs=st.lists(st.sampled_from([0.0, 1e-6, 5e-5, 1e-3]), min_size=2, max_size=5),
    passing=st.lists(st.sampled_from([0.0, 0.02, 0.5, 1.0]), min_size=5, max_size=5),
    quantum=st.sampled_from([FixedQuantum(1), FixedQuantum(7), MeasuredQuantum()]),
    rows=st.integers(0, 400),
    batch=st.sampled_from([1, 64, 400]),
    seed=st.integers(0, 100),
)
def test_no_row_is_lost_and_no_module_meets_one_twice(
    *,
    name: str,
    costs: list[float],
    passing: list[float],
    quantum: Quantum,
    rows: int,
    batch: int,
    seed: int,
) -> None:
    drawn = np.random.default_rng(seed).random((len(costs), rows))
    passes = drawn < np.array(passing[: len(costs)])[:, None]
    kept, watch, _ = run(name, costs, passes, quantum, seed=seed, batch=batch)
    assert kept == np.flatnonzero(passes.all(axis=0)).tolist()
    for signature, module, _, _ in watch.visits:
        assert not signature.done >> module & 1
    for module in range(len(costs)):
        assert sum(n for _, visited, n, _ in watch.visits if visited == module) <= rows
    entered = sum(tuples for signature, _, tuples, _ in watch.visits if signature == ENTERING)
    assert entered == rows


@EVERY_POLICY
def test_one_seed_is_one_sequence_of_decisions(name: str) -> None:
    passes = np.random.default_rng(5).random((3, 3000)) < np.array([[0.3], [0.6], [0.9]])
    runs = [run(name, [5e-5, 2e-5, 1e-5], passes, FixedQuantum(10), seed=9) for _ in range(2)]
    assert runs[0][1].visits == runs[1][1].visits
    assert runs[0][2] == runs[1][2]


@pytest.mark.parametrize("name", [PolicyName.NAIVE, PolicyName.LOTTERY])
def test_chance_comes_from_the_generator_alone(name: str) -> None:
    passes = np.random.default_rng(5).random((3, 3000)) < np.array([[0.3], [0.6], [0.9]])
    visits = [
        run(name, [5e-5, 2e-5, 1e-5], passes, FixedQuantum(10), seed=seed)[1].visits
        for seed in (1, 2)
    ]
    assert visits[0] != visits[1]


@EVERY_POLICY
def test_routing_keeps_precedence_and_an_order_names_what_is_left_once(name: str) -> None:
    routes = Routes(4, {0: 0b1000})  # 0 comes after 3
    policy = make_policy(name)
    policy.start(routes, np.random.default_rng(0))
    signature = ENTERING
    for _ in range(50):
        candidates = routes.candidates(signature)
        if not candidates:
            signature = ENTERING
            continue
        allotment = policy.route(signature, candidates, candidates, 10)
        assert allotment is not None
        assert allotment.module in candidates
        assert 1 <= allotment.tuples <= 10
        policy.sent(signature, allotment.module, allotment.tuples)
        policy.returned(signature, allotment.module, allotment.tuples, 1, 1.0)
        signature = signature.after(allotment.module)
    assert sorted(policy.order(ENTERING)) == [0, 1, 2, 3]
    assert sorted(policy.order(Signature(done=0b1010))) == [0, 2]


@pytest.mark.parametrize(
    "name", [PolicyName.LOTTERY, PolicyName.WINDOWED_LOTTERY, PolicyName.RANK, PolicyName.ADAPTIVE]
)
def test_the_selective_of_two_equally_dear_predicates_comes_first(name: str) -> None:
    passes = np.random.default_rng(5).random((2, 20_000)) < np.array([[0.9], [0.1]])
    _, watch, _ = run(name, [2e-5, 2e-5], passes, FixedQuantum(20), batch=1000)
    first = dict.fromkeys((0, 1), 0)
    for signature, module, tuples, _ in watch.visits:
        if signature == ENTERING:
            first[module] += tuples
    assert first[1] > 2 * first[0]


@pytest.mark.parametrize("name", [name for name in PolicyName if name is not PolicyName.STATIC])
def test_the_cheap_of_two_equally_selective_predicates_comes_first(name: str) -> None:
    passes = np.random.default_rng(5).random((2, 20_000)) < 0.5
    _, watch, _ = run(name, [5e-4, 2e-5], passes, FixedQuantum(20), batch=1000)
    first = dict.fromkeys((0, 1), 0)
    for signature, module, tuples, _ in watch.visits:
        if signature == ENTERING:
            first[module] += tuples
    assert first[1] > 2 * first[0]


def test_policies_go_by_name() -> None:
    for name in PolicyName:
        assert make_policy(name).name == name
    with pytest.raises(UnknownPolicyError, match=r"'fastest'.*static, naive, .*adaptive") as caught:
        policy_name("fastest")
    assert isinstance(caught.value, EddylineError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: StaticPolicy((0, 0)), ValueError),
        (lambda: StaticPolicy((-1,)), ValueError),
        (lambda: StaticPolicy("10"), TypeError),  # type: ignore[arg-type]
        (lambda: StaticPolicy({1, 0}), TypeError),  # type: ignore[arg-type]
        (lambda: StaticPolicy((True, False)), TypeError),
        (lambda: StaticPolicy(5), TypeError),  # type: ignore[arg-type]
        (lambda: AdaptivePolicy("x"), TypeError),  # type: ignore[arg-type]
        (lambda: AdaptivePolicy(float("nan")), ValueError),
        (lambda: AdaptivePolicy(by_content="no"), TypeError),  # type: ignore[arg-type]
        (lambda: LotteryPolicy("3"), TypeError),  # type: ignore[arg-type]
        (lambda: LotteryPolicy(0), ValueError),
        (lambda: RankPolicy(None), TypeError),  # type: ignore[arg-type]
        (lambda: RankPolicy(2.5), ValueError),  # type: ignore[arg-type]
    ],
)
def test_parameters_that_make_no_sense_are_refused_at_once(
    make: Callable[[], Policy], error: type[Exception]
) -> None:
    with pytest.raises(error):
        make()
