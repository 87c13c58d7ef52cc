"""What a task asks of the driver: rows of lookup tables, and values of functions.

The server is :mod:`eddyline.asking.lookup_server`.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from eddyline.asking.driver_channel import Address, connected
from eddyline.asking.filling import TaskPlace
from eddyline.asking.wire import ERROR, PRICE, STOP, STOPS, VALUE, frozen, packed
from eddyline.engine.callers import Agenda, CallDone, CallKey, Outbox, PlannedCall, checked_width
from eddyline.errors import FunctionFailedError, LookupFailedError, ServerGoneError
from eddyline.expressions.vector import Vector

CONNECT_SECONDS: Final = 20.0

WantedColumns: TypeAlias = Sequence[tuple[int, pa.DataType]]
"""Columns of what a method returns, and their types here."""

Question = TypeVar("Question")


class Answered(NamedTuple):
    """The rows of several keys, in their order: how many each has, and what it took."""

    columns: list[pa.Array]
    sizes: Sequence[int]
    seconds: Sequence[float]


class RemoteMethod(Generic[Question]):
    """A connection to the server, which asks one method of one job.

    A thread of its own reads the answers, and hands them to ``take`` with the keys of their
    questions; each question is answered once, with an error where nobody else will answer it.
    """

    def __init__(
        self,
        address: Address,
        job: str,
        method: str,
        wanted: WantedColumns,
        take: Callable[[Sequence[Question], Answered | Exception], None],
        *,
        exact: bool = False,
        task: TaskPlace | None = None,
    ) -> None:
        """Connect; ServerGoneError where nobody is there.

        Without rows that have their key in another spelling than it was asked for, if they are to
        be ``exact``. ``task`` is where this is, if the others of its stage are to be waited for.
        """
        self._wanted = tuple(wanted)
        self._take = take
        self._lock = threading.Lock()
        self._asked: dict[int, Question] = {}
        self._count = 0
        self._resting = False
        self._gone: ServerGoneError | None = None
        hello = {"job": job, "method": method, "exact": exact, "task": task}
        try:
            self._socket = connected(address, hello, CONNECT_SECONDS)
        except OSError as error:
            raise ServerGoneError(
                f"lookups are made where the driver is, at {address.host}:{address.port}, which "
                f"cannot be reached from here: {error}"
            ) from error
        self._socket.settimeout(None)
        self._reader = threading.Thread(target=self._read, name="eddyline-answers", daemon=True)
        self._reader.start()

    def ask(self, questions: Sequence[Question], keys: Sequence[pa.Array]) -> None:
        """Ask for keys, one a question, which are columns."""
        payload = packed(pa.table(keys, names=[f"k{n}" for n in range(len(keys))]))
        with self._lock:
            gone = self._gone
            numbers = range(self._count, self._count + len(questions))
            self._count += len(questions)
            if gone is None:
                self._asked.update(zip(numbers, questions, strict=True))
        if gone is not None:
            self._take(questions, gone)
            return
        self._resting = False
        self._send({"calls": list(numbers), "bytes": len(payload)}, payload)

    def rest(self) -> None:
        """Say that this asks for nothing more before there are answers."""
        if not self._resting and self._gone is None:
            self._resting = True
            self._send({"rests": True})

    def close(self) -> None:
        """Hang up."""
        with contextlib.suppress(OSError):  # the server may have hung up before
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join()
        self._socket.close()

    def _send(self, header: dict[str, object], payload: bytes = b"") -> None:
        try:
            self._socket.sendall(json.dumps(header).encode() + b"\n" + payload)
        except OSError as error:
            self._end(error)

    def _read(self) -> None:
        """Take answers until somebody hangs up."""
        try:
            with self._socket.makefile("rb") as stream:
                while line := stream.readline():
                    header = json.loads(line)
                    self._hand_on(header, stream.read(header["bytes"]))
        except (OSError, ValueError, pa.ArrowException) as error:
            self._end(error)
        else:
            self._end(None)

    def _hand_on(self, header: dict[str, object], payload: bytes) -> None:
        calls = header["calls"]
        if not isinstance(calls, list):
            raise ValueError(f"{calls!r} are no calls")  # noqa: TRY004 - a value that was read
        with self._lock:
            questions = [self._asked.pop(call) for call in calls]
        if "error" in header:
            self._take(questions, LookupFailedError(header["error"]))
            return
        table = pa.ipc.open_stream(payload).read_all()
        columns = [
            pa.concat_arrays(chunks).cast(kind) if chunks else pa.array([], kind)
            for chunks, kind in (
                (table.column(column).chunks, kind) for column, kind in self._wanted
            )
        ]
        self._take(questions, Answered(columns, header["rows"], header["seconds"]))  # type: ignore[arg-type]  # as read from JSON

    def _end(self, error: Exception | None) -> None:
        """Answer the open questions: nobody else will."""
        gone = ServerGoneError("the driver has gone, which makes the lookups")
        gone.__cause__ = error
        with self._lock:
            self._gone = gone
            left, self._asked = list(self._asked.values()), {}
        self._take(left, gone)


class RemoteLookup:
    """Has the rows of a table looked up, one binding a call, and keeps what comes.

    ``width`` is how many calls the server makes at a time for all tasks; as many may be asked for
    by each.
    """

    def __init__(
        self,
        address: Address,
        job: str,
        method: str,
        agenda: Agenda,
        wanted: WantedColumns,
        *,
        width: int,
        asked: Sequence[int] = (),
        exact: bool = False,
        task: TaskPlace | None = None,
    ) -> None:
        """Connect; ServerGoneError where nobody is there.

        The columns at the positions ``asked`` are what was asked for instead of what comes, one for
        each bind column. For all else see :class:`RemoteMethod`.
        """
        self._wanted = tuple(wanted)
        self._places = tuple(asked)
        self.width = checked_width(width)
        self.agenda = agenda
        self._outbox = Outbox(agenda)
        self._remote = RemoteMethod[PlannedCall](
            address, job, method, wanted, self._take, exact=exact, task=task
        )
        self.rest = self._remote.rest
        self.close = self._remote.close

    def attend(self, module: int) -> None:
        """Call for a module of this number."""
        self._outbox.attend(module)

    def submit(self, calls: Sequence[PlannedCall]) -> None:
        """Ask the server to make calls."""
        self._remote.ask(calls, [pa.concat_arrays(column) for column in _bindings(calls)])

    def collect(self) -> list[CallDone]:
        """Return the calls that were done since the last time."""
        return self._outbox.empty()

    def _take(self, calls: Sequence[PlannedCall], answer: Answered | Exception) -> None:
        if isinstance(answer, Exception):
            for call in calls:
                self._outbox.put(CallDone(call.key, None, answer, 0.0))
            return
        columns = answer.columns
        if self._places:
            of_rows = pa.array(np.repeat(np.arange(len(calls)), answer.sizes))
            for place, column in zip(self._places, _bindings(calls), strict=True):
                kind = self._wanted[place][1]
                columns[place] = pa.concat_arrays(column).take(of_rows).cast(kind)
        start = 0
        for call, size, took in zip(calls, answer.sizes, answer.seconds, strict=True):
            value = [column.slice(start, size) for column in columns]
            start += size
            self._outbox.put(CallDone(call.key, value, None, took))


def _bindings(calls: Sequence[PlannedCall]) -> list[tuple[pa.Array, ...]]:
    """Return for each bind column what calls ask for, an array of one value each."""
    bindings: list[Sequence[pa.Array]] = [call.arguments[0] for call in calls]  # type: ignore[misc]  # one binding each
    return list(zip(*bindings, strict=True))


class _Known(NamedTuple):
    value: object
    error: Exception | None


class RemoteFunction:
    """A function that answers later, for all places of a task's block in which it stands.

    The value for known arguments is not asked for again.
    """

    vectorized = False

    def __init__(
        self,
        address: Address,
        job: str,
        method: str,
        agenda: Agenda,
        types: Sequence[pa.DataType],
        returns: pa.DataType,
        *,
        width: int,
        worth: float = 0.0,
    ) -> None:
        """Connect; ServerGoneError where nobody is there.

        ``types`` are those of the arguments. ``worth`` is what a unit of money counts as, in
        seconds.
        """
        self.agenda = agenda
        self.width = checked_width(width)
        self._types = tuple(types)
        self._worth = worth
        self._lock = threading.Lock()
        self._known: dict[object, _Known] = {}
        self._waiting: dict[object, list[tuple[Outbox, CallKey]]] = {}
        texts = [(ERROR, pa.string()), (STOP, pa.string())]
        self._remote = RemoteMethod[object](
            address, job, method, [(VALUE, returns), *texts, (PRICE, pa.float64())], self._take
        )
        self.close = self._remote.close

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        """Raise TypeError: a caller would have to wait."""
        raise TypeError(f"cannot be called on {rows} rows of {len(columns)} columns: answers later")

    def connect(self, agenda: Agenda) -> RemoteFunctionCaller:
        """Return a caller for one module."""
        return RemoteFunctionCaller(self, agenda)

    def ask(self, calls: Sequence[PlannedCall], outbox: Outbox) -> None:
        """Have calls made that are not known; all answers go into an outbox."""
        known: list[CallDone] = []
        new: dict[object, tuple[object, ...]] = {}
        with self._lock:
            for call in calls:
                key = frozen(call.arguments)
                already = self._known.get(key)
                if already is not None:
                    known.append(CallDone(call.key, already.value, already.error, 0.0))
                    continue
                if key not in self._waiting:
                    new[key] = call.arguments
                self._waiting.setdefault(key, []).append((outbox, call.key))
        for done in known:
            outbox.put(done)
        if new:
            columns = zip(zip(*new.values(), strict=True), self._types, strict=True)
            self._remote.ask(list(new), [pa.array(values, kind) for values, kind in columns])

    def _take(self, keys: Sequence[object], answer: Answered | Exception) -> None:
        for place, key in enumerate(keys):
            seconds = price = 0.0
            if isinstance(answer, Exception):
                known = _Known(None, answer)
            else:
                known = _known(answer.columns, place)
                seconds = answer.seconds[place]
                # The driver knew the value already where it took no time.
                price = self._worth * answer.columns[PRICE][place].as_py() if seconds else 0.0
            with self._lock:
                self._known[key] = known
                waiting = self._waiting.pop(key, [])
            for outbox, call in waiting:
                outbox.put(CallDone(call, known.value, known.error, seconds, price))
                seconds = price = 0.0  # the others have waited, and cost nothing


class RemoteFunctionCaller:
    """Has the calls of one module made."""

    def __init__(self, function: RemoteFunction, agenda: Agenda) -> None:
        """Say in ``agenda`` that there are answers."""
        self.agenda = agenda
        self.width = function.width
        self._function = function
        self._outbox = Outbox(agenda)

    def attend(self, module: int) -> None:
        """Call for a module of this number."""
        self._outbox.attend(module)

    def submit(self, calls: Sequence[PlannedCall]) -> None:
        """Have calls made."""
        self._function.ask(calls, self._outbox)

    def collect(self) -> list[CallDone]:
        """Return what has come; raises what ends the job, as a budget that is spent."""
        collected = self._outbox.empty()
        for done in collected:
            if done.error is not None and not isinstance(done.error, FunctionFailedError):
                raise done.error
        return collected


def _known(columns: Sequence[pa.Array], place: int) -> _Known:
    """Return a value, or why there is none."""
    text = columns[ERROR][place].as_py()
    if text is None:
        return _Known(columns[VALUE][place], None)
    stop = columns[STOP][place].as_py()
    kind = STOPS[stop] if stop is not None else FunctionFailedError
    return _Known(None, kind(text))
