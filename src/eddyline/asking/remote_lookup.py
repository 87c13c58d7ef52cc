"""Lookups of a task, which a server makes for it: see :mod:`eddyline.asking.lookup_server`."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from eddyline.asking.beginning import TaskPlace
from eddyline.asking.wire import Address, packed
from eddyline.engine.callers import Agenda, CallDone, Outbox, PlannedCall, checked_width
from eddyline.errors import LookupFailedError, ServerGoneError

CONNECT_SECONDS: Final = 20.0


class RemoteLookup:
    """Has calls made by a server, one binding each, and keeps what they return.

    A thread of its own reads the answers. ``width`` is how many calls the server makes at a
    time for all tasks; as many may be asked for by each.
    """

    def __init__(
        self,
        address: Address,
        job: str,
        method: str,
        agenda: Agenda,
        wanted: Sequence[tuple[int, pa.DataType]],
        *,
        width: int,
        asked: Sequence[int] = (),
        exact: bool = False,
        task: TaskPlace | None = None,
    ) -> None:
        """Connect; ServerGoneError where nobody is there.

        ``wanted`` are the columns of the table that calls return, and their types here. Those at
        the positions ``asked`` are what was asked for instead, one for each bind column. Without
        rows that have their key in another spelling than it was asked for, if they are to be
        ``exact``. ``task`` is where this is, if the others of its stage are to be waited for.
        """
        self._wanted = tuple(wanted)
        self._places = tuple(asked)
        self.width = checked_width(width)
        self.agenda = agenda
        self._outbox = Outbox(agenda)
        self._lock = threading.Lock()
        self._asked: dict[int, PlannedCall] = {}
        self._count = 0
        self._resting = False
        self._gone: ServerGoneError | None = None
        try:
            self._socket = socket.create_connection(
                (address.host, address.port), timeout=CONNECT_SECONDS
            )
        except OSError as error:
            raise ServerGoneError(
                f"lookups are made where the driver is, at {address.host}:{address.port}, which "
                f"cannot be reached from here: {error}"
            ) from error
        self._socket.settimeout(None)
        hello = {
            "token": address.token,
            "job": job,
            "method": method,
            "exact": exact,
            "task": task,
        }
        self._socket.sendall(json.dumps(hello).encode() + b"\n")
        self._reader = threading.Thread(target=self._read, name="eddyline-answers", daemon=True)
        self._reader.start()

    def attend(self, module: int) -> None:
        """Call for a module of this number."""
        self._outbox.attend(module)

    def submit(self, calls: Sequence[PlannedCall]) -> None:
        """Ask the server to make calls."""
        bindings = [call.arguments[0] for call in calls]
        columns = [pa.concat_arrays(column) for column in zip(*bindings, strict=True)]
        payload = packed(pa.table(columns, names=[f"k{n}" for n in range(len(columns))]))
        with self._lock:
            gone = self._gone
            numbers = range(self._count, self._count + len(calls))
            self._count += len(calls)
            if gone is None:
                self._asked.update(zip(numbers, calls, strict=True))
        if gone is not None:
            for call in calls:
                self._outbox.put(CallDone(call.key, None, gone, 0.0))
            return
        self._resting = False
        header = {"calls": list(numbers), "bytes": len(payload)}
        try:
            self._socket.sendall(json.dumps(header).encode() + b"\n" + payload)
        except OSError as error:
            self._end(error)

    def rest(self) -> None:
        """Say that nothing more will be asked for before there are answers."""
        if self._resting or self._gone is not None:
            return
        self._resting = True
        try:
            self._socket.sendall(b'{"rests": true}\n')
        except OSError as error:
            self._end(error)

    def collect(self) -> list[CallDone]:
        """Return the calls that were done since the last time."""
        return self._outbox.empty()

    def close(self) -> None:
        """Hang up."""
        with contextlib.suppress(OSError):  # the server may have hung up before
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join()
        self._socket.close()

    def _read(self) -> None:
        """Take answers until somebody hangs up."""
        try:
            with self._socket.makefile("rb") as stream:
                while line := stream.readline():
                    header = json.loads(line)
                    payload = stream.read(header["bytes"])
                    self._take(header, payload)
        except (OSError, ValueError, pa.ArrowException) as error:
            self._end(error)
        else:
            self._end(None)

    def _take(self, header: dict[str, object], payload: bytes) -> None:
        calls = header["calls"]
        if not isinstance(calls, list):
            raise ValueError(f"{calls!r} are no calls")  # noqa: TRY004 - a value that was read
        with self._lock:
            answered = [self._asked.pop(call) for call in calls]
        if "error" in header:
            for call in answered:
                self._outbox.put(CallDone(call.key, None, LookupFailedError(header["error"]), 0.0))
            return
        table = pa.ipc.open_stream(payload).read_all()
        columns = [
            pa.concat_arrays(chunks).cast(kind) if chunks else pa.array([], kind)
            for chunks, kind in (
                (table.column(column).chunks, kind) for column, kind in self._wanted
            )
        ]
        start = 0
        sizes: Sequence[int] = header["rows"]  # type: ignore[assignment]  # as read from JSON
        seconds: Sequence[float] = header["seconds"]  # type: ignore[assignment]  # likewise
        for place, values in zip(self._places, _asked_for(answered, sizes), strict=False):
            columns[place] = values.cast(self._wanted[place][1])
        for call, size, took in zip(answered, sizes, seconds, strict=True):
            value = [column.slice(start, size) for column in columns]
            start += size
            self._outbox.put(CallDone(call.key, value, None, took))

    def _end(self, error: Exception | None) -> None:
        """Answer what is still asked for: nobody else will."""
        gone = ServerGoneError("the driver has gone, which makes the lookups")
        gone.__cause__ = error
        with self._lock:
            self._gone = gone
            left, self._asked = list(self._asked.values()), {}
        for call in left:
            self._outbox.put(CallDone(call.key, None, gone, 0.0))


def _asked_for(calls: Sequence[PlannedCall], sizes: Sequence[int]) -> list[pa.Array]:
    """Return for each bind column what calls have asked for, as often as each has rows."""
    bindings: list[Sequence[pa.Array]] = [call.arguments[0] for call in calls]  # type: ignore[misc]  # one binding each
    places = pa.array(np.repeat(np.arange(len(calls)), sizes))
    return [pa.concat_arrays(column).take(places) for column in zip(*bindings, strict=True)]
