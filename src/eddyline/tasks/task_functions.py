"""The functions of one task: those that it calls, and those that the driver calls for it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from eddyline.asking.driver_channel import Address
from eddyline.asking.remote_method import RemoteFunction
from eddyline.asking.shared_agenda import SharedAgenda
from eddyline.blocks.column_types import arrow_type
from eddyline.blocks.filter_block import SessionSettings, UserFunction
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.engine.clock import Clock
from eddyline.engine.functions.balance import Always
from eddyline.tasks.asked_here import ASKED_HERE
from eddyline.tasks.calling import WorkerFunction, made_function
from eddyline.tasks.calling.nest_function import Sharing
from eddyline.tasks.log_context import show_users_functions
from eddyline.tasks.task_lookups import job_of
from eddyline.tasks.worker_memory import SHARE, WithMemory, remembered, shared_parts


def task_functions(
    functions: Sequence[UserFunction],
    settings: SessionSettings,
    of_action: SessionSettings,
    options: RoutingOptions,
    server: Address | None,
    clock: Clock,
    *,
    always: bool = False,
) -> list[WorkerFunction]:
    """Return functions in their order; ServerGoneError where the driver cannot be reached.

    Who calls a function for tasks converts values under ``settings``, those of the block; a worker
    by itself under those of the action. ``clock`` tells what remembering spares; with ``always``
    functions remember whether it spares anything or not.
    """
    show_users_functions()
    agenda = SharedAgenda()
    worth = dict(options.worth)
    share = options.remember and any(function.shared for function in functions)
    sharing = None
    if share:
        largest = options.memory // (SHARE * len(functions))
        sharing = Sharing(shared_parts(options), clock, largest)
    made: list[WorkerFunction] = []
    with contextlib.ExitStack() as opened:
        for function in functions:
            driver = function.driver
            if driver is None:
                here = made_function(function, of_action, sharing)
                if options.remember and not here.forgetful:
                    memory = remembered(function, of_action, options, len(functions))
                    balance = Always() if always else None
                    made.append(WithMemory(here.function, memory, clock, balance))
                else:
                    made.append(here.function)
                continue
            where = ASKED_HERE.address(function, settings) if driver.here else server
            if where is None:
                raise AssertionError("a block with concurrent functions knows who calls them")
            zone = settings.time_zone
            remote = RemoteFunction(
                where,
                job_of(options),
                driver.method,
                agenda,
                [arrow_type(kind, zone) for kind in function.argument_types],
                arrow_type(function.return_type, zone),
                width=driver.width,
                worth=worth.get(driver.unit, 0.0),
            )
            opened.callback(remote.close)
            made.append(remote)
        opened.pop_all()
    return made
