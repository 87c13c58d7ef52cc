"""Functions of ours as Spark hands them to a worker, which then waits no longer than it must.

The JVM writes the function to the worker's socket, and the rows behind it. As it sets no
``TCP_NODELAY``, what is left of the rows waits in the kernel until the worker has acknowledged the
function, and that waits 40 ms for an answer that the acknowledgement could travel with. On Linux
a worker can say that it is not to wait: a task over a thousand rows had its first batch 42 ms after
it had its function, and has it 5 to 10 ms after it now.

Executors are not always set up for Eddyline. So what a worker unpickles first needs nothing but
Python, and where the rest cannot be imported it says what to do.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import socket
import stat
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, TypeVar, cast

from pyspark import cloudpickle
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.types import DataType

from eddyline.errors import NobodyReadsError
from eddyline.latest import Latest
from eddyline.tasks.garbage_collection import collect_cheaply

DESCRIPTORS: Final = Path("/proc/self/fd")
"""Where Linux lists the open files of this process."""


LAST_WAIT: Final = 1.0
"""Seconds that a task waits to be ended by a limit that has all it wants: it mostly takes 10 ms."""

FunctionT = TypeVar("FunctionT", bound=Callable[..., object])


def pickled(function: Callable[..., object], result: DataType) -> bytes:
    """Return a function and the type of what it returns, as Spark hands them to a worker."""
    serializer = CloudPickleSerializer()  # type: ignore[no-untyped-call]  # PySpark's own is untyped
    command: bytes = serializer.dumps((sent(function), result))  # type: ignore[no-untyped-call]
    return command


def sent(function: FunctionT) -> FunctionT:
    """Return what stands for a function until it is unpickled: then it is the function itself.

    A worker that cannot import Eddyline, or what it needs, raises a ModuleNotFoundError that says
    what is missing, where, and what to do.
    """
    return cast("FunctionT", _Sent(function))


@dataclass(frozen=True, slots=True)
class _Sent:
    """Stands for a function in a pickle."""

    function: Callable[..., object]

    def __call__(self, *arguments: object) -> object:
        return self.function(*arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return _FIRST, (cloudpickle.dumps(self.function),)  # type: ignore[no-untyped-call]  # PySpark's own


def arrived(content: bytes) -> object:
    """Return the function that was sent."""
    acknowledge()
    show_users_tracebacks()
    collect_cheaply()
    return pickle.loads(content)  # noqa: S301 - the driver has made it


_loaded: Final = Latest[bytes, object](64)


def packed(design: object) -> bytes:
    """Return what :func:`unpacked` makes a frozen object of again."""
    return pickle.dumps(design, protocol=5)


def unpacked(content: bytes) -> Any:  # noqa: ANN401 - whatever was packed
    """Return what was packed, the same object for all tasks of this process: nobody may change it.

    A block takes 50 to 100 us to unpickle, a task of a thousand cheap calls 300.
    """
    design = _loaded.get(content)
    if design is None:
        design = pickle.loads(content)  # noqa: S301 - the driver has made it
        _loaded.put(content, design)
    return design


def _first(content: bytes) -> object:
    """Return the function that was sent; runs where Eddyline may be missing."""
    import sys  # noqa: PLC0415

    try:
        from eddyline.tasks.our_functions import arrived  # noqa: PLC0415

        return arrived(content)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"There is no module {error.name!r} for {sys.executable} on this executor. What "
            "Eddyline runs in eddies needs the packages eddyline, pyarrow, numpy, pandas and "
            "numba in the Python of the executors. Install them there, or send them along, as "
            "docs/clusters.md shows: eddyline alone with "
            "spark.sparkContext.addPyFile('eddyline.zip'), a copy of its wheel, before the "
            "query is adapted; all of them with spark.archives. Where all runs on one machine, "
            "PYSPARK_PYTHON in the environment names the Python of your program, before the "
            "session begins; eddyline.session() sees to that by itself.",
            name=error.name,
        ) from error


# With no importable module named, it is pickled with its code, as functions of a script are, and
# not by its name.
_FIRST: Final = types.FunctionType(_first.__code__, {"__name__": "__main__"}, "first")
_FIRST.__module__ = "__main__"


def show_users_tracebacks() -> None:
    """Let this worker drop our frames from the tracebacks from which PySpark drops its own.

    What a user's function raises is told with the user's frames alone, as without eddies. Where
    there are none of these, all stay.
    """
    # The worker of PySpark 3.5 has a name of its own for it, and is the program without a daemon.
    for name in ("pyspark.util", "pyspark.worker", "__main__"):
        module: Any = sys.modules.get(name)
        simplify = getattr(module, "try_simplify_traceback", None)
        if simplify is not None and not isinstance(simplify, _Simplify):
            module.try_simplify_traceback = _Simplify(simplify)


@dataclass(frozen=True, slots=True)
class _Simplify:
    """Simplifies tracebacks as PySpark does, and leaves our frames out, too."""

    by_pyspark: Callable[[TracebackType], TracebackType | None]

    def __call__(self, trace: TracebackType) -> TracebackType | None:
        simplified = self.by_pyspark(trace)
        users = simplified
        while users is not None and _on_the_way(users):
            users = users.tb_next
        return users or simplified


def _on_the_way(trace: TracebackType) -> bool:
    package, _, _ = trace.tb_frame.f_globals.get("__name__", "").partition(".")
    return package in {"eddyline", "pyspark"}


@contextlib.contextmanager
def ending_quietly() -> Iterator[None]:
    """End this worker without a word where nobody reads its results any more.

    Spark ends it anyway. PySpark's own way out would try to send what is left first, and print a
    traceback of that.
    """
    try:
        yield
    except NobodyReadsError:
        os._exit(0)


def send_results() -> None:
    """Send what this task has yielded so far; to be called where it is asked for more.

    PySpark's worker writes results to a buffer of 64 KB, and sends it when it is full, or at the
    end. A reader who needs only the first rows of a slow task would wait for all of them. Does
    nothing where the worker's file is not found. NobodyReadsError where the JVM has ended the task.
    """
    file = _results()
    if file is not None:
        try:
            file.flush()
        except ConnectionError as error:
            raise NobodyReadsError from error


def send_last_results() -> None:
    """Send results likewise when a limit above has enough, and wait for the JVM to say so.

    It does so by ending the task, and anything written then would be reported as a broken pipe.
    NobodyReadsError when it has; goes on where it reads on.
    """
    send_results()
    file = _results()
    if file is None or not hasattr(select, "poll"):
        return
    poll = select.poll()
    poll.register(file.fileno(), getattr(select, "POLLRDHUP", 0))  # other ends are always reported
    if poll.poll(1000 * LAST_WAIT):
        raise NobodyReadsError


def _results() -> IO[bytes] | None:
    """Return the file to which PySpark's worker writes results; None where it is not found."""
    frame = sys._getframe()  # noqa: SLF001 - documented, though not for every Python
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_filename.endswith("worker.py"):
            file: IO[bytes] | None = frame.f_locals.get("outfile")
            if file is not None:
                return file
    return None


def acknowledge() -> None:
    """Acknowledge at once what has come to this process by TCP; does nothing but on Linux."""
    option = getattr(socket, "TCP_QUICKACK", None)
    if option is None or not DESCRIPTORS.is_dir():
        return
    for descriptor in map(int, os.listdir(DESCRIPTORS)):  # noqa: PTH208 - names are all it needs
        with contextlib.suppress(OSError):  # closed since, as is that of the list; no TCP socket
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                with socket.socket(fileno=os.dup(descriptor)) as connection:
                    connection.setsockopt(socket.IPPROTO_TCP, option, 1)
