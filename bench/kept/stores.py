"""``make bench ARGS=stores``: what could keep answers, beside SQLite: LMDB, if it is installed.

Each store gets the same entries, a digest of 16 bytes and a text of 100, in groups that are each on
disk before the next begins, as answers arrive; then it is asked for some of them, a thousand at a
time and one at a time. Both are killed with SIGKILL while they write, and must have all groups that
they said were done.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.util
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.table import Table

TEXT = "An answer of a language model, as long as such answers are where they classify a text. " * 2


def key(number: int) -> bytes:
    """Return the key of an entry."""
    return hashlib.blake2b(str(number).encode(), digest_size=16).digest()


class Store(Protocol):
    """What keeps entries."""

    def put(self, numbers: Sequence[int]) -> None:
        """Write a group; it is on disk when this returns."""
        ...

    def get(self, numbers: Sequence[int]) -> int:
        """Return how many of these it has."""
        ...


class Sqlite:
    """A table of SQLite in WAL mode, synchronized in full, as the ledger has it."""

    def __init__(self, folder: Path) -> None:
        self._base = sqlite3.connect(folder / "answers.sqlite", isolation_level=None)
        for line in ("journal_mode = WAL", "synchronous = FULL", "wal_autocheckpoint = 4000"):
            self._base.execute(f"PRAGMA {line}")
        self._base.execute("CREATE TABLE IF NOT EXISTS t (k BLOB PRIMARY KEY, v) WITHOUT ROWID")

    def put(self, numbers: Sequence[int]) -> None:
        """Write a group; it is on disk when this returns."""
        self._base.execute("BEGIN IMMEDIATE")
        rows = [(key(number), TEXT[:100]) for number in numbers]
        self._base.executemany("INSERT OR REPLACE INTO t VALUES (?, ?)", rows)
        self._base.execute("COMMIT")

    def get(self, numbers: Sequence[int]) -> int:
        """Return how many of these it has."""
        marks = ",".join("?" * len(numbers))
        query = f"SELECT count(v) FROM t WHERE k IN ({marks})"  # noqa: S608 - question marks
        return int(self._base.execute(query, [key(number) for number in numbers]).fetchone()[0])


class Lmdb:
    """A memory-mapped B-tree, synchronized with each transaction."""

    def __init__(self, folder: Path) -> None:
        lmdb: Any = importlib.import_module("lmdb")
        self._base = lmdb.open(str(folder / "answers.lmdb"), map_size=1 << 36, subdir=True)

    def put(self, numbers: Sequence[int]) -> None:
        """Write a group; it is on disk when this returns."""
        text = TEXT[:100].encode()
        with self._base.begin(write=True) as transaction:
            for number in numbers:
                transaction.put(key(number), text)

    def get(self, numbers: Sequence[int]) -> int:
        """Return how many of these it has."""
        with self._base.begin() as transaction:
            return sum(transaction.get(key(number)) is not None for number in numbers)


STORES: dict[str, type[Sqlite | Lmdb]] = {"SQLite": Sqlite, "LMDB": Lmdb}


def main(arguments: Sequence[str]) -> int:
    """Compare the stores; 1 where one has lost a group."""
    parser = argparse.ArgumentParser(prog="bench stores", description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--group", type=int, default=1_000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--write", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.write:
        _write_until_killed(*chosen.write)
    names = [name for name in STORES if name == "SQLite" or importlib.util.find_spec("lmdb")]
    table = Table(
        "store", "written a second", "asked a second", "one at a time", "bytes each", "lost"
    )
    lost = 0
    for name in names:
        with tempfile.TemporaryDirectory(prefix="eddyline-stores-") as place:
            folder = Path(place)
            figures = _measured(STORES[name](folder), folder, chosen.entries, chosen.group)
        missing = sum(_killed(name, seed) for seed in range(chosen.kills))
        lost += missing
        table.add_row(name, *figures, str(missing))
    Console().print(table)
    return 1 if lost else 0


def _measured(store: Store, folder: Path, entries: int, group: int) -> list[str]:
    chance = random.Random(0)
    began = time.perf_counter()
    for start in range(0, entries, group):
        store.put(range(start, min(start + group, entries)))
    written = entries / (time.perf_counter() - began)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    rates = []
    for together, rounds in ((1_000, 100), (1, 20_000)):
        asked = [[chance.randrange(entries) for _ in range(together)] for _ in range(rounds)]
        began = time.perf_counter()
        found = sum(store.get(list(dict.fromkeys(numbers))) for numbers in asked)
        rates.append(found / (time.perf_counter() - began))
    return [f"{written:,.0f}", *(f"{rate:,.0f}" for rate in rates), f"{size / entries:.0f}"]


def _write_until_killed(name: str, place: str) -> None:
    store = STORES[name](Path(place))
    number = 0
    while True:
        store.put(range(number, number + 50))
        number += 50
        print(number, flush=True)


def _killed(name: str, seed: int) -> int:
    """Return how many entries are lost that a process had written before it was killed."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="eddyline-stores-") as place:
        command = [sys.executable, "-m", "bench", "stores", "--write", name, place]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603
        stop = chance.randrange(20, 200)
        done = 0
        for count, line in enumerate(writer.stdout or ()):
            done = int(line)
            if count == stop:
                os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        store = STORES[name](Path(place))
        return done - sum(store.get(range(n, n + 50)) for n in range(0, done, 50))
