"""Answers in a folder of a file system that applications share, as HDFS or an object store.

Such file systems have files that are written once, and no locks. So each group of answers is a
file of its own; an answer is kept when its file has its name. This process finds answers in an
index of its own, made of all files when the folder is opened.
"""

from __future__ import annotations

import logging
import math
import re
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

import pyarrow as pa

from eddyline.errors import LedgerError
from eddyline.keeping.answer_files import (
    SPARED,
    FactRow,
    FunctionName,
    read_rows,
    stored_as,
    write_rows,
)
from eddyline.keeping.answer_index import AnswerIndex
from eddyline.keeping.answer_store import KeptEntry, KeptFunction
from eddyline.keeping.folder_of_files import FolderOfFiles

_log = logging.getLogger(__name__)

MOST_FILES: Final = 64
"""Files after which small ones are merged: to open a folder is to fetch each of them."""

_NAME: Final = re.compile(r"answers-[0-9a-f]{32}\.parquet")

_ATTEMPTS: Final = 5
"""Times that a folder is listed, while others merge its files."""

_REST: Final = 60.0
"""Seconds after a failure in which nothing is tried: HDFS takes minutes to say that it is away.

And those that calls wait to be written which were spared, where there are no answers to write.
"""

P = ParamSpec("P")
Result = TypeVar("Result")


class SharedStore:
    """The answers of a folder that applications share; it has the methods of an ``AnswerStore``.

    They may be called from any threads, also at once; the folder is used from one thread, as each
    thread that asks a JVM has a connection of its own. LedgerError where the folder cannot be
    listed, read or written, or has files of a newer Eddyline. Files that are none of ours, empty
    or torn do not count.
    """

    def __init__(self, files: FolderOfFiles, *, now: Callable[[], float] = time.time) -> None:
        """Read all files; 2.4 s for 100,000 answers in 50 of them."""
        self._files: Final = files
        self._now = now
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="eddyline-answers")
        self._index = AnswerIndex()
        self._sizes: dict[str, int] = {}  # of the files that are in the index
        self._foreign: set[str] = set()
        self._merge_above = MOST_FILES
        self._application = uuid.uuid4().bytes
        self._hits: dict[int, tuple[int, float]] = {}  # that this application has spared
        self._untold: set[int] = set()  # functions of which no file says so yet
        self._told_at = -math.inf
        self._failure: tuple[float, LedgerError] | None = None
        try:
            self.refresh()
        except BaseException:
            self.close()
            raise

    @property
    def is_empty(self) -> bool:
        """Whether the folder has no file of answers."""
        return not self._sizes

    def refresh(self) -> None:
        """Read the files that other applications have added; without any, the folder is listed."""
        self._in_thread(self._refresh_unless_away)

    def function(self, name: str, version: str, signature: str, unit: str) -> int:
        """Return the number of a function in this process, new where it was not known."""
        return self._index.function(name, version, signature, unit)

    def find(self, function: int, keys: Sequence[bytes]) -> dict[bytes, KeptEntry]:
        """Return the answers that there are, by key."""
        return self._index.find(function, keys)

    def keep(
        self,
        entries: Iterable[tuple[int, bytes, KeptEntry]],
        spared: Iterable[tuple[int, int, float]] = (),
    ) -> None:
        """Write answers of functions by key; in the folder when this returns, or LedgerError.

        Calls that were spared go along, or have a file of their own once a minute.
        """
        self._in_thread(self._keep, list(entries), list(spared))

    def functions(self) -> list[KeptFunction]:
        """Return what is kept now of those that have an answer, by name."""
        self.refresh()
        return self._index.functions()

    def remove(
        self, functions: Sequence[int], keys: Sequence[bytes] | None, before: float | None
    ) -> int:
        """Remove answers of functions, by key and age where these are given; return how many.

        All files are written anew, as one. It says what was removed: so other applications learn
        it, and one that merges files meanwhile brings nothing back.
        """
        return self._in_thread(self._remove, functions, keys, before)

    def size(self) -> int:
        """Return the bytes of the files."""
        return sum(self._sizes.values())

    def close(self) -> None:
        """Let go of the index; the folder stays."""
        self._thread.shutdown()
        self._index.close()

    def _in_thread(
        self, work: Callable[P, Result], *arguments: P.args, **named: P.kwargs
    ) -> Result:
        return self._thread.submit(work, *arguments, **named).result()

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        try:
            yield
        except LedgerError:
            raise
        except OSError as error:
            message = f"the ledger {self._files.url} cannot be {what}: {error}"
            raise LedgerError(message) from error

    @contextmanager
    def _unless_away(self, what: str) -> Iterator[None]:
        """Try it, or raise for a while what was raised when this failed last."""
        if self._failure is not None and time.monotonic() < self._failure[0] + _REST:
            raise LedgerError(str(self._failure[1]))
        try:
            with self._told(what):
                yield
        except LedgerError as error:
            self._failure = time.monotonic(), error
            raise
        self._failure = None

    def _refresh_unless_away(self) -> None:
        with self._unless_away("read"):
            self._refresh()

    def _refresh(self) -> None:
        with self._told("read"):
            for _ in range(_ATTEMPTS):
                listed = {name for name in self._files.names() if _NAME.fullmatch(name)}
                if self._sizes and not listed:  # somebody has deleted it
                    self._index.clear()
                try:
                    for name in sorted(listed - self._sizes.keys() - self._foreign):
                        self._take(name)
                except FileNotFoundError:  # merged by another, whose file is in the next list
                    continue
                self._sizes = {name: size for name, size in self._sizes.items() if name in listed}
                return
            raise LedgerError(f"the files of {self._files.url} change while they are read")

    def _take(self, name: str) -> None:
        size = self._load(name, self._index)
        if size is None:
            self._foreign.add(name)
        else:
            self._sizes[name] = size

    def _load(self, name: str, index: AnswerIndex) -> int | None:
        """Read a file into an index; return its bytes, None where it is none of ours."""
        with _draft() as local:
            self._files.fetch(name, local)
            try:
                for rows in read_rows(local):
                    index.load(rows)
            except LedgerError as error:
                raise LedgerError(f"{self._files.url}/{name} cannot be read: {error}") from error
            except (pa.ArrowException, ValueError, OSError) as error:
                _log.info("%s/%s is no file of answers: %s", self._files.url, name, error)
                return None
            return local.stat().st_size

    def _put(self, rows: Iterable[FactRow]) -> str:
        name = f"answers-{uuid.uuid4().hex}.parquet"
        with _draft() as local:
            size = write_rows(local, rows)
            self._files.put(local, f".{name}.writing", name)
        self._sizes[name] = size
        return name

    def _keep(
        self,
        entries: Sequence[tuple[int, bytes, KeptEntry]],
        spared: Sequence[tuple[int, int, float]],
    ) -> None:
        for number, more, amount in spared:
            hits, saved = self._hits.get(number, (0, 0.0))
            self._hits[number] = hits + more, saved + amount
            self._untold.add(number)
        names = self._index.names()
        told = [
            FactRow(names[n], SPARED, self._application, b"%d" % hits, self._now(), saved)
            for n, (hits, saved) in self._hits.items()
            if n in self._untold
        ]
        clock = time.monotonic()
        if not entries and clock < self._told_at + _REST:
            self._index.load(told)
            return
        rows = [*told, *(_row(names[number], key, entry) for number, key, entry in entries)]
        with self._unless_away("written"):
            self._put(rows)
        self._told_at = clock
        self._untold.clear()
        self._index.load(rows)
        if len(self._sizes) > self._merge_above:
            self._merge_small()

    def _merge_small(self) -> None:
        """Merge small files, so that a folder has few; where that fails, they stay as they are.

        The smallest half, and all that are not larger than those before them together: so an
        answer is written again as often as the folder has doubled, not with each merger.
        """
        try:
            self._refresh()
            chosen: list[str] = []
            total = 0
            for name, size in sorted(self._sizes.items(), key=lambda item: item[1]):
                if len(chosen) > MOST_FILES // 2 and size > total:
                    break
                chosen.append(name)
                total += size
            self._merge(chosen)
            self._merge_above = MOST_FILES
        except OSError as error:  # as of one who may write and not delete, or who was too late
            _log.info("the files of %s are not merged: %s", self._files.url, error)
            self._merge_above = len(self._sizes) + MOST_FILES

    def _merge(self, names: Sequence[str], further: Sequence[FactRow] = ()) -> None:
        """Put what files say, and further rows, into one, and delete them; OSError."""
        merged = AnswerIndex()
        try:
            for name in names:
                self._load(name, merged)
            merged.load(further)
            self._put(merged.rows())
        finally:
            merged.close()
        self._files.delete(names)
        for name in names:
            self._sizes.pop(name, None)

    def _remove(
        self, functions: Sequence[int], keys: Sequence[bytes] | None, before: float | None
    ) -> int:
        for _ in range(_ATTEMPTS):
            self._refresh()
            rows, removed = self._index.removals(functions, keys, before, self._now())
            if not rows:
                return 0
            try:
                with self._told("written"):
                    self._merge(sorted(self._sizes), rows)
            except LedgerError as error:
                if isinstance(error.__cause__, FileNotFoundError):  # merged by another
                    continue
                raise
            self._index.load(rows)
            return removed
        raise LedgerError(f"the files of {self._files.url} change while they are written")


def _row(function: FunctionName, key: bytes, entry: KeptEntry) -> FactRow:
    what, content = stored_as(entry.answer)
    return FactRow(function, what, key, content, entry.written, entry.cost)


@contextmanager
def _draft() -> Iterator[Path]:
    """Give a name for a file of this machine, which is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="eddyline-answers-") as folder:
        yield Path(folder, "file.parquet")
