"""PySpark's daemon, which has imported what workers need before it forks the first of them.

A worker lives until it has had nothing to do for a minute; what it imports, its successor imports
again. Of two workers that begin at once each needs 0.7 s for pandas, pyarrow and the eddy. Forked
from this daemon they have all of it, and it is frozen before the first garbage collection.

And PySpark itself: Spark puts the archive of it that comes with the package before the package on
the path, and Python compiles what it imports from an archive each time: 0.9 s instead of 0.2.

:func:`~eddyline.host.session.session` names this module to Spark.
"""

from __future__ import annotations

import gc
import importlib
import socket
import struct
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FunctionType
from typing import Any, BinaryIO, Final

from eddyline.tasks.garbage_collection import collect_cheaply

ARCHIVE: Final = Path("pyspark", "python", "lib", "pyspark.zip")
"""Where PySpark's package keeps the archive of itself, from the folder that the package is in."""

NEEDED: Final = (
    "pyspark.worker",
    "pyspark.sql.pandas.serializers",
    "pandas",
    "pyarrow",
    "eddyline.tasks.filter_task",
    "eddyline.tasks.join_task",
)
"""What workers import. A join's kernels are not among it: only joins need them."""


_EXCEPTION: Final = -2
"""What announces an exception to Spark, in place of a length."""


def without_archive(paths: list[str]) -> list[str]:
    """Return ``sys.path`` without the archive of the PySpark package that is on it.

    An archive stays where there is no such package, or where another comes first.

    >>> site = str(Path(importlib.import_module("pyspark").__file__).parents[1])
    >>> own, other = str(Path(site, ARCHIVE)), str(Path("elsewhere", ARCHIVE))
    >>> without_archive([own, site]) == [site]
    True
    >>> without_archive([own]) == [own], without_archive([other, site]) == [other, site]
    (True, True)
    """
    folders = (Path(path) for path in paths)
    package = next(
        (folder for folder in folders if (folder / "pyspark" / "__init__.py").exists()), None
    )
    if package is None:
        return paths
    archive = (package / ARCHIVE).resolve()  # one of the two may lead over a link
    return [path for path in paths if Path(path).resolve() != archive]


def leave_archive_out() -> None:
    """Take the archive off the path, and let go of what reads it.

    It would read the archive's table of contents again in each new worker, where Spark says that
    paths have changed: 5 to 10 ms.

    >>> site = Path(importlib.import_module("pyspark").__file__).parents[1]
    >>> sys.path.insert(0, str(site / ARCHIVE))
    >>> sys.path_importer_cache[str(site / ARCHIVE)] = None
    >>> leave_archive_out()
    >>> str(site / ARCHIVE) in sys.path, str(site / ARCHIVE) in sys.path_importer_cache
    (False, False)
    """
    kept = without_archive(sys.path)
    for path in set(sys.path).difference(kept):
        sys.path_importer_cache.pop(path, None)
    sys.path[:] = kept


def prepare() -> None:
    """Import what workers need, and keep it out of their garbage collections.

    A module that cannot be imported is left for the worker that needs it to fail on.
    """
    for name in NEEDED:
        with suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


def unless_spark_hangs_up(worker: Callable[..., int]) -> Callable[..., int]:
    """Return a worker that ends without a word where Spark no longer listens.

    A LIMIT has its rows then. PySpark's own writes a traceback into the middle of what a terminal
    shows. It counts as a function of PySpark's: else Spark's log of workers would take it for the
    user's function that has written each line, as the lowest on the stack except PySpark's.
    """

    def working(connection: socket.socket, *others: object) -> int:
        try:
            return worker(connection, *others)
        except ConnectionError:
            return 1

    known = globals() | {"__name__": "pyspark.daemon"}
    return FunctionType(working.__code__, known, closure=working.__closure__)


def writing_any_text(handle: Callable[..., None]) -> Callable[..., None]:
    """Return what writes an exception for Spark, whatever its text is.

    PySpark's own announces a text, and fails where that is no valid UTF-8, as with half of a
    surrogate pair in it: then the JVM waits for it, and the task for the JVM, for ever. It is
    written escaped.
    """

    def handling(error: BaseException, outfile: BinaryIO, *others: object) -> None:
        text = "".join(traceback.format_exception(error))
        try:
            text.encode()
        except UnicodeEncodeError:
            escaped = text.encode(errors="backslashreplace")
            with suppress(OSError):  # as where Spark no longer listens
                outfile.write(struct.pack("!ii", _EXCEPTION, len(escaped)) + escaped)
        else:
            handle(error, outfile, *others)

    return handling


def have_any_text_written(worker: Any) -> None:  # noqa: ANN401 - a module of PySpark's
    """Have PySpark's worker write exceptions so; that of 3.5 has no function of its own for it."""
    if hasattr(worker, "handle_worker_exception"):
        worker.handle_worker_exception = writing_any_text(worker.handle_worker_exception)


if __name__ == "__main__":
    leave_archive_out()
    prepare()
    from pyspark import daemon, worker

    have_any_text_written(worker)
    collect_cheaply()
    daemon.worker = unless_spark_hangs_up(daemon.worker)
    daemon.manager()
