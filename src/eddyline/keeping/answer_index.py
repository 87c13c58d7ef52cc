"""Answers from files that applications share, in a file of this process by which they are found."""

from __future__ import annotations

import math
import shutil
import tempfile
import weakref
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from eddyline.keeping.answer_files import (
    REMOVED,
    SPARED,
    FactRow,
    FunctionName,
    answer_of,
    stored_as,
)
from eddyline.keeping.answer_store import AnswerStore

_NEWER: Final = (
    "INSERT INTO answers(function, key, answer, written, cost) VALUES(?,?,?,?,?) "
    "ON CONFLICT(function, key) DO UPDATE SET answer=excluded.answer, written=excluded.written, "
    "cost=excluded.cost WHERE excluded.written >= answers.written"
)


class AnswerIndex(AnswerStore):
    """What rows of files come to, whatever order they are read in, in a temporary folder.

    An application's name stands beside the calls that it has spared: as each says how many these
    were so far, the most that it said counts, however often that is read.
    """

    def __init__(self) -> None:
        """Begin without answers; LedgerError where there is no temporary folder."""
        folder = Path(tempfile.mkdtemp(prefix="eddyline-answers-"))
        self._tidied = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        super().__init__(folder, durable=False)
        self._numbers: dict[FunctionName, int] = {}
        self._removed: dict[tuple[int, bytes | None], float] = {}
        self._spared: defaultdict[int, dict[bytes, tuple[int, float]]] = defaultdict(dict)

    def load(self, rows: Sequence[FactRow]) -> None:
        """Add what rows say; 14 us an answer."""
        gone: defaultdict[tuple[int, float], list[bytes | None]] = defaultdict(list)
        for row in rows:
            if row.what == REMOVED:
                gone[self.number(row.function), row.written].append(row.key)
        for (number, until), keys in gone.items():
            self._forget(number, keys, until)
        answers = []
        for row in rows:
            number = self.number(row.function)
            if row.what == SPARED and row.key is not None:
                self._count(number, row.key, int(row.answer or 0), row.cost)
            elif row.what == REMOVED or row.key is None:
                continue
            elif row.written >= self._until(number, row.key):
                answer = answer_of(row.what, row.answer)
                answers.append((number, row.key, answer, row.written, row.cost))
        if answers:
            with self._told("written"), self._transaction():
                self._connection.executemany(_NEWER, answers)

    def rows(self) -> Iterator[FactRow]:
        """Yield rows that say all of it; while they are read, nothing else is."""
        names = self.names()
        for (number, key), until in self._removed.items():
            if key is None or until > self._removed.get((number, None), -math.inf):
                yield FactRow(names[number], REMOVED, key, None, until)
        for number, applications in self._spared.items():
            for application, (hits, saved) in applications.items():
                yield FactRow(names[number], SPARED, application, b"%d" % hits, 0.0, saved)
        with self._told("read"), self._reading:
            found = self._reader.execute("SELECT function, key, answer, written, cost FROM answers")
            for number, key, answer, written, cost in found:
                what, content = stored_as(answer)
                yield FactRow(names[number], what, key, content, written, cost)

    def number(self, function: FunctionName) -> int:
        """Return the number of a function, which is the same as long as this is there."""
        number = self._numbers.get(function)
        if number is None:
            number = self._numbers[function] = self.function(*function)
        return number

    def names(self) -> dict[int, FunctionName]:
        """Return the functions by number."""
        with self._told("read"), self._reading:
            found = self._reader.execute("SELECT id, name, version, signature, unit FROM functions")
            return {number: FunctionName(*name) for number, *name in found}

    def removals(
        self,
        functions: Sequence[int],
        keys: Sequence[bytes] | None,
        before: float | None,
        now: float,
    ) -> tuple[list[FactRow], int]:
        """Return the rows that remove answers, and how many these are now.

        Without ``before`` all that are there go, also those that a clock dates later than ``now``.
        """
        names, rows, removed = self.names(), [], 0
        for number in functions:
            for key in [None] if keys is None else keys:
                with self._told("read"), self._reading:
                    count, newest = self._reader.execute(
                        "SELECT count(*), max(written) FROM answers WHERE function=? "
                        "AND (? IS NULL OR key=?) AND (? IS NULL OR written<?)",
                        (number, key, key, before, before),
                    ).fetchone()
                if count:
                    removed += count
                    until = math.nextafter(max(now, newest), math.inf) if before is None else before
                    rows.append(FactRow(names[number], REMOVED, key, None, until))
        return rows, removed

    def clear(self) -> None:
        """Forget everything but the numbers of functions."""
        with self._told("written"), self._transaction():
            self._connection.execute("DELETE FROM answers")
            self._connection.execute("UPDATE functions SET hits=0, saved=0")
        self._removed.clear()
        self._spared.clear()

    def close(self) -> None:
        """Let go of the file, which nobody needs any more."""
        super().close()
        self._tidied()

    def _until(self, number: int, key: bytes) -> float:
        if not self._removed:
            return -math.inf
        return max(
            self._removed.get((number, None), -math.inf),
            self._removed.get((number, key), -math.inf),
        )

    def _forget(self, number: int, keys: Sequence[bytes | None], until: float) -> None:
        for key in keys:
            known = self._removed.get((number, key), -math.inf)
            self._removed[number, key] = max(known, until)
        some = [key for key in keys if key is not None]
        self.remove([number], some if len(some) == len(keys) else None, until)

    def _count(self, number: int, application: bytes, hits: int, saved: float) -> None:
        told = self._spared[number]
        if hits <= told.get(application, (0, 0.0))[0]:
            return
        told[application] = hits, saved
        with self._told("written"), self._lock:
            self._connection.execute(
                "UPDATE functions SET hits=?, saved=? WHERE id=?",
                (sum(h for h, _ in told.values()), sum(s for _, s in told.values()), number),
            )
