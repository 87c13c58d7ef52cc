"""Predicates that answer later: the same rows, no call too many, back-pressure, threads."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, contextmanager

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.simulation.virtual_agenda import VirtualAgenda
from bench.simulation.virtual_calls import VirtualCaller
from bench.waiting_calls import ConcurrentFunction, ThreadCaller
from eddyline.asking.event_loop import EventLoop, EventLoopCaller, LoopAgenda
from eddyline.asking.shared_agenda import SharedAgenda
from eddyline.engine.batch import TupleBatch
from eddyline.engine.callers import CallDone, Caller, PlannedCall
from eddyline.engine.clock import Clock
from eddyline.engine.eddy import Eddy
from eddyline.engine.filter.filter_eddy import FilterEddy, FilterPlan
from eddyline.engine.modules.concurrent_selection import CallAlone, ConcurrentSelection
from eddyline.engine.modules.selection import HeldErrors, Selection
from eddyline.engine.policies.catalogue import PolicyName, make_policy
from eddyline.engine.relation import Relation
from eddyline.engine.signature import ENTERING
from eddyline.expressions import And, Argument, Arithmetic, ArithmeticOperator, Call, Or
from eddyline.expressions.vector import Function, Vector
from eddyline.simulation.virtual_clock import VirtualClock
from eddyline.wall_clock import WallClock
from tests.properties import examples

COLUMN = Argument(0, pa.int64())

EVERY_POLICY = pytest.mark.parametrize("policy", list(PolicyName))


def call(function: int) -> Call:
    return Call(function, (COLUMN,), pa.bool_())


class Inline:
    """A predicate that answers at once."""

    vectorized = False

    def __init__(self, verdicts: Sequence[bool | None]) -> None:
        self.verdicts = verdicts

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:  # noqa: ARG002
        return Vector(pa.array([self.verdicts[row] for row in columns[0].to_pylist()], pa.bool_()))


def filtered(
    functions: Sequence[Function], rows: int, clock: Clock, policy: str = "adaptive"
) -> list[int]:
    eddy = FilterEddy(
        FilterPlan(And(tuple(map(call, range(len(functions)))))),
        functions,
        lambda: make_policy(policy),
        clock,
        np.random.default_rng(0),
    )
    kept: list[int] = eddy.filter([pa.array(np.arange(rows))], rows).kept.tolist()
    statistics = eddy.statistics()
    assert all(call.calls <= rows for call in statistics.calls)
    for use in statistics.predicates:
        assert use.rows_in == use.passed + use.rejected + use.null + use.errors
    return kept


# -- the same rows whatever the policy, the width, the time that calls take ------------


@examples(60)
@given(
    policy=st.sampled_from(list(PolicyName)),
    predicates=st.lists(
        st.tuples(
            st.lists(st.sampled_from([True, False, None]), min_size=40, max_size=40),
            st.one_of(st.none(), st.integers(1, 5)),  # None: answers at once
            st.sampled_from([0.0, 0.5, 3.0]),
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_the_rows_are_those_that_every_predicate_accepts(
    policy: str, predicates: list[tuple[list[bool | None], int | None, float]]
) -> None:
    clock = VirtualClock()
    agenda = VirtualAgenda(clock)
    asked: list[list[int]] = [[] for _ in predicates]
    inside = [0] * len(predicates)

    class Watched(VirtualCaller):
        """Counts who is inside."""

        number = 0

        def submit(self, calls: Sequence[PlannedCall]) -> None:
            inside[self.number] += len(calls)
            assert inside[self.number] <= 2 * self.width
            asked[self.number] += [row for (_, row), _ in calls]
            super().submit(calls)

        def collect(self) -> list[CallDone]:
            found = super().collect()
            inside[self.number] -= len(found)
            return found

    functions: list[Function] = []
    for number, (verdicts, width, seconds) in enumerate(predicates):
        if width is None:
            functions.append(Inline(verdicts))
            continue
        caller = Watched(
            verdicts.__getitem__, agenda, lambda row, s=seconds: s * (1 + row % 3), width=width
        )
        caller.number = number
        functions.append(ConcurrentFunction(caller))
    kept = filtered(functions, 40, clock, policy)
    assert kept == [row for row in range(40) if all(p[0][row] for p in predicates)]
    for rows in asked:
        assert len(set(rows)) == len(rows), "a row was asked about twice"
    assert inside == [0] * len(predicates)


@EVERY_POLICY
def test_a_seed_repeats(policy: str) -> None:
    def once() -> tuple[list[int], float]:
        clock = VirtualClock()
        agenda = VirtualAgenda(clock)
        draws = np.random.default_rng(2).random((3, 300)) < 0.6
        functions = [
            ConcurrentFunction(
                VirtualCaller(verdicts.__getitem__, agenda, lambda row: 1.0 + row % 2, width=4)
            )
            for verdicts in draws.tolist()
        ]
        return filtered(functions, 300, clock, policy), clock.now()

    assert once() == once()


def test_an_error_counts_only_where_no_other_predicate_rejects_the_row() -> None:
    def fails(row: int) -> bool:
        if row >= 5:
            raise OSError(f"no answer for {row}")
        return True

    clock = VirtualClock()
    agenda = VirtualAgenda(clock)

    def failing() -> ConcurrentFunction:
        return ConcurrentFunction(VirtualCaller(fails, agenda, lambda _: 1.0))

    below = [row < 5 for row in range(10)]
    assert filtered([failing(), Inline(below)], 10, clock) == [0, 1, 2, 3, 4]
    below[7] = True
    with pytest.raises(OSError, match="no answer for 7"):
        filtered([failing(), Inline(below)], 10, clock)


def test_a_row_whose_argument_fails_is_not_called() -> None:
    clock = VirtualClock()
    agenda = VirtualAgenda(clock)
    asked: list[int] = []

    def accepts(quotient: int) -> bool:
        asked.append(quotient)
        return True

    operands = (COLUMN, COLUMN)
    quotient = Arithmetic(ArithmeticOperator.REMAINDER, operands, pa.int64(), ansi=True)
    eddy = FilterEddy(
        FilterPlan(And((Call(0, (quotient,), pa.bool_()), call(1)))),
        [ConcurrentFunction(VirtualCaller(accepts, agenda, lambda _: 1.0)), Inline([False, True])],
        lambda: make_policy("static"),
        clock,
        np.random.default_rng(0),
    )
    assert eddy.filter([pa.array([0, 1])], 2).kept.tolist() == [1]
    assert len(asked) == 1


# -- a module that waits does not hold up the others -----------------------------------


def test_waiting_predicates_overlap() -> None:
    clock = VirtualClock()
    agenda = VirtualAgenda(clock)
    functions = [
        ConcurrentFunction(VirtualCaller(lambda _: True, agenda, lambda _: 2.0, width=16))
        for _ in range(4)
    ]
    assert len(filtered(functions, 1600, clock, "static")) == 1600
    alone = 1600 / 16 * 2.0
    assert alone <= clock.now() <= 1.05 * alone, "four in the time of one"


class Computes(Inline):
    """A predicate that takes virtual time, in which its eddy does nothing else."""

    def __init__(self, verdicts: Sequence[bool | None], clock: VirtualClock, cost: float) -> None:
        super().__init__(verdicts)
        self._clock, self._cost = clock, cost

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        self._clock.advance(self._cost * rows)
        return super().__call__(columns, rows)


@EVERY_POLICY
@pytest.mark.parametrize("computing", [0.05, 0.12, 0.3])
def test_calls_go_on_while_the_eddy_computes(policy: str, computing: float) -> None:
    """What waits has tuples all the time, beside a predicate that computes: the times overlap."""
    clock = VirtualClock()
    rows, width, seconds = 2_000, 16, 2.0
    accepts = [True] * rows
    waits = VirtualCaller(accepts.__getitem__, VirtualAgenda(clock), lambda _: seconds, width=width)
    computes = Computes(accepts, clock, computing)
    assert len(filtered([ConcurrentFunction(waits), computes], rows, clock, policy)) == rows
    longest = rows * max(seconds / width, computing)
    assert longest <= clock.now() <= 1.25 * longest


def test_back_pressure_sends_tuples_elsewhere() -> None:
    def first_visits(policy: str) -> list[int]:
        clock = VirtualClock()
        agenda = VirtualAgenda(clock)
        relation = Relation([Inline([]), Inline([])], [call(0), call(1)], clock)
        rows = relation.load([pa.array(np.arange(2000))], 2000)
        modules = [
            ConcurrentSelection(
                Selection(number, str(number), call(number), relation, HeldErrors()),
                CallAlone(
                    str(number),
                    call(number),
                    relation,
                    VirtualCaller(lambda _: True, agenda, lambda _, s=seconds: s, width=2),
                ),
            )
            for number, seconds in enumerate([1.0, 4.0])
        ]
        eddy = Eddy(modules, make_policy(policy), clock, np.random.default_rng(0))
        assert sum(map(len, eddy.run(TupleBatch(ENTERING, (rows,))))) == 2000
        visits = eddy.statistics().visits
        return [visits[ENTERING, module].rows_in for module in (0, 1)]

    fast, slow = first_visits("naive")
    assert fast > 3 * slow, "the module that makes room more often comes first"


# -- threads and event loops -----------------------------------------------------------


EVERY_KIND = pytest.mark.parametrize("kind", ["threads", "loop", "own loop"])


@contextmanager
def waiting_caller(kind: str, answer: Callable[[int], bool], width: int) -> Iterator[Caller]:
    """Calls that are answered only once ``width`` of them are under way."""
    agenda = SharedAgenda()
    if kind == "threads":
        barrier = threading.Barrier(width)

        def together(row: int) -> bool:
            barrier.wait(timeout=60)
            return answer(row)

        with closing(ThreadCaller(together, agenda, time.perf_counter, width=width)) as caller:
            yield caller
        return
    with closing(EventLoop() if kind == "loop" else LoopAgenda()) as loop:
        gathered: list[asyncio.Event] = []
        count = 0

        async def gather(row: int) -> bool:
            nonlocal count
            if count % width == 0:
                gathered.append(asyncio.Event())
            mine = gathered[-1]
            count += 1
            if count % width == 0:
                mine.set()
            await asyncio.wait_for(mine.wait(), timeout=60)
            return answer(row)

        told = loop if isinstance(loop, LoopAgenda) else agenda
        yield EventLoopCaller(gather, told, time.perf_counter, loop, width=width)


@EVERY_KIND
def test_as_many_calls_as_allowed_are_under_way(kind: str) -> None:
    with waiting_caller(kind, lambda row: row % 3 == 0, 8) as caller:
        kept = filtered([ConcurrentFunction(caller)], 800, WallClock())
        assert kept == list(range(0, 800, 3))


@EVERY_KIND
def test_what_a_call_raises_is_held(kind: str) -> None:
    def fails(row: int) -> bool:
        if row == 3:
            raise KeyError(row)
        return True

    with (
        waiting_caller(kind, fails, 1) as caller,
        pytest.raises(KeyError, match="3"),
    ):
        filtered([ConcurrentFunction(caller)], 5, WallClock())


@EVERY_KIND
@pytest.mark.parametrize("end", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_a_call_that_wants_to_end_everything_ends_itself(
    kind: str, end: type[BaseException]
) -> None:
    def fails(row: int) -> bool:
        if row % 2:
            raise end
        return True

    with (
        waiting_caller(kind, fails, 1) as caller,
        pytest.raises(RuntimeError, match=f"a call was ended by {end.__name__}"),
    ):
        filtered([ConcurrentFunction(caller)], 5, WallClock())


@pytest.mark.parametrize("value", ["yes", 1, 0.0, [True], np.array([True, False])])
def test_what_is_no_verdict_is_an_error_of_its_row(value: object) -> None:
    clock = VirtualClock()
    agenda = VirtualAgenda(clock)
    answers = ConcurrentFunction(VirtualCaller(lambda _: value, agenda, lambda _: 1.0))
    assert filtered([answers, Inline([False, False])], 2, clock) == []
    with pytest.raises(TypeError, match="must answer with a bool or None, not"):
        filtered(
            [ConcurrentFunction(VirtualCaller(lambda _: value, agenda, lambda _: 1.0))], 2, clock
        )


@EVERY_KIND
def test_predicates_that_compute_and_that_wait_in_one_eddy(kind: str) -> None:
    computes = Inline([row % 2 == 0 for row in range(800)])
    with waiting_caller(kind, lambda row: row % 3 == 0, 1) as caller:
        kept = filtered([computes, ConcurrentFunction(caller), computes], 800, WallClock())
        assert kept == list(range(0, 800, 6))


def test_threads_speak_to_an_eddy_with_a_loop_of_its_own() -> None:
    async def waits(row: int) -> bool:
        await asyncio.sleep(1e-4)
        return row % 2 == 0

    with (
        closing(LoopAgenda()) as agenda,
        closing(ThreadCaller(lambda row: row % 3 == 0, agenda, time.perf_counter)) as threads,
    ):
        loop = EventLoopCaller(waits, agenda, time.perf_counter, agenda)
        functions = [ConcurrentFunction(threads), ConcurrentFunction(loop)]
        assert filtered(functions, 300, WallClock()) == list(range(0, 300, 6))


def test_what_is_under_way_ends_with_a_loop_of_the_eddys_own() -> None:
    ended = []

    async def waits(row: int) -> bool:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(row)
        return True

    agenda = LoopAgenda()
    caller = EventLoopCaller(waits, agenda, time.perf_counter, agenda)
    caller.attend(0)
    caller.submit([PlannedCall((ENTERING, row), (row,)) for row in range(3)])
    assert agenda.poll() == []
    agenda.close()
    assert sorted(ended) == [0, 1, 2]


def test_what_happens_on_a_virtual_clock_happens_at_its_time() -> None:
    """Also where the eddy has computed meanwhile and looks late."""
    clock = VirtualClock()
    agenda = VirtualAgenda(clock)
    caller = VirtualCaller(lambda _: True, agenda, lambda _: 2.0, width=1)
    caller.attend(7)
    caller.submit([PlannedCall((ENTERING, row), (row,)) for row in range(5)])
    assert agenda.poll() == []
    clock.advance(5.0)
    assert agenda.poll() == [7]
    assert len(caller.collect()) == 2
    assert agenda.wait() == [7]
    assert (len(caller.collect()), clock.now()) == (1, 6.0)


def test_a_width_is_a_number_of_calls() -> None:
    with pytest.raises(ValueError, match="a width is a number of calls from 1 on, not 0"):
        ThreadCaller(bool, SharedAgenda(), time.perf_counter, width=0)


def test_one_caller_is_for_one_module() -> None:
    caller = ThreadCaller(bool, SharedAgenda(), time.perf_counter)
    caller.attend(2)
    for number in (2, 3):  # of another eddy, whose rows have the same numbers
        with pytest.raises(RuntimeError, match="makes the calls of module 2 already"):
            caller.attend(number)


async def _cancels_itself(_: int) -> bool:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)
    return True


async def _cancels_itself_and_fails(_: int) -> bool:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    raise OSError("no answer")


async def _asks_a_group_of_which_one_fails(_: int) -> bool:
    async def fails() -> None:
        raise OSError("no answer")

    async with asyncio.TaskGroup() as group:
        group.create_task(fails())
        group.create_task(asyncio.sleep(10))
    return True


async def _cancels_all(_: int) -> bool:
    for task in asyncio.all_tasks():
        task.cancel()
    await asyncio.sleep(0)
    return True


@pytest.mark.parametrize(
    "ending",
    [
        _cancels_itself,
        _cancels_itself_and_fails,
        _asks_a_group_of_which_one_fails,
        _cancels_all,
    ],
)
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("kind", ["own loop", "loop"])
def test_a_call_that_was_cancelled_is_answered_and_so_are_the_others(
    kind: str, width: int, ending: Callable[[int], Awaitable[bool]]
) -> None:
    """Each once; with an error where it was cancelled, and no other call hears of it."""

    async def asks(row: int) -> bool:
        await asyncio.sleep(0)
        return await ending(row) if row == 2 else True

    own = LoopAgenda() if kind == "own loop" else None
    with closing(own or EventLoop()) as loop:
        agenda = own or SharedAgenda()
        caller = EventLoopCaller(asks, agenda, time.perf_counter, loop, width=width)
        caller.attend(0)
        caller.submit([PlannedCall((ENTERING, row), (row,)) for row in range(9)])
        done: list[CallDone] = []
        while len(done) < 9:
            agenda.wait()
            done += caller.collect()
    assert sorted(call.key[1] for call in done) == list(range(9))
    failed = {call.key[1] for call in done if call.error is not None}
    assert 2 in failed
    if ending is not _cancels_all or width == 1:
        assert failed == {2}


def test_whoever_closes_a_loop_ends_the_calls() -> None:
    """And a filter that waits for them, with an error."""

    async def waits(_: int) -> bool:
        threading.Timer(0.01, loop.close).start()
        await asyncio.sleep(3600)
        return True

    loop = EventLoop()
    caller = EventLoopCaller(waits, SharedAgenda(), time.perf_counter, loop, width=1)
    with pytest.raises(RuntimeError, match=r"was ended|is closed"):
        filtered([ConcurrentFunction(caller)], 20, WallClock())
    loop.close()
    with pytest.raises(RuntimeError, match="loop is closed"):
        caller.submit([PlannedCall((ENTERING, 0), (0,))])


def test_calls_that_nobody_had_begun_end_with_their_loop() -> None:
    async def waits(_: int) -> bool:
        await asyncio.sleep(3600)
        return True

    agenda = LoopAgenda()
    caller = EventLoopCaller(waits, agenda, time.perf_counter, agenda, width=2)
    caller.attend(0)
    caller.submit([PlannedCall((ENTERING, row), (row,)) for row in range(5)])
    agenda.close()
    agenda.close()
    assert sorted(call.key[1] for call in caller.collect()) == list(range(5))
    with pytest.raises(RuntimeError, match="loop is closed"):
        caller.submit([PlannedCall((ENTERING, 0), (0,))])


def test_a_function_that_stops_its_loop_stops_nobody() -> None:
    async def stops(row: int) -> bool:
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0)
        return row % 2 == 0

    with closing(EventLoop()) as loop:
        caller = EventLoopCaller(stops, SharedAgenda(), time.perf_counter, loop)
        assert filtered([ConcurrentFunction(caller)], 9, WallClock()) == [0, 2, 4, 6, 8]


def test_a_loop_that_runs_while_somebody_waits_must_be_what_is_waited_for() -> None:
    async def accepts(_: int) -> bool:
        return True

    with closing(LoopAgenda()) as loop, pytest.raises(ValueError, match="must be its agenda"):
        EventLoopCaller(accepts, SharedAgenda(), time.perf_counter, loop)


# -- what cannot be --------------------------------------------------------------------


def test_one_agenda_for_all() -> None:
    callers = [ThreadCaller(bool, SharedAgenda(), time.perf_counter) for _ in range(2)]
    with pytest.raises(ValueError, match="in one agenda, not several"):
        filtered([ConcurrentFunction(caller) for caller in callers], 5, WallClock())


@pytest.mark.parametrize(
    "plan",
    [
        FilterPlan(And((Or((call(0), call(1))), call(1)))),
        FilterPlan(And((call(0), call(1))), outputs=(call(0),)),
        FilterPlan(And((call(0), Call(1, (call(0),), pa.bool_())))),
    ],
)
def test_a_single_caller_can_only_stand_in_one_conjunct(plan: FilterPlan) -> None:
    later = ConcurrentFunction(ThreadCaller(bool, SharedAgenda(), time.perf_counter))
    with pytest.raises(ValueError, match="a single caller can only stand in one conjunct"):
        FilterEddy(
            plan,
            [later, Inline([])],
            lambda: make_policy("adaptive"),
            WallClock(),
            np.random.default_rng(0),
        )
    with pytest.raises(TypeError, match="answers later"):
        later([], 3)
