"""Value over time: which of several access methods tuples go to, and what a user wants first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest

from bench.simulation.virtual_agenda import VirtualAgenda
from bench.simulation.virtual_calls import VirtualCaller
from bench.simulation.virtual_scan import VirtualScan
from eddyline.engine.join.join_eddy import JoinEddy
from eddyline.engine.join.reading_order import Goal
from eddyline.engine.join_query import JoinQuery
from eddyline.engine.modules.concurrent_index_access import ConcurrentSource
from eddyline.engine.modules.scan_access import HeldScan, ScanAccess
from eddyline.engine.policies.benefit import BenefitPolicy
from eddyline.engine.policies.catalogue import PolicyName, make_policy
from eddyline.expressions import (
    Arithmetic,
    ArithmeticOperator,
    Call,
    Comparison,
    Expression,
    Literal,
)
from eddyline.simulation.fixed_quantum import FixedQuantum
from eddyline.simulation.virtual_clock import VirtualClock
from tests.joins import (
    BOOL,
    EQUAL,
    INT,
    Row,
    Table,
    TableSource,
    arrival,
    equal,
    expected,
    looked_up,
    make_eddy,
    query_of,
    relation,
)

R, S, T = range(3)


@dataclass
class Timed:
    """A query over sources that take virtual time, and what came of it: rows, and when."""

    query: JoinQuery
    tables: Sequence[Table]
    seconds: dict[tuple[int, int], Callable[[float], float]]
    scans: dict[int, float]
    policy: str = "benefit"
    sized: bool = True
    clock: VirtualClock = field(default_factory=VirtualClock)
    came: list[tuple[float, Row]] = field(default_factory=list)
    asked: dict[tuple[int, int], list[tuple[float, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.agenda = VirtualAgenda(self.clock)
        self.eddy = make_eddy(
            self.query,
            policy=self.policy,
            quantum=FixedQuantum(1),
            clock=self.clock,
            goal=Goal.INTERACTIVE,
            lookups={place: self._source(place) for place in self.seconds},
        )

    def _source(self, place: tuple[int, int]) -> ConcurrentSource:
        r, number = place
        described = self.query.relations[r]
        source = TableSource(self.tables[r], described, described.lookups[number].bind)
        asked = self.asked[place] = []

        def seconds(bindings: Sequence[pa.Array]) -> float:
            asked.append((self.clock.now(), bindings[0][0].as_py()))
            return self.seconds[place](self.clock.now())

        return ConcurrentSource(VirtualCaller(source, self.agenda, seconds, width=1))

    def run(
        self,
        before: Callable[[JoinEddy], None] = lambda _: None,
        after_each: Callable[[JoinEddy], None] = lambda _: None,
    ) -> Timed:
        """Run it; ``before`` is told of the eddy, and ``after_each`` after each result."""
        inputs: list[ScanAccess] = []
        for r, described in enumerate(self.query.relations):
            rows = [arrival([row], described.types) for row in self.tables[r]]
            inputs.append(
                VirtualScan(rows, [self.scans[r]] * len(rows), self.agenda, sized=self.sized)
                if r in self.scans
                else HeldScan(())
            )
        before(self.eddy)

        def wait() -> None:
            self.agenda.wait()

        for joined in self.eddy.run(inputs, wait):
            columns = [column.to_pylist() for column in joined.outputs]
            self.came += [(self.clock.now(), row) for row in zip(*columns, strict=True)]
            after_each(self.eddy)
        return self

    def by(self, time: float) -> int:
        """Return the rows that had come by a time."""
        return sum(at <= time for at, _ in self.came)


# --- Scan against lookup

KEYED = query_of([relation("R"), looked_up("S", (0,), scan=True)], equal((R, 0), (S, 0)))


def keyed(rows: int = 200, **options: object) -> Timed:
    generator = np.random.default_rng(3)
    r = [(int(key), 0) for key in generator.permutation(rows)]
    s = [(int(key), 1) for key in generator.permutation(rows)]
    seconds = {(S, 0): lambda _: 1.0}
    timed = Timed(KEYED, [r, s], seconds, {R: 0.05, S: 0.2}, **options)  # type: ignore[arg-type]
    return timed.run()


@pytest.mark.parametrize("sized", [True, False])
def test_it_begins_with_lookups_and_goes_over_to_the_scan(*, sized: bool) -> None:
    """S is scanned in 40 s, and looked up once a second."""
    hybrid = keyed(sized=sized)
    assert sorted(row for _, row in hybrid.came) == [(n, 0, n, 1) for n in range(200)]
    asked = [at for at, _ in hybrid.asked[S, 0]]
    assert sum(at < 20 for at in asked) >= 18
    assert not [at for at in asked if at > 40.0 + 1.0]  # when the queue is worked off
    scanned = Timed(
        query_of([relation("R"), relation("S")], equal((R, 0), (S, 0))),
        hybrid.tables,
        {},
        {R: 0.05, S: 0.2},
    ).run()
    for time in range(1, 40):
        assert hybrid.by(time) >= max(scanned.by(time), time - 1)
    assert hybrid.clock.now() <= scanned.clock.now() + 2.0


def test_what_the_scan_has_brought_is_not_looked_up() -> None:
    hybrid = keyed()
    scanned_at = {row[0]: 0.2 * (place + 1) for place, row in enumerate(hybrid.tables[S])}
    # One more may wait in the queue, behind one that is asked for.
    assert all(at < scanned_at[key] + 2.0 for at, key in hybrid.asked[S, 0])
    assert len(hybrid.asked[S, 0]) == len({key for _, key in hybrid.asked[S, 0]})


def test_what_a_scan_brings_sooner_is_not_looked_up() -> None:
    """After the first answer, at 4 s, the other rows of S come in 3 s on average."""
    slow = Timed(
        KEYED,
        [[(n, 0) for n in range(99, -1, -1)], [(n, 1) for n in range(100)]],
        {(S, 0): lambda _: 4.0},
        {R: 0.01, S: 0.1},
    ).run()
    assert len(slow.came) == 100
    assert len(slow.asked[S, 0]) == 2  # one of them was in the queue by then


# --- Lookup against lookup

TWINS = query_of(
    [relation("R"), looked_up("S", (1,), (2,), columns=3)],
    equal((R, 1), (S, 1)),
    equal((R, 1), (S, 2)),
)


def twins(first: Callable[[float], float], second: Callable[[float], float]) -> Timed:
    r = [(n, n % 50) for n in range(200)]
    s = [(n, n, n) for n in range(50)]
    return Timed(TWINS, [r, s], {(S, 0): first, (S, 1): second}, {R: 0.01}).run()


def test_of_two_lookups_the_faster_one_is_asked_more_and_hardly_a_key_twice() -> None:
    timed = twins(lambda _: 1.0, lambda _: 0.1)
    assert len(timed.came) == 200
    slow, fast = (timed.asked[S, number] for number in (0, 1))
    assert 3 <= len(slow) <= 8  # it works as well, as long as it has room
    assert len(fast) >= 40
    assert len(slow) + len(fast) <= 50 + 3


def test_a_lookup_that_stalls_loses_its_tuples_to_another() -> None:
    timed = twins(lambda now: 0.1 if now < 1.0 else 500.0, lambda _: 0.2)
    assert len(timed.came) == 200
    late = [row for at, row in timed.came if at > 20.0]
    assert len({row[1] for row in late}) <= 2  # those that it was asked for already
    assert len(timed.asked[S, 0]) <= 12


# --- Which relation first

BOTH = query_of(
    [relation("R"), looked_up("S", (0,)), looked_up("T", (0,))],
    equal((R, 1), (S, 0)),
    equal((R, 1), (T, 0)),
)


@pytest.mark.parametrize("stalled", [S, T])
def test_tuples_go_where_they_are_answered_soonest(stalled: int) -> None:
    """With one source stalled from the start, all the other's keys are asked for meanwhile."""
    other = S + T - stalled
    seconds: dict[tuple[int, int], Callable[[float], float]] = {
        (stalled, 0): lambda now: max(100.0 - now, 0.0) + 0.5,
        (other, 0): lambda _: 0.5,
    }
    tables: list[Table] = [[(n, n % 40) for n in range(120)], *[[(n, n) for n in range(40)]] * 2]
    timed = Timed(BOTH, tables, seconds, {R: 0.05}).run()
    assert len(timed.came) == 120
    meanwhile = [key for at, key in timed.asked[other, 0] if at < 60.0]
    # As many as may have been committed to the other one, of which an answer is still out.
    assert len(set(meanwhile)) >= 40 - 12


# --- Preferences


def remainder(left: Expression, right: Expression) -> Arithmetic:
    return Arithmetic(ArithmeticOperator.REMAINDER, (left, right), INT, ansi=True)


def preferred(query: JoinQuery, column: tuple[int, int], every: int) -> Comparison:
    return Comparison(EQUAL, remainder(query.column(*column), Literal(every, INT)), Literal(0, INT))


@pytest.mark.parametrize("policy", [PolicyName.BENEFIT, PolicyName.NAIVE])
@pytest.mark.parametrize("column", [(R, 0), (S, 0)])
def test_preferred_rows_come_first_whichever_column_of_a_class_is_named(
    column: tuple[int, int], policy: str
) -> None:
    """S can only be looked up, one row a second; every tenth row is preferred."""
    query = query_of([relation("R"), looked_up("S", (0,))], equal((R, 0), (S, 0)))
    generator = np.random.default_rng(1)
    tables: list[Table] = [
        [(int(key), 0) for key in generator.permutation(100)],
        [(n, 1) for n in range(100)],
    ]
    timed = Timed(query, tables, {(S, 0): lambda _: 1.0}, {R: 0.01}, policy=policy)
    timed.run(lambda eddy: eddy.prefer(preferred(query, column, 10)))
    keys = [row[0] for _, row in timed.came]
    assert sorted(keys) == list(range(100))
    late = [place for place, key in enumerate(keys) if key % 10 == 0 and place >= 10 + 2]
    assert not late


@pytest.mark.parametrize("weight", [5.0, 0.2])
def test_a_preference_may_come_while_rows_wait_and_go(weight: float) -> None:
    """For every sixth row, from 10.5 s to 20.5 s; one row comes a second."""
    query = query_of([relation("R"), looked_up("S", (0,))], equal((R, 0), (S, 0)))
    tables: list[Table] = [[(n, 0) for n in range(60)], [(n, 1) for n in range(60)]]
    timed = Timed(query, tables, {(S, 0): lambda _: 1.0}, {R: 0.001})

    def change(eddy: JoinEddy) -> None:
        if len(timed.came) == 10:
            eddy.prefer(preferred(query, (R, 0), 6), weight)
        elif len(timed.came) == 20:
            eddy.prefer(None)

    keys = [row[0] for _, row in timed.run(after_each=change).came]
    assert sorted(keys) == list(range(60))
    meanwhile, after = keys[12:20], keys[22:]  # two are with the lookup at every change
    assert keys[:10] == list(range(10))
    if weight > 1.0:
        left = [key for key in range(12, 60) if key % 6 == 0]
        assert meanwhile == left[:8]
        assert after == sorted(after)
    else:
        assert not [key for key in meanwhile if key % 6 == 0]


def test_a_preference_changes_no_row_and_an_error_in_it_is_none() -> None:
    query = KEYED
    tables: list[Table] = [[(n % 7, n) for n in range(30)], [(n, n % 3) for n in range(7)]]
    divided = remainder(query.column(R, 0), query.column(S, 1))  # by 0 for many
    dividing = Comparison(EQUAL, divided, Literal(0, INT))
    timed = Timed(query, tables, {(S, 0): lambda _: 1.0}, {R: 0.1, S: 0.5})
    timed.run(lambda eddy: eddy.prefer(dividing, 3.0))
    assert sorted(row for _, row in timed.came) == sorted(
        expected(tables, lambda r, s: r[0] == s[0]).elements()
    )


@pytest.mark.parametrize("weight", [0.0, -1.0, float("inf"), float("nan")])
def test_a_weight_is_a_number_above_zero(weight: float) -> None:
    with pytest.raises(ValueError, match="a number above 0"):
        make_eddy(query_of([relation("R")])).prefer(
            preferred(query_of([relation("R")]), (R, 0), 2), weight
        )


def test_a_preference_is_a_predicate_that_calls_no_function() -> None:
    query = query_of([relation("R")])
    with pytest.raises(ValueError, match="no predicate"):
        make_eddy(query).prefer(query.column(R, 0))
    with pytest.raises(ValueError, match="calls no function"):
        make_eddy(query).prefer(Call(0, (query.column(R, 0),), BOOL))


def test_without_access_methods_that_compete_it_decides_as_adaptive_does() -> None:
    query = query_of(
        [relation("R"), relation("S"), relation("T")], equal((R, 1), (S, 0)), equal((S, 1), (T, 0))
    )
    generator = np.random.default_rng(2)
    tables: list[Table] = [
        [tuple(row) for row in generator.integers(0, 9, (150, 2)).tolist()] for _ in range(3)
    ]
    visits = []
    for name in (PolicyName.ADAPTIVE, PolicyName.BENEFIT):
        timed = Timed(query, tables, {}, {R: 0.01, S: 0.02, T: 0.03}, policy=name).run()
        visits.append(timed.eddy.statistics().eddy.visits)
    assert visits[0] == visits[1]


def test_what_is_known_of_lookups_serves_the_next_eddy() -> None:
    policy = make_policy("benefit")
    assert isinstance(policy, BenefitPolicy)
    timed = twins(lambda _: 1.0, lambda _: 0.1)
    learned = timed.eddy.eddy.policy
    assert isinstance(learned, BenefitPolicy)
    first = timed.eddy.routes.first_lookup
    signature = next(
        signature
        for signature, module in timed.eddy.statistics().eddy.visits
        if module == first and signature.probed
    )
    assert learned.value_over_time(signature, first + 1) > learned.value_over_time(signature, first)
