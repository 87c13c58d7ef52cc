"""What all tasks of blocks have in common: clocks, functions, and a memory between tasks."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from pyspark import TaskContext

from eddyline.asking.driver_channel import Address
from eddyline.blocks.chosen_policy import WRITTEN_ORDER, ChosenPolicy
from eddyline.blocks.filter_block import SessionSettings, UserFunction
from eddyline.blocks.join_block import Block
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.engine.eddy import Learned
from eddyline.engine.functions.remembered_function import MemoryStatistics
from eddyline.engine.join.join_eddy import JoinEddy
from eddyline.engine.policies.adaptive import AdaptivePolicy
from eddyline.engine.policies.guarded import GuardedPolicy, unguarded
from eddyline.engine.prior import by_number
from eddyline.engine.statistics import EddyStatistics
from eddyline.expressions import forget_programs
from eddyline.latest import Latest
from eddyline.reports.records import OrderSlice, TaskRecord
from eddyline.tasks.action_settings import settings_of_action
from eddyline.tasks.others_learned import ASKS, FEW_TASKS, SHORT_TASK, Told, told_by
from eddyline.tasks.task_functions import task_functions
from eddyline.tasks.task_records import record_key
from eddyline.tasks.worker_memory import WithMemory
from eddyline.wall_clock import WallClock, WorkClock

LEARNED_BLOCKS: Final = 64
"""Blocks of which a worker process remembers what it learned."""

PREPARED_BLOCKS: Final = 4
"""Join blocks whose SteMs of small inputs a worker process keeps."""


@dataclass(frozen=True, slots=True)
class WorkerMemory:
    """What a worker process keeps between its tasks; Spark uses its Python workers again.

    ``learned`` is what the last task of a block knew at its end, by block and policy;
    ``prepared`` are eddies whose SteMs hold what every task needs, by run of the query and block.
    ``asked`` says how often tasks have asked what others have learned, by block and policy, too.
    """

    learned: Latest[tuple[str, ChosenPolicy], Learned] = field(
        default_factory=lambda: Latest(LEARNED_BLOCKS)
    )
    prepared: Latest[str, JoinEddy] = field(default_factory=lambda: Latest(PREPARED_BLOCKS))
    asked: Latest[tuple[str, ChosenPolicy], int] = field(
        default_factory=lambda: Latest(LEARNED_BLOCKS)
    )


MEMORY: Final = WorkerMemory()
"""The memory of this process."""


class BlockTask:
    """One task of a block: its clocks, the user's functions, and what it did."""

    def __init__(
        self,
        identity: str,
        functions: Sequence[UserFunction],
        settings: SessionSettings,
        options: RoutingOptions,
        server: Address | None = None,
        *,
        always: bool = False,
    ) -> None:
        """Make the functions, under the settings of the action that the task belongs to.

        ``server`` makes the calls of those that run where the driver is. With ``always`` the others
        remember, whether that pays or not.
        """
        self.clock = WallClock()
        self.work_clock = WorkClock()
        self.epoch = time.time() - self.clock.now()  # of the clock's zero point
        self.inside = 0.0  # seconds, as are the next two
        self.waited = 0.0  # for a core
        self.put_together = 0.0  # for results
        self.slices: list[OrderSlice] = []
        of_action = settings_of_action(settings)
        self.functions = task_functions(
            functions, settings, of_action, options, server, self.work_clock, always=always
        )
        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        self.generator = np.random.default_rng([options.seed, partition])
        self._identity = identity
        self._key = (identity, options.policy)
        self._options = options
        self._partition = partition

    def known(self) -> Learned | None:
        """Return what the last task of this block has learned here, None if there was none."""
        return MEMORY.learned.get(self._key)

    def told_by_others(self, block: Block, predicates: int, routed: Sequence[int]) -> Told:
        """Return what the driver says that all tasks have learned; empty where it is not asked.

        It is where the stage has more than a few tasks, or more than workers, until it has told
        something to this process once; unless the block's priors tell of all of its ``predicates``
        that are ``routed`` here, by number.
        """
        asked = MEMORY.asked.get(self._key) or 0
        if block.learned_at is None or asked >= ASKS or not routed:
            return ()
        if by_number(block.priors).keys() >= set(routed):
            return ()
        if self._key[1] == WRITTEN_ORDER or (self._partition < FEW_TASKS and not self.known()):
            return ()
        told = told_by(block.learned_at, record_key(block.identity, self._options))
        MEMORY.asked.put(self._key, ASKS if told else asked + 1)
        return told if len(told) == predicates else ()

    def finish(self, learned: Learned, error: BaseException | None, rows: int = 0) -> None:
        """End the user's functions; leave what was learned of ``rows`` for the next task."""
        MEMORY.learned.put(self._key, learned)
        if rows > SHORT_TASK:
            MEMORY.asked.put(self._key, ASKS)
        forget_programs()
        self.work_clock.close()
        with contextlib.ExitStack() as functions:
            if error is not None:  # the first error is the one to see, not what follows from it
                functions.enter_context(contextlib.suppress(Exception))
            for function in self.functions:
                functions.callback(function.close)

    def spent(self, wall: float, work: float) -> None:
        """Count time in the block: what the wall clock shows, and what the work clock does."""
        self.inside += wall
        self.waited += max(wall - work, 0.0)

    def memories(self) -> list[MemoryStatistics | None]:
        """Return what each function's memory did in this task, None for one without."""
        return [
            function.statistics() if isinstance(function, WithMemory) else None
            for function in self.functions
        ]

    def times(self, eddy: EddyStatistics) -> TaskRecord:
        """Return a record of where the time went, and of nothing else.

        Of the time in which it waited for answers, a part is their cost, which is their modules'.
        """
        known = eddy.work_seconds + eddy.routing_seconds + self.put_together + self.waited
        return TaskRecord(
            block=self._identity,
            seconds=self.inside,
            work_seconds=eddy.work_seconds,
            routing_seconds=eddy.routing_seconds,
            decisions=eddy.decisions,
            output_seconds=self.put_together,
            core_seconds=self.waited,
            answer_seconds=max(0.0, min(eddy.waiting_seconds, self.inside - known)),
            orders=tuple(self.slices),
            worker=str(os.getpid()),
        )


def explored(learned: Learned) -> int:
    """Return the tuples that the eddies of a task have sent another way, to learn of it."""
    policies = (unguarded(policy) for policy, _ in learned.eddies)
    return sum(policy.explored.total for policy in policies if isinstance(policy, AdaptivePolicy))


def with_policies(record: TaskRecord, learned: Learned) -> TaskRecord:
    """Return the record of a task with what its policies did: explored, and perhaps failed."""
    guarded = (policy for policy, _ in learned.eddies if isinstance(policy, GuardedPolicy))
    failures = [policy.failure for policy in guarded if policy.failure is not None]
    return replace(
        record,
        explored=explored(learned),
        policy_failures=min(len(failures), 1),
        policy_error=failures[0] if failures else "",
    )
