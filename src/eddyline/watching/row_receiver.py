"""Receives the rows of scans from Spark's tasks, wherever they run."""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
import threading
from collections.abc import Sequence
from typing import BinaryIO

import pyarrow as pa

from eddyline.asking.wire import Address
from eddyline.tasks.send_rows import END, THERE_ALREADY, WANTED
from eddyline.watching.arriving import Arriving


class RowReceiver:
    """Listens for tasks, each of which sends one partition of one scan.

    A partition counts once, however often Spark runs it: a second attempt waits for the first,
    and is sent away where that has ended. Where the first breaks off after it has given rows, the
    scan fails: these may be in results already.
    """

    def __init__(self, scans: Sequence[Arriving], host: str, port: int = 0) -> None:
        """Begin to listen at once, on any free port by default; OSError where that fails."""
        self._scans = tuple(scans)
        self._socket = socket.create_server((host, port))
        token = secrets.token_hex(32)
        self._token = token.encode()
        self.address = Address(host, self._socket.getsockname()[1], token)
        self._locks: dict[tuple[int, int], threading.Lock] = {}
        self._done: set[tuple[int, int]] = set()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = False
        threading.Thread(target=self._listen, name="eddyline-rows", daemon=True).start()

    def close(self) -> None:
        """Take no more; tasks that send fail."""
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
                target=self._receive, args=(connection,), name="eddyline-rows", daemon=True
            ).start()

    def _receive(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            try:
                hello = json.loads(stream.readline())
                if not hmac.compare_digest(str(hello.get("token", "")).encode(), self._token):
                    return
                self._take(int(hello["scan"]), int(hello["partition"]), connection, stream)
            except (OSError, ValueError, KeyError, pa.ArrowException):
                return  # whoever speaks like this is none of ours, or has gone
            finally:
                with self._lock:
                    self._open.discard(connection)

    def _take(self, scan: int, partition: int, connection: socket.socket, stream: BinaryIO) -> None:
        with self._lock:
            one_at_a_time = self._locks.setdefault((scan, partition), threading.Lock())
        with one_at_a_time:
            if (scan, partition) in self._done:
                connection.sendall(THERE_ALREADY)
                return
            connection.sendall(WANTED)
            arriving = self._scans[scan]
            if not _received(stream, partition, arriving):
                if not self._closed:
                    arriving.broke_off(partition)
                return
            self._done.add((scan, partition))
            arriving.end_partition(partition)
            connection.sendall(WANTED)


def _received(stream: BinaryIO, partition: int, arriving: Arriving) -> bool:
    """Take the rows of a partition; tell whether these were all."""
    try:
        with pa.ipc.open_stream(stream) as reader:
            for batch in reader:
                arriving.put(partition, batch)
        return stream.read(1) == END
    except (OSError, pa.ArrowException):
        return False
