"""Calls of concurrent functions where no task reaches the driver: each worker makes its own.

That is so for clients of Spark Connect. Everything is as where the driver is: the same server, with
the same limits, refusals and answers, serves the tasks of this process from a thread of its own. So
a function is called once for equal arguments of a job in each process, and its limits hold for each
by itself.
"""

from __future__ import annotations

import os
import pickle
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from eddyline.asking.driver_channel import Address, DriverChannel
from eddyline.blocks.filter_block import SessionSettings, UserFunction
from eddyline.wall_clock import WallClock

if TYPE_CHECKING:
    from eddyline.asking.lookup_server import LookupServer
    from eddyline.asking.shared_method import Method

MOST: Final = 256
"""Functions that a process can be asked for, those of the latest blocks."""


class AskedHere:
    """What is asked in this process, and the server that does it; it begins with the first."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._begin()
        os.register_at_fork(after_in_child=self._begin)  # where nothing of it runs

    def _begin(self) -> None:
        self._methods: OrderedDict[str, Method] = OrderedDict()
        self._server: LookupServer | None = None
        self._lock = threading.Lock()

    def address(self, function: UserFunction, settings: SessionSettings) -> Address:
        """Return where a function of a block can be asked for from now on.

        ModuleNotFoundError where this Python lacks what that needs.
        """
        if function.driver is None:
            raise ValueError(f"{function.name} is called by itself")
        name = function.driver.method
        with self._lock:
            if name not in self._methods:
                self._methods[name] = _method(function, settings)
            self._methods.move_to_end(name)
            while len(self._methods) > MOST:
                self._methods.popitem(last=False)
            if self._server is None:
                self._server = _server(self._methods)
            return self._server.address


def _method(function: UserFunction, settings: SessionSettings) -> Method:
    try:
        from eddyline.tasks.declared_method import declared_method  # noqa: PLC0415 - few need it
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{function.name} is a concurrent function, which tasks call themselves over Spark "
            f"Connect: the Python of the server's workers needs {error.name} for that.",
            name=error.name,
        ) from error
    from eddyline.asking.price import Books  # noqa: PLC0415 - likewise

    (declared,) = function.commands
    declaration = pickle.loads(declared)  # noqa: S301 - the client has made it
    number = 0 if function.driver is None else function.driver.number
    return declared_method(declaration, function, settings, number, Books())


def _server(methods: Mapping[str, Method]) -> LookupServer:
    from eddyline.asking.event_loop import EventLoop  # noqa: PLC0415 - likewise
    from eddyline.asking.lookup_server import LookupServer  # noqa: PLC0415 - likewise

    return LookupServer(EventLoop(), methods, WallClock().now, DriverChannel())


ASKED_HERE: Final = AskedHere()
"""That of this process."""
