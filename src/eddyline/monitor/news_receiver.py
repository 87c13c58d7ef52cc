"""Receives what tasks tell while they run, wherever they run."""

from __future__ import annotations

import contextlib
import hmac
import json
import pickle
import secrets
import socket
import threading
from collections.abc import Callable
from typing import BinaryIO, Final

from eddyline.asking.wire import Address
from eddyline.tasks.live_news import News

LONGEST: Final = 1 << 24
"""Bytes of a message at the most; one of a large join has some 100,000."""

HELLO: Final = 1 << 10
"""Bytes of the first line at the most, which comes from whoever has connected."""


class NewsReceiver:
    """Listens for the workers' processes, each of which keeps one connection.

    Messages are pickles, as all that Spark's workers send to the driver; so nothing is read of
    who does not know the token, and this goes only to tasks.
    """

    def __init__(
        self, take: Callable[[News], None], host: str, port: int = 0, told: str = ""
    ) -> None:
        """Begin to listen at once, on any free port by default; OSError where that fails.

        Tasks are told that it is at the host ``told``, by default at ``host``.
        ``take`` is called in the threads of connections.
        """
        self._take = take
        self._socket = socket.create_server((host, port))
        token = secrets.token_hex(32)
        self._token = token.encode()
        self.address: Final = Address(told or host, self._socket.getsockname()[1], token)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = False
        threading.Thread(target=self._listen, name="eddyline-news", daemon=True).start()

    def close(self) -> None:
        """Hear no more; tasks go on without a listener."""
        with self._lock:
            self._closed = True
            open_ = list(self._open)
        for each in (self._socket, *open_):
            with contextlib.suppress(OSError):  # it may have hung up before
                each.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return  # closed
            with self._lock:
                if self._closed:
                    connection.close()
                    return
                self._open.add(connection)
            threading.Thread(
                target=self._hear, args=(connection,), name="eddyline-news", daemon=True
            ).start()

    def _hear(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            try:
                hello = json.loads(stream.readline(HELLO))
                if hmac.compare_digest(str(hello.get("token", "")).encode(), self._token):
                    self._hear_all(stream)
            except (OSError, ValueError, AttributeError, EOFError, pickle.UnpicklingError):
                return  # whoever speaks like this is none of ours, or has gone
            finally:
                with self._lock:
                    self._open.discard(connection)

    def _hear_all(self, stream: BinaryIO) -> None:
        while line := stream.readline(HELLO):
            length = int(line)
            if not 0 <= length <= LONGEST:
                return
            self._take(pickle.loads(stream.read(length)))  # noqa: S301 - who knows the token is ours
