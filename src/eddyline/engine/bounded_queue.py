"""Queues in front of modules that work while the eddy goes on."""

from __future__ import annotations

from typing import NamedTuple


class BoundedQueue(NamedTuple):
    """How many tuples a module takes at a time, those that it works on included.

    Once full it is offered more when it has room again for ``refill`` of them. A visit takes
    ``unit`` of them at the least, if there are so many: as many as one call of the module can.
    """

    room: int
    refill: int = 1
    unit: int = 1
