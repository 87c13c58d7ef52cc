"""The answers of one function or lookup table, as whoever asks for them finds and keeps them."""

from __future__ import annotations

import asyncio
import errno
import logging
import math
import sqlite3
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa

from eddyline.errors import LedgerError
from eddyline.keeping.answer_store import AnswerStore, KeptEntry, Stored
from eddyline.keeping.folder_of_files import FolderOfFiles
from eddyline.keeping.function_version import version_of
from eddyline.keeping.keep import Keep
from eddyline.keeping.key_bytes import key_of
from eddyline.keeping.shared_store import SharedStore

_log = logging.getLogger(__name__)

now: Final = time.time
"""The seconds since 1970."""

_PLAIN: Final = (pa.string(), pa.int8(), pa.int16(), pa.int32(), pa.int64())
"""Types whose values SQLite stores as they are; all others are stored as Arrow has them."""


_REST: Final = 60.0
"""Seconds in which a ledger that cannot be opened or written is left alone: HDFS takes minutes to
say so."""


@dataclass(slots=True)
class _Write:
    """Answers to be written, what was spared meanwhile, and who waits for that."""

    entries: list[tuple[int, bytes, KeptEntry]] = field(default_factory=list)
    hits: Counter[int] = field(default_factory=Counter)
    saved: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))
    done: asyncio.Future[LedgerError | None] | None = None


class OpenLedger:
    """A ledger that this process uses: answers are found at once, and written in groups.

    While one group is written, what comes meanwhile makes the next: a commit has to reach the disk,
    however many answers it has. For the event loop that asks.
    """

    def __init__(self, store: AnswerStore | SharedStore) -> None:
        """Find and write answers there."""
        self.store: Final = store
        self._next = _Write()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._writer: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="eddyline-ledger")
        self._warned = False
        self._failed: LedgerError | None = None
        self._again_at = 0.0

    async def keep(self, entries: Iterable[tuple[int, bytes, KeptEntry]]) -> None:
        """Write answers; they are on disk when this returns.

        Where they cannot be written, a warning says so once; the query has its answers all the
        same. Where another application holds the ledger it is tried again after a minute.
        """
        self._next.entries.extend(entries)
        error = await asyncio.shield(self._written())
        if error is not None and not self._warned:
            self._warned = True
            _log.warning("Answers are not kept any more: %s", error)

    def spared(self, function: int, hits: int, saved: float) -> None:
        """Take note of calls that were not made, in the event loop."""
        self._next.hits[function] += hits
        self._next.saved[function] += saved
        self._written()

    def _written(self) -> asyncio.Future[LedgerError | None]:
        """Return what is done when all that has come is written."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # that of a context that was stopped, with who waited there
            self._loop, self._writer = loop, None
            self._next.done = None
        if self._next.done is None:
            self._next.done = loop.create_future()
        if self._writer is None or self._writer.done():
            self._writer = loop.create_task(self._write(loop))
        return self._next.done

    async def _write(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._loop is loop and self._next.done is not None:
            group, self._next = self._next, _Write()
            outcome: LedgerError | None = LedgerError("the application ends")
            if self._failed is not None and time.monotonic() < self._again_at:
                if group.done is not None:
                    group.done.set_result(self._failed)
                continue
            try:
                spared = [(n, hits, group.saved[n]) for n, hits in group.hits.items()]
                await loop.run_in_executor(self._thread, self.store.keep, group.entries, spared)
            except LedgerError as error:
                outcome = error
            except Exception as error:  # noqa: BLE001 - nobody may wait for ever
                outcome = LedgerError(f"{type(error).__name__}: {error}")
            else:
                outcome = None
                self._failed = None
            finally:
                if outcome is not None and _is_held(outcome):
                    self._failed, self._again_at = outcome, time.monotonic() + _REST
                if group.done is not None and not group.done.done():
                    group.done.set_result(outcome)

    def refresh(self) -> None:
        """Find what other applications have added; a warning says once where that fails."""
        if not isinstance(self.store, SharedStore):  # in SQLite it is found as it is
            return
        try:
            self.store.refresh()
        except LedgerError as error:
            if not self._warned:
                self._warned = True
                _log.warning("Answers of other applications are not found: %s", error)


_opened: Final[dict[str, OpenLedger]] = {}
_opening: Final = threading.Lock()

_closed: Final[dict[str, tuple[float, LedgerError]]] = {}
"""Folders that could not be opened, when, and why; a warning was given."""


def opened(folder: str, files: FolderOfFiles | None = None) -> OpenLedger:
    """Return the ledger of a folder, which is opened once in a process; LedgerError.

    ``files`` is the folder where it is none of this machine.
    """
    with _opening:
        ledger = _opened.get(folder)
        if ledger is not None and isinstance(ledger.store, AnswerStore):
            ledger = ledger if ledger.store.path.exists() else None
        if ledger is None:
            store = AnswerStore(Path(folder)) if files is None else _shared(folder, files)
            ledger = _opened[folder] = OpenLedger(store)
            return ledger
    ledger.refresh()
    return ledger


def _shared(folder: str, files: FolderOfFiles) -> SharedStore:
    when, error = _closed.get(folder, (-math.inf, None))
    if error is not None and time.monotonic() < when + _REST:
        raise LedgerError(str(error))
    try:
        store = SharedStore(files)
    except LedgerError as failure:
        if error is None:
            _log.warning("Answers are not kept: %s", failure)
        _closed[folder] = time.monotonic(), failure
        raise
    _closed.pop(folder, None)
    return store


def _is_held(error: LedgerError) -> bool:
    """Whether another application has held the ledger for too long: each try takes seconds."""
    held = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
    return getattr(error.__cause__, "sqlite_errorcode", None) in held


def _for_want_of_room(error: LedgerError) -> bool:
    cause = error.__cause__
    full = getattr(cause, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
    return full or (isinstance(cause, OSError) and cause.errno in {errno.ENOSPC, errno.EDQUOT})


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """A key that was asked for, with its answer and what that has cost."""

    values: Sequence[object]
    rows: pa.RecordBatch
    cost: float = 0.0


class FoundAnswer(NamedTuple):
    """The answer to a key that is kept, and what it has cost."""

    rows: pa.RecordBatch
    cost: float


class KeptAnswers:
    """The answers of one function, or lookup table, in a ledger.

    An answer is a batch of ``schema``. Those that are older than ``valid`` seconds are not
    found; one from the future, as a clock tells that was set back, is.
    """

    def __init__(
        self,
        ledger: OpenLedger,
        function: int,
        schema: pa.Schema,
        valid: float | None,
        *,
        plain: bool,
    ) -> None:
        """Answers are ``plain`` where each is one row of one column, as a function's are."""
        self._ledger = ledger
        self._function = function
        self._schema = schema
        self._valid = valid
        self._plain = plain and schema.types[0] in _PLAIN
        self._warned = False

    def refresh(self) -> None:
        """Find what other applications have added, for another query."""
        self._ledger.refresh()

    def find(self, keys: Sequence[Sequence[object]]) -> list[FoundAnswer | None]:
        """Return for each key its answer, or None; nothing is found in a ledger that is damaged."""
        try:
            return self._found(keys)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a file: it is asked then
            self._warn("Answers of before are not found", error)
            return [None] * len(keys)

    def _found(self, keys: Sequence[Sequence[object]]) -> list[FoundAnswer | None]:
        names = list(map(key_of, keys))
        found = self._ledger.store.find(self._function, names)
        oldest = None if self._valid is None else now() - self._valid
        answers: list[FoundAnswer | None] = []
        hits, saved = 0, 0.0
        for name in names:
            entry = found.get(name)
            if entry is None or (oldest is not None and entry.written < oldest):
                answers.append(None)
                continue
            answers.append(FoundAnswer(self._unpacked(entry.answer), entry.cost))
            hits += 1
            saved += entry.cost
        if hits:
            self._ledger.spared(self._function, hits, saved)
        return answers

    def known(self, keys: Sequence[Sequence[object]]) -> list[bool]:
        """Return which keys have an answer; nothing counts as spared by that. From any thread."""
        try:
            names = list(map(key_of, keys))
            found = self._ledger.store.find(self._function, names)
        except Exception as error:  # noqa: BLE001 - likewise
            self._warn("Answers of before are not found", error)
            return [False] * len(keys)
        oldest = -math.inf if self._valid is None else now() - self._valid
        return [name in found and found[name].written >= oldest for name in names]

    async def keep(self, answers: Sequence[GivenAnswer]) -> None:
        """Write answers; they are on disk when this returns. What cannot be, is not kept."""
        written = now()
        entries: list[tuple[int, bytes, KeptEntry]] = []
        for answer in answers:
            try:
                entry = KeptEntry(self._packed(answer.rows), written, answer.cost)
                entries.append((self._function, key_of(answer.values), entry))
            except Exception as error:  # noqa: BLE001 - it was paid for, and is an answer all the same
                self._warn("An answer is not kept", error)
        if entries:
            await self._ledger.keep(entries)

    def _warn(self, what: str, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            _log.warning("%s: %s", what, error)

    def _packed(self, rows: pa.RecordBatch) -> Stored:
        if self._plain:
            value: str | int | None = rows.column(0)[0].as_py()
            return value
        content: bytes = rows.serialize().to_pybytes()
        return content

    def _unpacked(self, stored: Stored) -> pa.RecordBatch:
        if not isinstance(stored, bytes):
            return pa.record_batch([pa.array([stored], self._schema.types[0])], schema=self._schema)
        return pa.ipc.read_record_batch(pa.py_buffer(stored), self._schema)


def kept_answers(
    keep: Keep,
    name: str,
    answering: object,
    given: Sequence[str],
    schema: pa.Schema,
    unit: str | None = None,
    files: FolderOfFiles | None = None,
) -> KeptAnswers | None:
    """Return the answers of what is ``answering``, a function or a source, under its name.

    ``given`` are the types of what it is asked by; of a function there is a ``unit`` of its price,
    empty where it has none. Opens the ledger; LedgerError. None, and a warning, where what is open
    cannot be written, as on a full disk, or where the folder is one of ``files`` on another machine
    that is not reached.
    """
    try:
        ledger = opened(keep.folder, files)
    except LedgerError as error:
        if files is not None:
            return None  # which was said when it could not be opened
        if not _for_want_of_room(error):
            raise
        _log.warning("Answers of %s are not kept: %s", name, error)
        return None
    version = version_of(answering) if keep.version is None else keep.version
    columns = ", ".join(f"{field.name} {field.type}" for field in schema)
    if any("timestamp" in kind for kind in given):  # functions see the clock of this process
        given = (*given, *time.tzname)
    signature = f"({', '.join(given)}) -> {columns}"
    try:
        number = ledger.store.function(name, version, signature, unit or "")
    except LedgerError as error:
        _log.warning("Answers of %s are not kept: %s", name, error)
        return None
    return KeptAnswers(ledger, number, schema, keep.valid, plain=unit is not None)
