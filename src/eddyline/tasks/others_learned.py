"""Asks the driver what all tasks of a block have learned by now, until it has told a worker once.

What a task has learned comes to the driver when it ends, and what the driver knows travels with the
plan: while a stage runs, its workers hear nothing of each other. So a worker asks, by one
connection (:mod:`eddyline.asking.driver_channel`), where a stage has many short tasks: with its
first one, unless that is among the first few of the stage, and else with its second. It begins with
the answer, and goes on by itself from there: so what is particular to a node, as its speed, stays
that node's. Where nobody can be asked it goes on with its own, and tries no more.

The answer is a line of JSON: for each conjunct null, or tuples, those that passed, the cost of one,
and the same of its terms. It says where routing begins, and changes no answer.
"""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from eddyline.asking.driver_channel import Address, Hello, Listener, connected
from eddyline.engine.prior import Prior
from eddyline.latest import Latest

PATIENCE: Final = 0.5
"""Seconds to wait for the driver, each time that something is sent or read."""

SHORT_TASK: Final = 10_000
"""Rows of the longest task that leaves a worker in need of others' news: a batch of Spark's.

What it has learned by itself is conditional on signatures and on classes of rows, which no prior
is; from so many rows on it is worth more.
"""

FEW_TASKS: Final = 32
"""Tasks of a stage that do not ask with the first task of a worker: there may be no others."""

ASKS: Final = 3
"""Times that a worker asks about a block at the most, where nothing is known yet."""

LONGEST: Final = 1 << 20
"""Bytes of an answer at the most; a predicate takes some 60."""

Told: TypeAlias = tuple[Prior | None, ...]

_unreachable: Final[Latest[Address, str]] = Latest(2)  # with the reason

_log = logging.getLogger(__name__)


def telling(told: Callable[[str], Told]) -> Listener:
    """Return the driver's listener: ``told`` says what is known, by the key of a block's records.

    It is called in the threads of connections.
    """

    def tell(hello: Hello, connection: socket.socket) -> None:
        connection.settimeout(PATIENCE)
        connection.sendall(json.dumps(_as_data(told(str(hello["block"])))).encode() + b"\n")

    return tell


def told_by(address: Address, block: str) -> Told:
    """Return what the driver knows of the conjuncts of a block; empty where it knows nothing.

    Or cannot be asked: then nobody in this process tries again.
    """
    if _unreachable.get(address) is not None:
        return ()
    try:
        with (
            connected(address, {"block": block}, PATIENCE) as connection,
            connection.makefile("rb") as stream,
        ):
            told = tuple(map(_prior, _listed(json.loads(stream.readline(LONGEST)))))
    except (OSError, TypeError, ValueError, RecursionError) as error:
        _unreachable.put(address, str(error))
        _log.info("What other tasks have learned could not be asked for: %s", error)
        return ()
    return told if any(told) else ()


def _as_data(told: Iterable[Prior | None]) -> list[object]:
    return [
        None
        if prior is None
        else [prior.tuples, prior.returned, prior.cost, _as_data(prior.nested)]
        for prior in told
    ]


def _prior(data: object) -> Prior | None:
    if data is None:
        return None
    *numbers, nested = _listed(data)
    tuples, returned, cost = map(_number, numbers)
    return Prior(tuples, returned, cost, tuple(map(_prior, _listed(nested))))


def _number(data: object) -> float:
    if isinstance(data, bool) or not isinstance(data, int | float):
        raise TypeError(f"a number is expected, not {data!r}")
    return float(data)


def _listed(data: object) -> Sequence[object]:
    if not isinstance(data, list):
        raise TypeError(f"a list is expected, not {data!r}")
    return data
