"""What a worker process remembers of functions, from task to task of one action.

Never longer: the next action calls them anew, even of the same DataFrame. And two functions are the
same only if everything pickled with them is, closures included.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from eddyline.blocks.filter_block import SessionSettings, UserFunction
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.engine.clock import Clock
from eddyline.engine.functions.balance import Balance
from eddyline.engine.functions.function_memory import FunctionMemory
from eddyline.engine.functions.remembered_function import (
    MemoryStatistics,
    Remembered,
    RememberedFunction,
)
from eddyline.latest import Latest
from eddyline.tasks.calling import WorkerFunction
from eddyline.tasks.calling.nest_function import NestFunction, SharedParts
from eddyline.tasks.task_lookups import job_of

SHARE: Final = 8
"""The functions of a block may remember, together, this part of what a task may use.

And as much of what they share.
"""

_Functions = dict[tuple[UserFunction, SessionSettings], Remembered]

MEMORIES: Final[Latest[str, _Functions]] = Latest(2)
"""By job: an action's and that of one more, since two may take turns in a process."""


PARTS: Final[Latest[str, SharedParts]] = Latest(2)
"""The parts that functions share, by job, likewise."""


class WithMemory(RememberedFunction):
    """A function of a task that has a memory; it is closed like one without."""

    def __init__(
        self,
        function: WorkerFunction,
        remembered: Remembered,
        clock: Clock,
        balance: Balance | None = None,
    ) -> None:
        """Give a function the memory that another task of this process may have left.

        ``balance`` is one of this task's own, and nobody else's.
        """
        super().__init__(function, remembered, clock, balance)
        self.close = function.close
        self._nest = function if isinstance(function, NestFunction) else None

    def statistics(self) -> MemoryStatistics:
        """Return what was done so far; a value that another function called for is a hit."""
        own = super().statistics()
        taken = 0 if self._nest is None else self._nest.taken
        return replace(own, calls=own.calls - taken, hits=own.hits + taken) if taken else own


def remembered(
    function: UserFunction, settings: SessionSettings, options: RoutingOptions, functions: int
) -> Remembered:
    """Return what is remembered of one of so many functions of a block, in this job."""
    job = job_of(options)
    of_job = MEMORIES.get(job)
    if of_job is None:
        MEMORIES.put(job, of_job := {})
    memory = of_job.get((function, settings))
    if memory is None:
        memory = Remembered(FunctionMemory(options.memory // (SHARE * functions)))
        of_job[function, settings] = memory
    return memory


def shared_parts(options: RoutingOptions) -> SharedParts:
    """Return what functions have in common with each other in this job, in this process."""
    job = job_of(options)
    parts = PARTS.get(job)
    if parts is None:
        PARTS.put(job, parts := SharedParts())
    return parts
