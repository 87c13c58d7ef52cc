"""The lookup tables of a Spark context, and the server that makes their lookups."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from pyspark import SparkContext

from eddyline.concurrency.event_loop import EventLoop
from eddyline.sources.price import Books
from eddyline.sources.wire import Address
from eddyline.spark.blocks.lookup_table import LookupMethod, LookupTable
from eddyline.spark.host.session import local_cores
from eddyline.wall_clock import WallClock

if TYPE_CHECKING:
    from eddyline.sources.lookup_server import LookupServer, Method
    from eddyline.sources.shared_lookup import AccessMethod

DRIVER_HOST: Final = "spark.driver.host"
PORT: Final = "spark.eddyline.lookups.port"
"""Setting: the port at the driver where tasks ask for lookups; any free one by default."""


class LookupTables:
    """What was registered, by the function that stands for a table in plans."""

    def __init__(self, context: SparkContext) -> None:
        """Start with no table; the server starts with the first query."""
        self._context = context
        self._methods: dict[str, Method] = {}
        self.books: Final = Books()
        self._tables: dict[bytes, LookupTable] = {}
        self._server: LookupServer | None = None
        self._starting = threading.Lock()

    @property
    def any(self) -> bool:
        """Whether there is any table."""
        return bool(self._tables)

    def methods(self, table: str, given: Sequence[AccessMethod]) -> tuple[LookupMethod, ...]:
        """Take note of access methods; return what plans and tasks know of them."""
        made = []
        for method in given:
            name = f"{table}/{len(self._methods)}"
            self._methods[name] = method
            made.append(LookupMethod(name, method.table.bind, method.limits.max_in_flight))
        return tuple(made)

    def remember(self, command: bytes, table: LookupTable) -> None:
        """Take note of the function that stands for a table."""
        self._tables[_digest(command)] = table

    def of(self, command: bytes) -> LookupTable | None:
        """Return the table that a function stands for; None where it is no such function."""
        return self._tables.get(_digest(command))

    def serve(self, name: str, method: Method) -> None:
        """Let tasks ask for a method by a name."""
        self._methods[name] = method

    @property
    def server(self) -> LookupServer:
        """The server; it starts now if it has not yet."""
        with self._starting:
            if self._server is None:
                # Only who has lookup tables has what these need.
                from eddyline.sources.lookup_server import LookupServer  # noqa: PLC0415

                local = local_cores(str(self._context.master)) is not None
                settings = self._context.getConf()
                self._server = LookupServer(
                    EventLoop(),
                    self._methods,
                    WallClock().now,
                    host="127.0.0.1" if local else "0.0.0.0",  # noqa: S104 - executors are elsewhere, and bring a token
                    port=int(settings.get(PORT, "0") or 0),
                )
            return self._server

    @property
    def address(self) -> Address:
        """Where tasks find the server."""
        found = self.server.address
        if found.host == "127.0.0.1":
            return found
        host = str(self._context.getConf().get(DRIVER_HOST, "127.0.0.1"))
        return Address(host, found.port, found.token)


_tables: WeakKeyDictionary[SparkContext, LookupTables] = WeakKeyDictionary()
_making = threading.Lock()


def lookup_tables_of(context: SparkContext) -> LookupTables:
    """Return the lookup tables of a Spark context."""
    with _making:
        tables = _tables.get(context)
        if tables is None:
            tables = _tables[context] = LookupTables(context)
    return tables


def _digest(command: bytes) -> bytes:
    return hashlib.sha256(command).digest()
