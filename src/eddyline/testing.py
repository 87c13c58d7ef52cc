"""For those who write routing policies: what an eddy relies on, checked, and the simulator.

Nothing here runs Spark.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.blocks.chosen_policy import ChosenPolicy, chosen_policy
from eddyline.engine.filter.filter_eddy import FilterEddy, FilterPlan
from eddyline.engine.join.join_eddy import JoinEddy
from eddyline.engine.join_query import JoinQuery, JoinRelation
from eddyline.engine.modules.scan_access import Arrival, HeldScan
from eddyline.engine.policies.guarded import checked_allotment, checked_order, shortened
from eddyline.engine.policies.policy import Allotment, Policy, begin_with, no_overhead
from eddyline.engine.policies.static import StaticPolicy
from eddyline.engine.prior import Prior
from eddyline.engine.quantum import MeasuredQuantum, Quantum
from eddyline.engine.routes import Routes
from eddyline.engine.signature import ENTERING, Signature
from eddyline.expressions import (
    And,
    Argument,
    Call,
    Comparison,
    ComparisonOperator,
    Expression,
    Or,
)
from eddyline.expressions.vector import Vector
from eddyline.simulation.fixed_quantum import FixedQuantum
from eddyline.simulation.simulate import (
    RoutingTime,
    SimulatedSelection,
    SimulationResult,
    simulate,
)
from eddyline.simulation.virtual_clock import VirtualClock

__all__ = ["RoutingTime", "SimulatedSelection", "SimulationResult", "check_policy", "simulate"]

BATCH: Final = 50
"""Rows that an eddy is given at a time."""

LOOK: Final = 16
"""Decisions between two looks at the order that a policy tells."""

INT: Final = pa.int64()

Said = list[tuple[Signature, Allotment | None]]
"""What a policy has decided, for tuples of which signature."""


def check_policy(policy: str | Policy, *, seed: int = 0) -> None:
    """Check that a policy keeps what an eddy relies on; AssertionError says what it does not.

    It is checked as Spark would use it: each eddy has a copy made from its pickle. The copies
    route filters of one to five predicates, one with an OR and one in which predicates wait for
    others, in visits of one tuple, of seven and of as many as pay; a join of three relations; and,
    behind bounded queues, the selections of the simulator. In all of them

    - it chooses candidates only, for one tuple or more, and waits only for tuples that are away;
    - the rows are those of the written order;
    - its order names what is left to a tuple, each module once;
    - one ``seed`` is one sequence of decisions, also after other copies have run, and no chance
      comes from Python's or NumPy's common generators;
    - it can be started again: for the next eddy over the same modules, for one over others, and
      where modules come and go;
    - if it takes what is known beforehand, it can do all that with it.

    Raises TypeError and UnknownPolicyError as :func:`~eddyline.adapt` does. How well it routes is
    not checked: :func:`simulate` tells. It takes about a second.
    """
    chosen = chosen_policy(policy)
    with _without_common_chance(chosen.name):
        for world in _worlds(seed):
            for quantum in (FixedQuantum(1), FixedQuantum(7), MeasuredQuantum()):
                with _told(chosen.name, world.name):
                    world.check(_Copies(chosen), quantum, seed)
        with _told(chosen.name, "one seed, several times"):
            _check_repeats(chosen, seed)
        with _told(chosen.name, "one eddy after another"):
            _check_next_eddies(chosen, seed)
        with _told(chosen.name, "modules that come and go"):
            _check_coming_and_going(_fresh(chosen), seed)
        with _told(chosen.name, "what is known beforehand"):
            _check_priors(_fresh(chosen), seed)
        with _told(chosen.name, "bounded queues"):
            _check_queues(chosen, seed)
        with _told(chosen.name, "a join"):
            _check_join(_Copies(chosen), seed)


class _Watched:
    """Asks a policy, checks what it says, and writes its decisions down."""

    def __init__(self, policy: Policy, said: Said, *, joins: bool = False) -> None:
        self.name = policy.name
        self._policy = policy
        self._said = said
        self._joins = joins
        self._away = 0
        self._routes = Routes(0)

    def start(
        self,
        routes: Routes,
        generator: np.random.Generator,
        overhead: Callable[[int], float] = no_overhead,
        *,
        queued: bool = False,
    ) -> None:
        self._routes = routes
        self._away = 0
        self._policy.start(routes, generator, overhead, queued=queued)

    def believe(self, priors: dict[int, Prior]) -> None:
        begin_with(self._policy, priors)

    def route(
        self, signature: Signature, candidates: tuple[int, ...], open_: tuple[int, ...], tuples: int
    ) -> Allotment | None:
        chosen = self._policy.route(signature, candidates, open_, tuples)
        allotment = checked_allotment(chosen, candidates, self._away)
        if len(self._said) % LOOK == 0:
            self.order(signature)
        self._said.append((signature, allotment))
        return allotment

    def sent(self, signature: Signature, module: int, tuples: int) -> None:
        self._away += tuples
        self._policy.sent(signature, module, tuples)

    def returned(
        self, signature: Signature, module: int, tuples_in: int, tuples_out: int, cost: float
    ) -> None:
        self._away -= tuples_in
        self._policy.returned(signature, module, tuples_in, tuples_out, cost)

    def order(self, signature: Signature) -> tuple[int, ...]:
        named = self._policy.order(signature)
        if not isinstance(named, tuple):
            raise TypeError(f"an order is a tuple of modules' numbers, not {named!r}")
        order = checked_order(named, signature, self._routes)
        left = self._routes.remaining(signature)
        if not self._joins and sorted(order) != sorted(left):
            raise AssertionError(f"the order {order} does not name what is left, {left}")
        return order


@dataclass(frozen=True)
class _Copies:
    """Makes copies of a policy, each watched; ``said`` is what all of them have decided."""

    chosen: ChosenPolicy
    joins: bool = False
    said: Said = field(default_factory=list)

    def __call__(self) -> Policy:
        return _Watched(_fresh(self.chosen), self.said, joins=self.joins)


@dataclass
class _Selection:
    """A function of known cost (seconds a row) and outcome, row by row."""

    clock: VirtualClock
    cost: float
    passes: npt.NDArray[np.bool_]
    vectorized: bool = field(default=False, init=False)

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        self.clock.advance(self.cost * rows)
        return Vector(pa.array(self.passes[columns[0].to_numpy()]))


@dataclass(frozen=True)
class _World:
    """A filter over predicates of given costs and outcomes (predicates by rows)."""

    name: str
    costs: tuple[float, ...]
    passes: npt.NDArray[np.bool_]
    either: bool = False  # the last two predicates are an OR
    waits: tuple[int, ...] = ()

    def check(self, make: _Copies, quantum: Quantum, seed: int) -> None:
        """Route the rows, and compare with the written order."""
        last = self.passes[-2:].any(axis=0) if self.either else self.passes[-2:].all(axis=0)
        expected = np.flatnonzero(self.passes[:-2].all(axis=0) & last).tolist()
        kept = self.kept(make, quantum, np.random.default_rng(seed))
        if kept != expected:
            raise AssertionError(f"{len(kept)} rows are kept, not the {len(expected)} that pass")

    def kept(
        self, make: Callable[[], Policy], quantum: Quantum, generator: np.random.Generator
    ) -> list[int]:
        """Return the rows that pass."""
        clock, rows = VirtualClock(), self.passes.shape[1]
        calls: list[Expression] = [
            Call(number, (Argument(0, INT),), pa.bool_()) for number in range(len(self.costs))
        ]
        if self.either:
            calls[-2:] = [Or((calls[-2], calls[-1]))]
        eddy = FilterEddy(
            FilterPlan(And(tuple(calls)) if len(calls) > 1 else calls[0], waits=self.waits),
            [_Selection(clock, *each) for each in zip(self.costs, self.passes, strict=True)],
            make,
            clock,
            generator,
            quantum=quantum,
        )
        kept: list[int] = []
        for start in range(0, rows, BATCH):
            numbers = np.arange(start, min(start + BATCH, rows))
            result = eddy.filter([pa.array(numbers)], len(numbers))
            kept += (result.kept + start).tolist()
        return kept


def _worlds(seed: int) -> Iterator[_World]:
    drawn = np.random.default_rng([seed, 1]).random((5, 5 * BATCH))
    chances = np.array([[0.9], [0.5], [0.1], [0.6], [0.3]])
    passes = drawn < chances
    costs = (1e-6, 5e-5, 1e-3, 0.0, 2e-5)
    for predicates in range(1, len(costs) + 1):
        yield _World(f"{predicates} predicates", costs[:predicates], passes[:predicates])
    yield _World("an OR among predicates", costs, passes, either=True)
    yield _World("predicates that wait", costs, passes, waits=(0, 0, 1, 0, 3))
    yield _World("no rows that pass", costs[:2], np.zeros((2, BATCH), np.bool_))


def _fresh(chosen: ChosenPolicy) -> Policy:
    """Return a copy as a task makes it, without its guard."""
    if chosen.pickled is None:
        return chosen.make()
    policy: Policy = pickle.loads(chosen.pickled)  # noqa: S301 - made here
    return policy


def _some_world(seed: int) -> _World:
    return list(_worlds(seed))[4]


def _check_repeats(chosen: ChosenPolicy, seed: int) -> None:
    world, runs = _some_world(seed), []
    for _ in range(2):
        copies = _Copies(chosen)
        world.check(copies, FixedQuantum(7), seed)
        runs.append(copies.said)
    if runs[0] != runs[1]:
        place = next(n for n, (one, two) in enumerate(zip(*runs, strict=False)) if one != two)
        raise AssertionError(
            f"decision {place} differs: is something shared by copies, or drawn from elsewhere "
            "than the generator of start?"
        )


def _check_next_eddies(chosen: ChosenPolicy, seed: int) -> None:
    """Hand one copy from eddy to eddy, as tasks do, and to others than those of a task."""
    policy = _Watched(_fresh(chosen), [])
    worlds = list(_worlds(seed))
    for world in (worlds[4], worlds[4], worlds[1], worlds[4]):
        world.kept(lambda: policy, FixedQuantum(7), np.random.default_rng(seed))


def _check_coming_and_going(policy: Policy, seed: int) -> None:
    watched, generator = _Watched(policy, []), np.random.default_rng(seed)
    routes = Routes(3)
    watched.start(routes, generator)
    _drive(watched, routes, generator)
    routes.add()
    watched.start(routes, generator)
    _drive(watched, routes, generator)
    routes.remove(0)
    watched.start(routes, generator)
    _drive(watched, routes, generator)


def _check_priors(policy: Policy, seed: int) -> None:
    watched, generator = _Watched(policy, []), np.random.default_rng(seed)
    routes = Routes(3)
    watched.start(routes, generator)
    watched.believe({0: Prior(100.0, 50.0, 1e-3), 2: Prior(1.0, 0.0, 0.0)})
    _drive(watched, routes, generator)


def _drive(policy: Policy, routes: Routes, generator: np.random.Generator) -> None:
    """Lead a hundred groups of tuples through all modules."""
    for _ in range(100):
        signature = ENTERING
        policy.order(signature)
        tuples = int(generator.integers(1, 20))
        while candidates := routes.candidates(signature):
            chosen = policy.route(signature, candidates, candidates, tuples)
            if chosen is None:
                raise AssertionError("it waits although no tuple is with a module")
            visiting = min(chosen.tuples, tuples)
            policy.sent(signature, chosen.module, visiting)
            passed = int(generator.integers(0, visiting + 1))
            policy.returned(signature, chosen.module, visiting, passed, 1e-5 * visiting)
            signature = routes.after(signature, chosen.module)
            policy.order(signature)


def _check_queues(chosen: ChosenPolicy, seed: int) -> None:
    modules = [SimulatedSelection(cost, share) for cost, share in ((1.0, 0.6), (5.0, 0.2))]
    expected = simulate(modules, StaticPolicy(), tuples=300, seed=seed)
    done = simulate(modules, _Watched(_fresh(chosen), []), tuples=300, seed=seed)
    if sorted(done.finished) != sorted(expected.finished):
        raise AssertionError("other tuples pass than in the written order")


def _check_join(make: _Copies, seed: int) -> None:
    """Join R.a = S.a and S.b = T.b, with a predicate over each of R and T."""
    drawn = np.random.default_rng([seed, 2]).integers(0, 20, (3, 2, BATCH))
    clock = VirtualClock()
    query = JoinQuery(tuple(JoinRelation(name, (INT, INT)) for name in "RST"))
    column = query.column
    query = JoinQuery(
        query.relations,
        (
            Comparison(ComparisonOperator.EQUAL, column(0, 0), column(1, 0)),
            Comparison(ComparisonOperator.EQUAL, column(1, 1), column(2, 1)),
            Call(0, (column(0, 1),), pa.bool_()),
            Call(1, (column(2, 0),), pa.bool_()),
        ),
        (column(0, 1), column(1, 0), column(1, 1), column(2, 0)),
    )
    passes = np.random.default_rng([seed, 3]).random((2, 20)) < np.array([[0.3], [0.7]])
    eddy = JoinEddy(
        query,
        [_Selection(clock, cost, keep) for cost, keep in zip((1e-3, 1e-5), passes, strict=True)],
        _Copies(make.chosen, joins=True),
        clock,
        np.random.default_rng(seed),
    )
    inputs = [
        HeldScan(
            Arrival(tuple(pa.array(values[at : at + 10]) for values in relation), 10)
            for at in range(0, BATCH, 10)
        )
        for relation in drawn
    ]
    rows = [
        row
        for joined in eddy.run(inputs)
        for row in zip(*(values.to_pylist() for values in joined.outputs), strict=True)
    ]
    expected = [
        (int(rb), int(sa), int(sb), int(ta))
        for ra, rb in drawn[0].T
        if passes[0, rb]
        for sa, sb in drawn[1].T
        if sa == ra
        for ta, tb in drawn[2].T
        if tb == sb and passes[1, ta]
    ]
    if sorted(rows) != sorted(expected):
        raise AssertionError(f"{len(rows)} joined rows come out, not the {len(expected)} that pass")


@contextmanager
def _told(policy: str, what: str) -> Iterator[None]:
    """Say of any error what was tried."""
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"policy {policy} fails with {what}: {error}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        why = shortened(error)
        raise AssertionError(f"policy {policy} fails with {what}: {why}") from error


@contextmanager
def _without_common_chance(policy: str) -> Iterator[None]:
    """AssertionError where Python's or NumPy's common generator was drawn from."""
    before = random.getstate(), repr(np.random.get_state())  # noqa: NPY002 - whether it was used
    yield
    if before != (random.getstate(), repr(np.random.get_state())):  # noqa: NPY002 - likewise
        raise AssertionError(
            f"policy {policy} draws from a common generator; start hands it one of its own"
        )
