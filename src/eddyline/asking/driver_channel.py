"""The one way from Spark's tasks to the driver: a port, a token, and the listeners behind it.

A task connects and says hello, a line of JSON: the token, the name of the listener that it wants,
and what that listener has to know. Everything after it is between the two:

- keys that are asked for, and their answers (:mod:`eddyline.asking.lookup_server`),
- news of tasks that run (:mod:`eddyline.tasks.live_news`),
- rows for a watch (:mod:`eddyline.tasks.send_rows`).

Nothing is read from those who do not know the token, and only tasks are told it.
"""

from __future__ import annotations

import contextlib
import hmac
import itertools
import json
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeAlias

from eddyline.asking.shared_threads import SharedThreads

HELLO: Final = 1 << 16
"""Bytes of a hello at the most, which comes from whoever has connected."""

HELLO_SECONDS: Final = 20.0
"""Seconds in which it has to come."""

RESTING_SECONDS: Final = 1.0
"""Seconds before the next try where nobody can be let in, as without a free descriptor."""

Hello: TypeAlias = Mapping[str, Any]

Listener: TypeAlias = Callable[[Hello, socket.socket], None]
"""Hears a connection to its end, in a thread of its own; who wants to go on elsewhere detaches it.

OSError, ValueError, and KeyError for what a hello lacks, end the connection and nothing else.
"""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a listener is, and what lets a task in."""

    host: str
    port: int
    token: str = field(repr=False)
    listener: str = ""


def connected(address: Address, hello: Mapping[str, object], seconds: float) -> socket.socket:
    """Return a connection to a listener, after the hello; OSError where there is none.

    Each operation on it may take ``seconds``, as the connecting may, unless that is changed.
    """
    connection = socket.create_connection((address.host, address.port), timeout=seconds)
    try:
        line = json.dumps({"token": address.token, "listener": address.listener, **hello})
        connection.sendall(line.encode() + b"\n")
    except BaseException:
        connection.close()
        raise
    return connection


class DriverChannel:
    """Lets tasks in, wherever they run, and leads each to the listener that it names.

    >>> def echo(hello: Hello, connection: socket.socket) -> None:
    ...     connection.sendall(hello["word"].encode())
    >>> channel = DriverChannel()
    >>> with connected(channel.listen("echo", echo), {"word": "here"}, 5.0) as connection:
    ...     connection.recv(10)
    b'here'
    >>> channel.close()
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 0, told: str = "") -> None:
        """Be there at once, on any free port by default; OSError where that fails.

        Tasks are told that it is at the host ``told``, by default at ``host``.
        """
        self._socket = socket.create_server((host, port))
        token = secrets.token_hex(32)
        self._token = token.encode()
        self._address = Address(told or host, self._socket.getsockname()[1], token)
        self._numbers = itertools.count(1)
        self._listeners: dict[str, Listener] = {}
        self._open: dict[socket.socket, str] = {}  # with whom they are connected, "" for nobody yet
        self._changing = threading.Lock()
        self._closed = False
        threading.Thread(target=self._let_in, name="eddyline-channel", daemon=True).start()

    def listen(self, kind: str, listener: Listener) -> Address:
        """Lead tasks to a listener from now on; return where they find it. No two are alike."""
        with self._changing:
            name = f"{kind}/{next(self._numbers)}"
            self._listeners[name] = listener
        return replace(self._address, listener=name)

    def hang_up(self, address: Address) -> None:
        """End the connections to a listener, and lead nobody there any more."""
        with self._changing:
            self._listeners.pop(address.listener, None)
            theirs = [
                connection for connection, name in self._open.items() if name == address.listener
            ]
        _shut(*theirs)

    def close(self) -> None:
        """End all connections, and let nobody in."""
        with self._changing:
            self._closed = True
            self._listeners.clear()
            connections = list(self._open)
        _shut(self._socket, *connections)
        self._socket.close()

    def _let_in(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                if self._closed:
                    return
                time.sleep(RESTING_SECONDS)
                continue
            try:
                _CONNECTIONS.start(partial(self._serve, connection))
            except RuntimeError:  # there can be no more threads
                connection.close()

    def _serve(self, connection: socket.socket) -> None:
        """Hear a connection, and close it; one that does not speak like a task is not ours."""
        with connection, contextlib.suppress(OSError, ValueError, KeyError, RecursionError):
            with self._changing:
                if self._closed:
                    return
                self._open[connection] = ""
            try:
                self._hear(connection)
            finally:
                with self._changing:
                    del self._open[connection]

    def _hear(self, connection: socket.socket) -> None:
        hello = _hello(connection, time.monotonic() + HELLO_SECONDS)
        if not hmac.compare_digest(str(hello["token"]).encode(), self._token):
            return
        name = str(hello["listener"])
        with self._changing:
            listener = self._listeners[name]
            self._open[connection] = name
        connection.settimeout(None)
        listener(hello, connection)


def _hello(connection: socket.socket, until: float) -> dict[str, Any]:
    """Return what was said first, and read no byte of what follows; ValueError for no hello.

    It has to be there by the time ``until``, even if it comes byte by byte.
    """
    line = b""
    while not line.endswith(b"\n"):
        left = until - time.monotonic()
        if left <= 0:
            raise ValueError("a hello that takes too long")
        connection.settimeout(left)
        seen = connection.recv(HELLO, socket.MSG_PEEK)
        if not seen or len(line) + len(seen) > HELLO:
            raise ValueError("no hello, or a long one")
        line += connection.recv(seen.find(b"\n") + 1 or len(seen))
    hello = json.loads(line)
    if not isinstance(hello, dict):
        raise ValueError(f"{hello!r} is no hello")  # noqa: TRY004 - a value that was read
    return hello


def _shut(*connections: socket.socket) -> None:
    for connection in connections:
        with contextlib.suppress(OSError):  # it may have ended before
            connection.shutdown(socket.SHUT_RDWR)


_CONNECTIONS: Final = SharedThreads("eddyline-connection")
"""The threads in which this process hears connections."""
