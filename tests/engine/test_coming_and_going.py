"""Modules that come and go between runs: the right ones are visited, and the rest is remembered."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.batch import TupleBatch
from eddyline.engine.callers import Agenda
from eddyline.engine.eddy import Eddy, LearnedCosts
from eddyline.engine.modules.module import Answer, BoundedQueue
from eddyline.engine.policies.adaptive import AdaptivePolicy
from eddyline.engine.policies.catalogue import PolicyName, make_policy
from eddyline.engine.policies.lottery import LotteryPolicy
from eddyline.engine.policies.policy import Policy
from eddyline.engine.policies.static import StaticPolicy
from eddyline.engine.routes import Routes
from eddyline.engine.signature import ENTERING, Signature
from eddyline.simulation.fixed_quantum import FixedQuantum
from eddyline.simulation.virtual_clock import VirtualClock
from tests.joins import equal, make_eddy, query_of, relation
from tests.properties import examples

EVERY_POLICY = pytest.mark.parametrize("name", list(PolicyName))


class Divides:
    """Lets the rows through that a number divides; notes whom it was asked about."""

    def __init__(self, number: int, by: int, clock: VirtualClock, cost: float = 1e-3) -> None:
        self.name = f"{by} divides"
        self._number, self._by = number, by
        self._clock, self._cost = clock, cost
        self.asked: list[int] = []

    def process(self, batch: TupleBatch) -> Sequence[TupleBatch]:
        rows = np.asarray(batch.rows[0])
        self.asked += rows.tolist()
        self._clock.advance(self._cost * len(rows))
        return [batch.keep(rows % self._by == 0, batch.signature.after(self._number))]


class Table:
    """An eddy over dividing modules, and what must come out of it."""

    def __init__(
        self, policy: Policy, divisors: Sequence[int], *, quantum: int = 10, cost: float = 1e-3
    ) -> None:
        self.clock = VirtualClock()
        self.divisors = dict(enumerate(divisors))
        modules = [Divides(n, by, self.clock, cost) for n, by in self.divisors.items()]
        self.eddy = Eddy(
            modules,
            policy,
            self.clock,
            np.random.default_rng(0),
            quantum=FixedQuantum(quantum),
        )

    def add(self, by: int, cost: float = 1e-3) -> int:
        number = self.eddy.add(lambda number: Divides(number, by, self.clock, cost))
        assert number not in self.divisors
        self.divisors[number] = by
        return number

    def remove(self, number: int) -> None:
        self.eddy.remove(number)
        del self.divisors[number]

    def module(self, number: int) -> Divides:
        module = self.eddy.modules[number]
        assert isinstance(module, Divides)
        return module

    def check(self, rows: range) -> None:
        """Run the rows; each must come out, or have been dropped, once."""
        for number in self.divisors:
            self.module(number).asked.clear()
        finished = self.eddy.run(TupleBatch(ENTERING, (rows,)))
        left = sorted(row for batch in finished for row in np.asarray(batch.rows[0]).tolist())
        assert left == [row for row in rows if not any(row % by for by in self.divisors.values())]
        for number in self.divisors:
            asked = self.module(number).asked
            assert len(set(asked)) == len(asked)
            assert set(left) <= set(asked)
        assert sorted(self.eddy.policy.order(ENTERING)) == sorted(self.divisors)


@examples(150)
@given(
    name=st.sampled_from(list(PolicyName)),
    divisors=st.lists(st.integers(1, 5), max_size=20),
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("run"), st.integers(0, 90)),
            st.tuples(st.just("add"), st.integers(1, 5)),
            st.tuples(st.just("remove"), st.integers(0, 30)),
        ),
        max_size=12,
    ),
    quantum=st.integers(1, 20),
)
def test_tuples_visit_the_modules_that_are_there(
    name: PolicyName, divisors: list[int], steps: list[tuple[str, int]], quantum: int
) -> None:
    table = Table(make_policy(name), divisors, quantum=quantum)
    for step, value in [*steps, ("run", 60)]:
        if step == "run":
            table.check(range(value))
        elif step == "add":
            table.add(value)
        elif table.divisors:
            numbers = sorted(table.divisors)
            table.remove(numbers[value % len(numbers)])


@EVERY_POLICY
def test_a_number_is_given_once(name: PolicyName) -> None:
    table = Table(make_policy(name), [2, 3])
    table.remove(1)
    assert table.add(5) == 2
    table.remove(2)
    assert table.add(5) == 3
    table.check(range(100))
    with pytest.raises(ValueError, match="no module 1"):
        table.eddy.remove(1)


@EVERY_POLICY
@pytest.mark.parametrize("gone", range(4))
def test_any_module_can_go(name: PolicyName, gone: int) -> None:
    """No decision that still stands sends tuples to it."""
    table = Table(make_policy(name), [1, 2, 3, 5], quantum=30, cost=1e-8)
    table.check(range(900))
    table.remove(gone)
    table.check(range(30))


def test_a_decision_for_much_work_ends_where_its_module_goes() -> None:
    policy, routes, generator = AdaptivePolicy(exploration=0.0), Routes(3), np.random.default_rng(0)
    policy.start(routes, generator, lambda _: 1.0)  # a visit costs much: decisions stand long
    for _ in range(30):  # the first looks, and then some
        allotment = policy.route(ENTERING, (0, 1, 2), (0, 1, 2), 1_000)
        assert allotment is not None
        module, tuples = allotment
        policy.sent(ENTERING, module, tuples)
        policy.returned(ENTERING, module, tuples, tuples, 1e-3 * tuples)
    assert policy.route(ENTERING, (0, 1, 2), (0, 1, 2), 1_000) == (module, 1_000)
    routes.remove(module)
    policy.start(routes, generator, lambda _: 1.0)
    left = routes.candidates(ENTERING)
    allotment = policy.route(ENTERING, left, left, 1_000)
    assert allotment is not None
    assert allotment.module in left


@EVERY_POLICY
def test_modules_that_nobody_has_looked_at_can_go(name: PolicyName) -> None:
    table = Table(make_policy(name), [1] * 40)
    table.check(range(1))
    for number in range(0, 40, 2):
        table.remove(number)
    table.check(range(100))


def test_what_is_known_of_other_modules_stays() -> None:
    """The order found holds on: of the old modules nothing is tried anew."""
    table = Table(AdaptivePolicy(exploration=0.0), [1, 1, 7, 1])
    table.check(range(2_000))
    assert table.eddy.policy.order(ENTERING)[0] == 2
    table.remove(3)
    new = table.add(1)
    table.check(range(1_000))
    assert table.eddy.policy.order(ENTERING)[0] == 2
    looked = set(table.module(new).asked) - set(range(0, 1_000, 7))
    assert len(table.module(2).asked) == 1_000
    for number in (0, 1):
        assert set(table.module(number).asked) <= looked | set(range(0, 1_000, 7))


def test_a_module_that_comes_later_is_found_to_be_the_best() -> None:
    table = Table(AdaptivePolicy(), [1, 2, 1])
    table.check(range(1_000))
    best = table.add(50)
    table.check(range(2_000))
    assert table.eddy.policy.order(ENTERING)[0] == best
    table.remove(best)
    table.check(range(1_000))
    assert table.eddy.policy.order(ENTERING)[0] == 1


def test_a_given_order_is_kept_and_those_that_come_later_come_last() -> None:
    table = Table(StaticPolicy([2, 0, 1]), [1, 1, 1])
    table.add(1)
    assert table.eddy.policy.order(ENTERING) == (2, 0, 1, 3)
    table.remove(0)
    table.add(1)
    assert table.eddy.policy.order(ENTERING) == (2, 1, 3, 4)
    table.check(range(20))


def test_accounts_of_other_modules_stay() -> None:
    policy = LotteryPolicy()
    table = Table(policy, [2, 3])
    table.check(range(100))
    before = policy.accounts()[1]
    table.remove(0)
    new = table.add(5)
    assert before > 0
    assert policy.accounts() == {1: before, new: 0.0}


def test_no_module_comes_or_goes_while_tuples_are_on_their_way() -> None:
    table = Table(StaticPolicy(), [2, 3])

    class Meddling(Divides):
        def process(self, batch: TupleBatch) -> Sequence[TupleBatch]:
            with pytest.raises(RuntimeError, match="no tuple is on its way"):
                table.eddy.remove(0)
            with pytest.raises(RuntimeError, match="no tuple is on its way"):
                table.eddy.add(lambda number: Divides(number, 1, table.clock))
            return super().process(batch)

    number = table.eddy.add(lambda number: Meddling(number, 1, table.clock))
    table.divisors[number] = 1
    table.check(range(30))
    assert list(table.eddy.modules) == [0, 1, 2]
    assert table.add(1) == 3


def test_costs_of_modules_with_other_numbers_are_refused() -> None:
    table = Table(StaticPolicy(), [2, 3])
    table.check(range(100))
    table.remove(0)
    learned = table.eddy.costs()
    assert list(learned.models) == [1]
    modules = [Divides(0, 2, table.clock)]
    generator = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"modules \[1\]"):
        Eddy(modules, StaticPolicy(), table.clock, generator, learned=learned)
    fitting = LearnedCosts({0: learned.models[1]}, learned.routing_cost)
    eddy = Eddy(modules, StaticPolicy(), table.clock, generator, learned=fitting)
    assert eddy.costs().models == fitting.models


def test_a_module_that_went_is_no_reason_to_wait() -> None:
    """Precedence: what must come before comes before as long as it is there."""
    routes = Routes(3, {2: 0b011})
    assert routes.candidates(ENTERING) == (0, 1)
    routes.remove(0)
    assert routes.candidates(ENTERING) == (1,)
    assert routes.candidates(Signature(done=0b010)) == (2,)


def test_the_modules_of_a_join_query_stay() -> None:
    query = query_of([relation("R"), relation("S")], equal((0, 0), (1, 0)))
    eddy = make_eddy(query).eddy
    numbers = list(eddy.modules)
    with pytest.raises(ValueError, match="join query"):
        eddy.add(lambda number: Divides(number, 1, VirtualClock()))
    with pytest.raises(ValueError, match="join query"):
        eddy.remove(0)
    assert list(eddy.modules) == list(eddy.costs().models) == numbers


class Inbox:
    """An agenda without time: whoever said that there are answers has them."""

    def __init__(self) -> None:
        self.said: list[int] = []

    def tell(self, module: int) -> None:
        self.said.append(module)

    def poll(self) -> Sequence[int]:
        said, self.said = self.said, []
        return said

    def wait(self) -> Sequence[int]:
        return self.poll()


class Later:
    """Lets even rows through, when the eddy comes to ask."""

    def __init__(self, number: int, inbox: Inbox) -> None:
        self.name = "later"
        self.queue = BoundedQueue(7)
        self._number, self._inbox = number, inbox
        self._held: list[TupleBatch] = []
        self.numbers: list[int] = []

    @property
    def agenda(self) -> Agenda:
        return self._inbox

    def attend(self, number: int) -> None:
        self.numbers.append(number)

    def offer(self, batch: TupleBatch) -> None:
        self._held.append(batch)
        self._inbox.tell(self._number)

    def collect(self) -> Sequence[Answer]:
        held, self._held = self._held, []
        return [
            Answer(
                batch.signature,
                len(batch),
                [
                    batch.keep(
                        np.asarray(batch.rows[0]) % 2 == 0, batch.signature.after(self._number)
                    )
                ],
                1.0,
            )
            for batch in held
        ]


@EVERY_POLICY
def test_modules_that_answer_later_come_and_go_too(name: PolicyName) -> None:
    table = Table(make_policy(name), [3])
    inbox = Inbox()
    later = table.eddy.add(lambda number: Later(number, inbox))
    module = table.eddy.modules[later]
    assert isinstance(module, Later)
    assert module.numbers == [later]

    def run() -> list[int]:
        finished = table.eddy.run(TupleBatch(ENTERING, (range(40),)))
        return sorted(row for batch in finished for row in np.asarray(batch.rows[0]).tolist())

    assert run() == list(range(0, 40, 6))
    with pytest.raises(ValueError, match="one agenda"):
        table.eddy.add(lambda number: Later(number, Inbox()))
    table.remove(0)
    assert run() == list(range(0, 40, 2))
    table.eddy.remove(later)
    assert run() == list(range(40))


@EVERY_POLICY
def test_a_module_that_is_refused_leaves_nothing_behind(name: PolicyName) -> None:
    table = Table(make_policy(name), [3])

    class Engaged(Later):
        def attend(self, number: int) -> None:
            raise RuntimeError(f"is module {number} of another eddy")

    with pytest.raises(RuntimeError, match="another eddy"):
        table.eddy.add(lambda number: Engaged(number, Inbox()))
    assert list(table.eddy.modules) == [0]
    assert table.add(2) == 1
    table.check(range(60))


@EVERY_POLICY
def test_the_agenda_goes_with_the_last_module_that_used_it(name: PolicyName) -> None:
    table = Table(make_policy(name), [3])
    for _ in range(2):
        inbox = Inbox()
        made = functools.partial(Later, inbox=inbox)
        first, second = table.eddy.add(made), table.eddy.add(made)
        table.eddy.remove(first)
        with pytest.raises(ValueError, match="one agenda"):
            table.eddy.add(lambda number: Later(number, Inbox()))
        table.eddy.remove(second)


class Equal(Inbox):
    """An agenda that says it is the same as any other."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Inbox)

    __hash__ = None  # type: ignore[assignment]


def test_agendas_are_told_apart_by_identity() -> None:
    table = Table(StaticPolicy(), [3])
    inbox = Equal()
    table.eddy.add(lambda number: Later(number, inbox))
    table.eddy.add(lambda number: Later(number, inbox))
    with pytest.raises(ValueError, match="one agenda"):
        table.eddy.add(lambda number: Later(number, Equal()))


@pytest.mark.parametrize("name", [PolicyName.LOTTERY, PolicyName.WINDOWED_LOTTERY])
def test_rates_count_where_no_queue_shows_them(name: PolicyName) -> None:
    """Also where the modules, or the queues, come and go."""
    policy = make_policy(name)
    assert isinstance(policy, LotteryPolicy)
    table = Table(policy, [])
    table.add(2)
    table.add(3)
    table.check(range(1_000))
    rates = policy.rates()
    assert rates is not None
    assert rates.of(0) is not None
    inbox = Inbox()
    later = table.eddy.add(lambda number: Later(number, inbox))
    assert policy.rates() is None
    table.eddy.remove(later)
    assert policy.rates() is not None


def test_no_run_begins_where_one_has_not_ended() -> None:
    """Its tuples would come out with the others."""

    class Interrupted(Divides):
        def process(self, batch: TupleBatch) -> Sequence[TupleBatch]:
            raise KeyboardInterrupt(f"after {len(batch)} tuples")

    table = Table(StaticPolicy(), [2])
    number = table.eddy.add(lambda number: Interrupted(number, 1, table.clock))
    with pytest.raises(KeyboardInterrupt):
        table.eddy.run(TupleBatch(ENTERING, (range(5),)))
    with pytest.raises(RuntimeError, match="ended by an exception"):
        table.eddy.run(TupleBatch(ENTERING, (range(5),)))
    assert number == 1


def test_routes_of_other_modules_are_refused() -> None:
    clock = VirtualClock()
    for routes in (Routes(1), Routes(3)):
        with pytest.raises(ValueError, match="routes are those of modules"):
            Eddy(
                [Divides(n, 2, clock) for n in range(2)],
                StaticPolicy(),
                clock,
                np.random.default_rng(0),
                routes=routes,
            )


@EVERY_POLICY
def test_modules_that_are_gone_are_forgotten(name: PolicyName) -> None:
    """What comes and goes a thousand times leaves no more behind than once."""
    table = Table(make_policy(name), [2, 3], quantum=20)

    def go_round(times: int) -> int:
        for _ in range(times):
            number = table.add(5)
            table.check(range(60))
            table.remove(number)
        return len(pickle.dumps(table.eddy.policy))

    before = go_round(20)
    assert go_round(100) - before < 100 * 30  # a few bytes for each number that was given
    here = sum(1 << module for module in table.eddy.modules)
    for signature, module in table.eddy.statistics().visits:
        assert (1 << module | signature.done) & ~here == 0
