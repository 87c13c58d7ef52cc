"""The lookups of one task of a join block."""

from __future__ import annotations

import contextlib
from typing import Final

from pyspark import TaskContext

from eddyline.asking.filling import TaskPlace
from eddyline.asking.remote_method import RemoteLookup
from eddyline.asking.shared_agenda import SharedAgenda
from eddyline.blocks.join_block import JoinBlock
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.engine.callers import Agenda
from eddyline.engine.modules.concurrent_index_access import ConcurrentSource
from eddyline.tasks.action_settings import ACTION

ROOM: Final = 1 << 12
"""Tuples that a lookup takes at a time in a task, where nobody changes his mind about their order.
"""


class TaskLookups:
    """Connections to the server of lookups, one for each lookup of the block."""

    def __init__(self, block: JoinBlock, job: str, agenda: Agenda, room: int = ROOM) -> None:
        """Connect, for a job of this name; ServerGoneError where the server cannot be reached.

        Answers are told to ``agenda``; ``room`` is that of each lookup
        (:class:`~eddyline.engine.modules.concurrent_index_access.ConcurrentSource`).
        """
        self.sources: dict[tuple[int, int], ConcurrentSource] = {}
        self._open = contextlib.ExitStack()
        numbers = iter(block.lookups)
        with contextlib.ExitStack() as opened:
            for r, relation in enumerate(block.query.relations):
                for number in range(len(relation.lookups)):
                    lookup = next(numbers)
                    if block.server is None:
                        raise AssertionError("a block with lookups knows who makes them")
                    caller = RemoteLookup(
                        block.server,
                        job,
                        lookup.method,
                        agenda,
                        list(zip(lookup.columns, relation.types, strict=True)),
                        width=lookup.width,
                        asked=lookup.asked,
                        exact=not lookup.asked,
                        task=None if lookup.keys_per_call == 1 else task_place(),
                    )
                    opened.callback(caller.close)
                    self.sources[r, number] = ConcurrentSource(
                        caller,
                        room=room,
                        packed=lookup.keys_per_call,
                        rest=caller.rest,
                    )
            self._open = opened.pop_all()

    def close(self) -> None:
        """Hang up."""
        self._open.close()


def ask_for_nothing(block: JoinBlock, job: str) -> None:
    """Tell those who might wait for this task's keys that it has nothing to look up."""
    if any(lookup.keys_per_call > 1 for lookup in block.lookups):
        TaskLookups(block, job, SharedAgenda()).close()


def task_place() -> TaskPlace | None:
    """Return which task this is; None where it is not one of Spark's."""
    context = TaskContext.get()
    return None if context is None else TaskPlace(context.stageId(), context.partitionId())


def job_of(options: RoutingOptions) -> str:
    """Return the name of the job that this task belongs to: of the run, and of the action.

    Where an action is not on a DataFrame, as in ``df.rdd.count()``, the stage stands for it.
    """
    return job_of_run(options.run)


def job_of_run(run: int) -> str:
    """Return that name for the number of a run."""
    context = TaskContext.get()
    if context is None:
        return f"{run}"
    action = context.getLocalProperty(ACTION)
    return f"{run}/{f'stage {context.stageId()}' if action is None else action}"
