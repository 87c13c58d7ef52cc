"""``python -m bench waiting``: predicates that wait for an answer, side by side in one eddy.

Four predicates of 2 milliseconds each, as of a web service or a model server, 16 calls of each
under way at a time. Compared with what the predicate with the most calls would take by itself,
called by a plain pool of the same width; and with what the same eddy takes in the simulator,
whose calls take as long as the pool's, or as long as they did in the eddy's run on the average:
64 sleepers in one interpreter disturb each other.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench import report
from bench.simulation.virtual_agenda import VirtualAgenda
from bench.simulation.virtual_calls import VirtualCaller
from bench.turns import Spread, in_turns
from bench.waiting_calls import ConcurrentFunction, ThreadCaller
from eddyline.asking.event_loop import EventLoop, EventLoopCaller, LoopAgenda
from eddyline.asking.shared_agenda import SharedAgenda
from eddyline.engine.callers import Caller
from eddyline.engine.clock import Clock
from eddyline.engine.filter.filter_eddy import FilterEddy, FilterPlan
from eddyline.engine.policies.catalogue import PolicyName, make_policy
from eddyline.expressions import And, Argument, Call
from eddyline.simulation.virtual_clock import VirtualClock
from eddyline.wall_clock import WallClock

ROWS: Final = 4_000
WIDTH: Final = 16
"""Calls of a predicate that are under way at a time."""

SECONDS: Final = 2e-3
"""What a call waits."""

SELECTIVITIES: Final = (0.9, 0.7, 0.5, 0.3)
"""Worst first, as written."""

OVER_BUSIEST: Final = 1.2
"""Target: over the time that the predicate with the most calls needs alone."""

PREDICTED: Final = 0.1
"""Target: the simulator is off by so much at the most."""

TARGETS: Final = (PolicyName.ADAPTIVE, PolicyName.RANK, PolicyName.NAIVE)
OTHERS: Final = (PolicyName.STATIC, PolicyName.LOTTERY)


class Waiters(StrEnum):
    """Who waits for the answers."""

    OWN_LOOP = "an event loop in the eddy's thread"
    EVENT_LOOP = "an event loop in another thread"
    THREADS = "threads"


def exact_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop that sleeps as long as it is told.

    Python's usual one rounds up to whole milliseconds when it waits for nothing but the time:
    64 plain sleepers of 2 ms in one loop then take 2.95 ms each, 16 that begin together 2.4.
    Whoever waits for a socket has no such trouble.
    """
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


@dataclass(frozen=True, slots=True)
class Run:
    """Seconds of a run, the calls of each predicate, and the seconds of a call."""

    seconds: float
    calls: tuple[int, ...]
    call_seconds: float


def run(callers: Sequence[Caller], clock: Clock, policy: str) -> Run:
    """Filter all rows in a new eddy."""
    column = Argument(0, pa.int64())
    eddy = FilterEddy(
        FilterPlan(And(tuple(Call(n, (column,), pa.bool_()) for n in range(len(callers))))),
        [ConcurrentFunction(caller) for caller in callers],
        lambda: make_policy(policy),
        clock,
        np.random.default_rng(0),
    )
    started = clock.now()
    eddy.filter([pa.array(np.arange(ROWS))], ROWS)
    seconds = clock.now() - started
    made = eddy.statistics().calls
    calls = tuple(use.calls for use in made)
    return Run(seconds, calls, sum(use.seconds for use in made) / sum(calls))


class Measured(NamedTuple):
    """One turn: seconds, and these over what each other contestant takes."""

    seconds: float
    over_busiest: float
    over_simulator: float
    over_simulator_of_own_calls: float


class Outcomes:
    """Which rows pass which predicate, and the predicates as functions."""

    def __init__(self, seed: int) -> None:
        draws = np.random.default_rng(seed).random((len(SELECTIVITIES), ROWS))
        below: npt.NDArray[np.bool_] = draws < np.array(SELECTIVITIES)[:, None]
        self.passes: list[list[bool]] = below.tolist()

    def sleeping(self, predicate: int) -> Callable[[int], bool]:
        """Return a predicate that blocks its thread."""

        def answers(row: int) -> bool:
            time.sleep(SECONDS)
            return self.passes[predicate][row]

        return answers

    def awaiting(self, predicate: int) -> Callable[[int], Awaitable[bool]]:
        """Return a predicate for an event loop."""

        async def answers(row: int) -> bool:
            await asyncio.sleep(SECONDS)
            return self.passes[predicate][row]

        return answers

    @contextmanager
    def callers(self, waiters: Waiters) -> Iterator[list[Caller]]:
        """Make the callers of all predicates, and end them afterwards."""
        now, predicates = time.perf_counter, range(len(self.passes))
        if waiters is Waiters.THREADS:
            shared = SharedAgenda()
            callers = [ThreadCaller(self.sleeping(n), shared, now, width=WIDTH) for n in predicates]
            yield list(callers)
            for caller in callers:
                caller.close()
            return
        own = waiters is Waiters.OWN_LOOP
        with closing(LoopAgenda(exact_loop) if own else EventLoop(exact_loop)) as loop:
            agenda = loop if isinstance(loop, LoopAgenda) else SharedAgenda()
            yield [
                EventLoopCaller(self.awaiting(n), agenda, now, loop, width=WIDTH)
                for n in predicates
            ]

    def alone(self, waiters: Waiters) -> float:
        """Return the seconds that one predicate takes for all rows, called by a plain pool."""
        if waiters is Waiters.THREADS:
            with ThreadPoolExecutor(WIDTH) as pool:
                list(pool.map(self.sleeping(0), range(WIDTH)))  # the threads are there
                started = time.perf_counter()
                list(pool.map(self.sleeping(0), range(ROWS)))
                return time.perf_counter() - started
        with asyncio.Runner(loop_factory=exact_loop) as runner:
            return runner.run(self._alone())

    async def _alone(self) -> float:
        rows, answers = iter(range(ROWS)), self.awaiting(0)

        async def work() -> None:
            for row in rows:
                await answers(row)

        started = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(WIDTH)))
        return time.perf_counter() - started

    def predicted(self, policy: str, seconds: float) -> float:
        """Return what the same eddy takes in the simulator, where a call takes ``seconds``."""
        agenda = VirtualAgenda(clock := VirtualClock())
        callers = [
            VirtualCaller(passes.__getitem__, agenda, lambda _: seconds, width=WIDTH)
            for passes in self.passes
        ]
        return run(callers, clock, policy).seconds


def measured(outcomes: Outcomes, waiters: Waiters, policy: str) -> Measured:
    """Run every contestant once."""
    alone = outcomes.alone(waiters)
    with outcomes.callers(waiters) as callers:
        taken = run(callers, WallClock(), policy)
    return Measured(
        taken.seconds,
        taken.seconds / (alone * max(taken.calls) / ROWS),
        taken.seconds / outcomes.predicted(policy, alone * WIDTH / ROWS),
        taken.seconds / outcomes.predicted(policy, taken.call_seconds),
    )


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    options = report.argument_parser("bench waiting", __doc__).parse_args(arguments)
    outcomes = Outcomes(3)
    policies = (*TARGETS, *OTHERS)
    found: dict[str, dict[str, list[Measured]]] = {}
    with report.progress(len(Waiters) * len(policies) * (options.turns + 1)) as advance:
        for waiters in Waiters:
            advance(str(waiters))
            runs = {
                str(policy): partial(measured, outcomes, waiters, policy) for policy in policies
            }
            found[str(waiters)] = in_turns(runs, options.turns, progress=advance)
    report.write(options, "waiting", found)
    for who, by_policy in found.items():
        title = (
            f"{len(SELECTIVITIES)} predicates of {1e3 * SECONDS:.0f} ms over {ROWS} rows, "
            f"{WIDTH} calls of each at a time, {who}"
        )
        columns = ("seconds", "over the busiest alone", "over the simulator", "its own calls")
        rows = (_row(policy, turns) for policy, turns in by_policy.items())
        caption = "medians, with the least and the greatest"
        report.show(report.table(title, ("policy", *columns), rows, caption))
    return 0


def _row(policy: str, turns: Sequence[Measured]) -> Sequence[str]:
    seconds, *ratios = map(Spread.of, zip(*turns, strict=True))
    bounds = ((0.0, OVER_BUSIEST), *((1 - PREDICTED, 1 + PREDICTED),) * 2)
    judged = [
        f"{ratio} {'met' if least <= ratio.median <= most else 'missed'}"
        for ratio, (least, most) in zip(ratios, bounds, strict=True)
    ]
    return policy, f"{seconds.median:.3f}", *(judged if policy in TARGETS else map(str, ratios))
