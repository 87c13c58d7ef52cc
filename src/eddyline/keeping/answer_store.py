"""Answers in a file: a row for each function and key, safe from whatever ends the process.

SQLite in WAL mode: several applications read and write one file; a commit is on disk before it
counts; a write that was torn is as if it had never been made.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from eddyline.errors import LedgerError

FILE: Final = "answers.sqlite"

_FORMAT: Final = 1
"""What ``PRAGMA user_version`` says of a file that this code understands."""

_PATIENCE: Final = 10.0
"""Seconds that one application waits for the commit of another."""

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS functions(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    signature TEXT NOT NULL,
    unit TEXT NOT NULL,
    hits INTEGER NOT NULL DEFAULT 0,
    saved REAL NOT NULL DEFAULT 0,
    UNIQUE(name, version, signature, unit));
CREATE TABLE IF NOT EXISTS answers(
    function INTEGER NOT NULL,
    key BLOB NOT NULL,
    answer,
    written REAL NOT NULL,
    cost REAL NOT NULL,
    PRIMARY KEY(function, key)) WITHOUT ROWID;
"""

_FIND: Final = "SELECT key, answer, written, cost FROM answers WHERE function=? AND key IN ({})"

_NUMBER: Final = "SELECT id FROM functions WHERE name=? AND version=? AND signature=? AND unit=?"

_AT_ONCE: Final = 500
"""Keys that one statement asks for."""

Stored: TypeAlias = bytes | str | int | float | None
"""An answer as it is stored: bytes where it is no plain number or text."""


class KeptEntry(NamedTuple):
    """An answer: when it was written, in seconds since 1970, and what it has cost."""

    answer: Stored
    written: float
    cost: float


@dataclass(frozen=True, slots=True)
class KeptFunction:
    """What is kept of a function, or of a lookup table: how much, and what that has spared.

    ``entries`` answers take ``size`` bytes without what the file needs beside them; the oldest and
    the newest are of these seconds since 1970. ``hits`` are calls that were not made, ``saved``
    what they would have cost, and ``spent`` what the answers have cost, both in ``unit``.
    """

    number: int
    name: str
    version: str
    signature: str
    unit: str
    entries: int
    size: int
    hits: int
    saved: float
    spent: float
    oldest: float | None
    newest: float | None


class AnswerStore:
    """The file of a folder. Reads and writes may come from any threads, one at a time each.

    LedgerError where the file cannot be opened, is none of ours, or is damaged.
    """

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        """Open the file, which is made where it is missing.

        Without ``durable`` it lasts as long as the process, and no commit waits for the disk.
        """
        self._durable = durable
        self.path: Final = folder / FILE
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        with self._told("opened"):
            folder.mkdir(parents=True, exist_ok=True)
            # For nobody else, as SQLite then makes the files beside it.
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            self._connection = self._connected()
            try:
                self._set_up()
            except BaseException:
                self._connection.close()  # and what it has begun is undone
                raise
            self._reader = self._connected()  # which no commit holds up

    def _connected(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self.path, timeout=_PATIENCE, check_same_thread=False, isolation_level=None
        )

    def _set_up(self) -> None:
        run = self._connection.execute
        run("PRAGMA journal_mode=WAL")
        # A commit outlives the machine, not only the process.
        run(f"PRAGMA synchronous={'FULL' if self._durable else 'OFF'}")
        (known,) = run("PRAGMA user_version").fetchone()
        if known not in (0, _FORMAT):
            raise LedgerError(
                f"{self.path} was written by a newer Eddyline (format {known}); this one reads "
                f"format {_FORMAT}"
            )
        if known == 0:
            run("BEGIN IMMEDIATE")
            (known,) = run("PRAGMA user_version").fetchone()  # another application may be quicker
            others = run("SELECT name FROM sqlite_master WHERE type='table'").fetchall()
            if known == 0 and others:
                raise LedgerError(
                    f"{self.path} is a database of something else, with the table {others[0][0]}: "
                    "choose another folder"
                )
            for statement in _TABLES.split(";") if known == 0 else ():
                run(statement)
            run(f"PRAGMA user_version={_FORMAT}")
            run("COMMIT")

    def function(self, name: str, version: str, signature: str, unit: str) -> int:
        """Return the number of a function, which is new where it was not known."""
        told = (name, version, signature, unit)
        with self._told("written"), self._lock:
            known = self._connection.execute(_NUMBER, told).fetchone()
            if known is None:
                self._connection.execute(
                    "INSERT OR IGNORE INTO functions(name, version, signature, unit) "
                    "VALUES(?,?,?,?)",
                    told,
                )
                known = self._connection.execute(_NUMBER, told).fetchone()
        return int(known[0])

    def find(self, function: int, keys: Sequence[bytes]) -> dict[bytes, KeptEntry]:
        """Return the answers that there are, by key; 5 us a key, of 200,000."""
        found: dict[bytes, KeptEntry] = {}
        with self._told("read"), self._reading:
            for first in range(0, len(keys), _AT_ONCE):
                some = keys[first : first + _AT_ONCE]
                marks = ",".join("?" * len(some))
                rows = self._reader.execute(_FIND.format(marks), (function, *some))
                found.update((key, KeptEntry(*rest)) for key, *rest in rows)
        return found

    def keep(
        self,
        entries: Iterable[tuple[int, bytes, KeptEntry]],
        spared: Iterable[tuple[int, int, float]] = (),
    ) -> None:
        """Write answers of functions by key; on disk when this returns, or none where it raises.

        And take note of what was ``spared``: for a function, calls and what they would have cost.
        """
        rows = [(function, key, *entry) for function, key, entry in entries]
        counts = [(hits, saved, function) for function, hits, saved in spared]
        with self._told("written"), self._transaction():
            self._connection.executemany(
                "INSERT OR REPLACE INTO answers(function, key, answer, written, cost) "
                "VALUES(?,?,?,?,?)",
                rows,
            )
            self._connection.executemany(
                "UPDATE functions SET hits=hits+?, saved=saved+? WHERE id=?", counts
            )

    def functions(self) -> list[KeptFunction]:
        """Return what is kept of those that have an answer, by name; reads the whole file."""
        with self._told("read"), self._reading:
            rows = self._reader.execute(
                "SELECT f.id, f.name, f.version, f.signature, f.unit, count(a.key), "
                "coalesce(sum(length(a.key) + coalesce(length(CAST(a.answer AS BLOB)), 0) + 16), "
                "0), f.hits, f.saved, coalesce(sum(a.cost), 0), min(a.written), max(a.written) "
                "FROM functions f LEFT JOIN answers a ON a.function = f.id "
                "GROUP BY f.id HAVING count(a.key) > 0 ORDER BY f.name, f.id"
            ).fetchall()
        return [KeptFunction(*row) for row in rows]

    def remove(
        self, functions: Sequence[int], keys: Sequence[bytes] | None, before: float | None
    ) -> int:
        """Remove answers of functions, by key and age where these are given; return how many.

        Functions keep their numbers, by which others may keep answers still.
        """
        removed = 0
        with self._told("written"), self._transaction():
            for function in functions:
                for key in [None] if keys is None else keys:
                    removed += self._connection.execute(
                        "DELETE FROM answers WHERE function=? AND (? IS NULL OR key=?) "
                        "AND (? IS NULL OR written<?)",
                        (function, key, key, before, before),
                    ).rowcount
        return removed

    def size(self) -> int:
        """Return the bytes of the file, and of what is not yet in it."""
        beside = self.path.with_name(f"{FILE}-wal")
        return sum(path.stat().st_size for path in (self.path, beside) if path.exists())

    def close(self) -> None:
        """Let go of the file."""
        with self._lock, self._reading:
            self._connection.close()
            self._reader.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            try:
                self._connection.execute("COMMIT")
            except sqlite3.Error:  # as of a full disk: the next one has to begin anew
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise LedgerError(f"the ledger {self.path} cannot be {what}: {error}") from error
