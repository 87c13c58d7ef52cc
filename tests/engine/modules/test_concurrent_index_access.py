"""Lookups that answer later: who waits for what, and what is asked for once all the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bench.simulation.virtual_agenda import VirtualAgenda
from bench.simulation.virtual_calls import VirtualCaller
from eddyline.engine.batch import TupleBatch
from eddyline.engine.callers import PlannedCall
from eddyline.engine.join.join_eddy import JoinEddy
from eddyline.engine.modules.concurrent_index_access import (
    ConcurrentIndexAccess,
    ConcurrentSource,
)
from eddyline.engine.modules.index_access import LookupRequests
from eddyline.engine.modules.module import Answer, ConcurrentModule
from eddyline.engine.modules.scan_access import HeldScan
from eddyline.engine.policies.catalogue import PolicyName, make_policy
from eddyline.engine.signature import Signature
from eddyline.errors import LookupAnswerError
from eddyline.simulation.virtual_clock import VirtualClock
from tests.joins import Row, TableSource, equal, held, looked_up, parts_of, query_of, relation
from tests.unruly import UnrulyAgenda, UnrulyCaller

R, S, T = range(3)
QUERY = query_of([relation("R"), looked_up("S", (0,))], equal((R, 1), (S, 0)))
ROWS = [(1, 10), (1, 11), (2, 20), (3, 30)]


class Later:
    """A lookup of S whose calls are made when :meth:`answer` says so, oldest first."""

    def __init__(self, bindings: int = 1, answer: object = None, width: int = 2) -> None:
        self.parts = parts_of(QUERY)
        self.source = TableSource(ROWS, QUERY.relations[S], (0,))
        asked = self.source if answer is None else lambda _: answer
        self.agenda = UnrulyAgenda(np.random.default_rng(0), patience=1.0)
        self.caller = UnrulyCaller(asked, self.agenda, width)
        position = self.parts.routes.first_lookup
        stem = self.parts.stems[S]
        requests = LookupRequests(position, self.parts.routes, self.parts.components, stem)
        self.lookup = ConcurrentIndexAccess(requests, ConcurrentSource(self.caller, bindings))
        self.lookup.attend(position)

    def prior(self, *values: int | None, built: bool = True) -> TupleBatch:
        """Return prior probers of S."""
        rows: list[Row] = [(at, value) for at, value in enumerate(values)]
        batch = self.parts.build(R, rows) if built else self.parts.singleton(R, rows)
        (back,) = [p for p in self.parts.stems[S].process(batch) if p.signature.probed]
        return back

    def answers(self, count: int) -> list[Answer]:
        """Return the answers to so many calls."""
        found: list[Answer] = []
        while len(found) < count:
            self.agenda.wait()
            found += self.lookup.collect()
        return found

    def told(self) -> bool:
        """Tell whether there is anything to collect, before any further call is made."""
        return bool(self.agenda.poll())


def test_tuples_that_ask_are_away_and_the_others_are_answered_at_once() -> None:
    later = Later()
    assert isinstance(later.lookup, ConcurrentModule)
    assert later.lookup.name == "S(0)"
    later.lookup.offer(later.prior(1, 1, 2))
    assert later.source.asked == []
    assert later.told()
    (answer,) = later.lookup.collect()
    assert (answer.tuples, answer.results, answer.cost) == (1, [], 0.0)
    first, second = later.answers(2)
    assert first.tuples == second.tuples == 1
    assert sorted(later.source.asked) == [(1,), (2,)]
    rows = [
        row for each in (first, second) for part in each.results for row in later.parts.rows(part)
    ]
    assert sorted(rows) == [(1, 10), (1, 11), (2, 20)]
    assert all(each.results[0].signature == Signature(1 << S) for each in (first, second))
    assert first.cost == pytest.approx(0.001 / 2)
    assert later.lookup.rows == 3


def test_what_somebody_has_asked_for_is_not_asked_again_before_the_answer() -> None:
    later = Later()
    later.lookup.offer(later.prior(1))
    assert not later.told()
    later.lookup.offer(later.prior(1))
    assert later.told()
    (answer,) = later.lookup.collect()
    assert (answer.tuples, answer.results) == (1, [])
    (answer,) = later.answers(1)
    assert answer.tuples == 1
    assert later.source.asked == [(1,)]
    statistics = later.lookup.statistics(0.5)
    assert (statistics.probes, statistics.calls, statistics.bindings) == (2, 1, 1)


def test_several_bindings_go_in_one_call() -> None:
    later = Later(bindings=2)
    assert later.lookup.queue.room == 2 * 2 * 2
    later.lookup.offer(later.prior(1, 2, 9))
    answers = later.answers(2)
    assert sorted(answer.tuples for answer in answers) == [1, 2]
    assert later.source.calls == 2
    assert later.lookup.statistics(0.0).calls == 2


def test_a_tuple_that_is_not_built_comes_back_after_its_answer_is_built() -> None:
    later = Later()
    stem = later.parts.stems[S]
    later.lookup.offer(later.prior(1, 9, built=False))
    assert sum(map(len, stem.state.waiting())) == 2
    results = [part for answer in later.answers(2) for part in answer.results]
    # Of the one there is no match, and nothing to wait for; the other waits for two rows.
    (back,) = [part for part in results if part.signature.probed]
    (rows,) = [part for part in results if not part.signature.probed]
    assert later.parts.rows(back) == [(1, 9)]
    assert sum(map(len, stem.state.waiting())) == 1
    _, released = stem.process(rows)
    assert later.parts.rows(released) == [(0, 1)]
    assert stem.state.waiting() == []


def test_null_has_no_match_and_is_not_asked_for() -> None:
    later = Later()
    batch = later.parts.singleton(R, [(0, None)])
    prior = batch.under(batch.signature._replace(probed=1 << S))
    later.lookup.offer(prior)
    assert later.told()
    (answer,) = later.lookup.collect()
    assert answer.tuples == 1
    assert later.source.asked == []


@pytest.mark.parametrize("answer", [[pa.array([1])], 5, [[1], [1]]])
def test_an_answer_that_is_no_rows_of_the_relation_is_refused(answer: object) -> None:
    later = Later(answer=answer)
    later.lookup.offer(later.prior(1))
    later.agenda.wait()
    with pytest.raises(LookupAnswerError, match="a lookup of S must answer with"):
        later.lookup.collect()


def test_a_call_asks_for_something() -> None:
    with pytest.raises(ValueError, match="1 binding at least, not 0"):
        ConcurrentSource(UnrulyCaller(len, UnrulyAgenda(np.random.default_rng(0))), 0)


# --- In an eddy


def chain(
    rows: int, keys: int, seconds: float, policy: str, *, width: int = 4
) -> tuple[JoinEddy, list[HeldScan], VirtualClock, list[int]]:
    """Return an eddy over R, whose rows are scanned, and S and T, which are looked up in turn."""
    query = query_of(
        [relation("R"), looked_up("S", (0,)), looked_up("T", (0,))],
        equal((R, 1), (S, 0)),
        equal((S, 1), (T, 0)),
    )
    clock = VirtualClock()
    agenda = VirtualAgenda(clock)
    asked: list[int] = []

    def source(factor: int) -> Callable[[Sequence[pa.Array]], list[pa.Array]]:
        def answer(bindings: Sequence[pa.Array]) -> list[pa.Array]:
            asked.append(len(bindings[0]))
            values = bindings[0].to_numpy()
            return [bindings[0], pa.array(values * factor)]

        return answer

    lookups = {
        (relation, 0): ConcurrentSource(
            VirtualCaller(source(factor), agenda, lambda _: seconds, width=width)
        )
        for relation, factor in ((S, 10), (T, 10))
    }
    eddy = JoinEddy(
        query,
        (),
        lambda: make_policy(policy),
        clock,
        np.random.default_rng(0),
        lookups=lookups,
    )
    table: list[Row] = [(n, n % keys) for n in range(rows)]
    inputs = [held(table, query.relations[R], 10), HeldScan(()), HeldScan(())]
    return eddy, inputs, clock, asked


@pytest.mark.parametrize("policy", list(PolicyName))
def test_lookups_in_turn_overlap_and_each_key_is_asked_for_once(policy: str) -> None:
    eddy, inputs, clock, asked = chain(200, 40, 1.0, policy)
    rows = [
        row
        for joined in eddy.run(inputs)
        for row in zip(*(column.to_pylist() for column in joined.outputs), strict=True)
    ]
    assert sorted(rows) == sorted(
        (n, n % 40, n % 40, 10 * (n % 40), 10 * (n % 40), 100 * (n % 40)) for n in range(200)
    )
    assert asked == [1] * 80
    # 40 calls each, four at a time: one after the other 20 s; the second begins 1 s later.
    assert clock.now() == pytest.approx(11.0, abs=0.5)


def test_an_error_of_a_source_is_raised_as_it_is() -> None:
    def broken(_: Sequence[pa.Array]) -> list[pa.Array]:
        raise ConnectionError("no route to S")

    agenda = UnrulyAgenda(np.random.default_rng(0))
    eddy = JoinEddy(
        QUERY,
        (),
        lambda: make_policy("adaptive"),
        VirtualClock(),
        np.random.default_rng(0),
        lookups={(S, 0): ConcurrentSource(UnrulyCaller(broken, agenda))},
    )
    inputs = [held([(1, 1)], QUERY.relations[R]), HeldScan(())]
    with pytest.raises(ConnectionError, match="no route to S"):
        list(eddy.run(inputs))


def test_rows_go_on_while_others_wait_for_an_answer() -> None:
    """A call that takes long blocks no row behind it."""
    clock = VirtualClock()
    agenda = VirtualAgenda(clock)
    source = TableSource([(n, n) for n in range(50)], QUERY.relations[S], (0,))

    def seconds(bindings: Sequence[pa.Array]) -> float:
        return 100.0 if bindings[0][0].as_py() == 0 else 1.0

    eddy = JoinEddy(
        QUERY,
        (),
        lambda: make_policy("adaptive"),
        clock,
        np.random.default_rng(0),
        lookups={(S, 0): ConcurrentSource(VirtualCaller(source, agenda, seconds, width=5))},
    )
    table: list[Row] = [(n, n) for n in range(50)]
    came: list[tuple[float, int]] = []
    for joined in eddy.run([held(table, QUERY.relations[R], 10), HeldScan(())]):
        came += [(clock.now(), key) for key in joined.outputs[1].to_pylist()]
    assert sorted(key for _, key in came) == list(range(50))
    late = [key for at, key in came if at > 15.0]
    assert late == [0]


def test_there_is_room_for_many_where_nothing_competes() -> None:
    requests = Later().lookup._requests
    caller = UnrulyCaller(lambda _: (), UnrulyAgenda(np.random.default_rng(0)), 2)
    for room, packed, expected in ((0, 1, 4), (100, 1, 100), (100, 50, 200), (0, 50, 200)):
        source = ConcurrentSource(caller, room=room, packed=packed)
        queue = ConcurrentIndexAccess(requests, source).queue
        assert (queue.room, queue.unit) == (expected, packed)
    competing = query_of(
        [QUERY.relations[0], looked_up("S", (0,), scan=True)], equal((R, 1), (S, 0))
    )
    parts = parts_of(competing)
    requests = LookupRequests(
        parts.routes.first_lookup, parts.routes, parts.components, parts.stems[S]
    )
    assert ConcurrentIndexAccess(requests, ConcurrentSource(caller, room=100)).queue.room == 4
    packing = ConcurrentSource(caller, room=100, packed=50)
    assert ConcurrentIndexAccess(requests, packing).queue.room == 200


class Noting(VirtualCaller):
    """Notes how many calls it is given at a time, and when nothing more will come."""

    def __init__(self, *arguments: Any, width: int) -> None:  # noqa: ANN401 - those of VirtualCaller
        super().__init__(*arguments, width=width)
        self.given: list[int] = []

    def submit(self, calls: Sequence[PlannedCall]) -> None:
        self.given.append(len(calls))
        super().submit(calls)

    def rest(self) -> None:
        self.given.append(0)


@pytest.mark.parametrize("ways", [1, 2])
@pytest.mark.parametrize("policy", ["adaptive", "naive", "static"])
def test_what_goes_into_one_call_is_handed_over_together(policy: str, ways: int) -> None:
    """Also where two ways compete: 8 at a time, a source of 500 keys a call had 78 calls for 7."""
    query = query_of(
        [relation("R"), looked_up("S", *[(0,), (1,)][:ways])],
        *[equal((R, column), (S, column)) for column in range(ways)],
    )
    clock = VirtualClock()
    agenda = VirtualAgenda(clock)

    def source(bindings: Sequence[pa.Array]) -> list[pa.Array]:
        return [bindings[0], bindings[0]]

    callers = [Noting(source, agenda, lambda _: 1.0, width=4) for _ in range(ways)]
    lookups = {
        (S, n): ConcurrentSource(caller, packed=50, rest=caller.rest)
        for n, caller in enumerate(callers)
    }
    eddy = JoinEddy(
        query,
        (),
        lambda: make_policy(policy),
        clock,
        np.random.default_rng(0),
        lookups=lookups,
    )
    table: list[Row] = [(n, n) for n in range(1_000)]
    joined = list(eddy.run([held(table, query.relations[R], 100), HeldScan(())]))
    assert sum(each.rows for each in joined) == 1_000
    given = [size for caller in callers for size in caller.given if size]
    assert sum(given) == 1_000
    assert len([size for size in given if size < 50]) <= 4
    # Only when all is read and handed over is nothing more to come.
    for caller in callers:
        first = caller.given.index(0)
        assert not any(caller.given[first:])


def test_a_lookup_may_get_more_as_long_as_another_answers() -> None:
    """What comes of S is looked up in T: T has all it gets when S has answered."""
    query = query_of(
        [relation("R"), looked_up("S", (0,)), looked_up("T", (0,))],
        equal((R, 1), (S, 0)),
        equal((S, 1), (T, 0)),
    )
    clock = VirtualClock()
    agenda = VirtualAgenda(clock)
    callers = {
        relation: Noting(lambda b: [b[0], b[0]], agenda, lambda _: 1.0, width=2)
        for relation in (S, T)
    }
    eddy = JoinEddy(
        query,
        (),
        lambda: make_policy("adaptive"),
        clock,
        np.random.default_rng(0),
        lookups={
            (relation, 0): ConcurrentSource(caller, packed=10, rest=caller.rest)
            for relation, caller in callers.items()
        },
    )
    table: list[Row] = [(n, n) for n in range(6)]
    assert (
        sum(each.rows for each in eddy.run([held(table, query.relations[R]), *[HeldScan(())] * 2]))
        == 6
    )
    assert callers[S].given[:2] == [6, 0]
    assert sum(callers[T].given) == 6
    assert 0 not in callers[T].given[: callers[T].given.index(0)]
    assert callers[T].given[-1] == 0
