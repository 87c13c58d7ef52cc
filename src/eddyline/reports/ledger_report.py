"""What a ledger keeps, as people see it, and what they may remove."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from shutil import get_terminal_size
from typing import Any, Final

from eddyline.keeping.answer_store import AnswerStore, KeptFunction
from eddyline.keeping.keep import span_of
from eddyline.keeping.key_bytes import key_of
from eddyline.keeping.shared_store import SharedStore
from eddyline.reports.figures import Count
from eddyline.reports.tables import Column, TableSection
from eddyline.reports.text import TablesText, plain_tables
from eddyline.reports.wording import size

EMPTY: Final = "The ledger is empty."

_PRINTED_WIDTH: Final = 100  # columns, where nothing says how wide the terminal is


class Ledger:
    """The answers that are kept in a folder: see :func:`ledger`.

    Printing it, or showing it at a prompt, gives a table of functions and lookup tables; so does a
    notebook. What queries keep meanwhile is seen the next time that it is shown.
    """

    def __init__(self, store: AnswerStore | SharedStore, *, own: bool = True) -> None:
        """Show what a store has, which is its ``own`` unless queries use it as well."""
        self._store = store
        self._own = own

    @property
    def functions(self) -> tuple[KeptFunction, ...]:
        """What is kept of each function and lookup table, by name."""
        return tuple(self._store.functions())

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self._store.size()

    def remove(
        self,
        function: str | None = None,
        *,
        version: str | None = None,
        keys: Iterable[object] | None = None,
        older_than: str | dt.timedelta | None = None,
    ) -> int:
        """Remove answers, and return how many; what is not given does not matter.

        ``function`` is the name of a function or lookup table, ``keys`` are its arguments: each a
        value, or a tuple of several. ``older_than`` is a time, as "30 days". Raises ``ValueError``
        where nothing is given, so that nothing is removed by accident, or for a name that the
        ledger does not have, and ``LedgerError``.
        """
        if function is None and version is None and keys is None and older_than is None:
            raise ValueError("say what to remove: a function, a version, keys or an age")
        chosen = [
            each.number
            for each in self._store.functions()
            if function in (None, each.name) and version in (None, each.version)
        ]
        if not chosen and function is not None:
            names = ", ".join(sorted({each.name for each in self._store.functions()})) or "none"
            raise ValueError(f"{function} has no answers here; there are those of: {names}")
        age = None if older_than is None else span_of(older_than, "older_than")
        before = None if age is None else time.time() - age
        wanted = None if keys is None else [key_of(_values(key)) for key in keys]
        return self._store.remove(chosen, wanted, before)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data that ``json.dumps`` takes.

        ``format``: version of these keys, now 1. ``size``: bytes on disk. ``functions``: for each
        its ``name``, ``version``, ``signature``, ``entries``, their ``size`` in bytes, ``hits``
        (calls that were not made), what these would have cost (``saved``) and what the answers have
        cost (``spent``), in ``unit``, and when the ``oldest`` and the ``newest`` were written, in
        seconds since 1970.
        """
        functions = [asdict(each) for each in self.functions]
        for each in functions:
            del each["number"]
        return {"format": 1, "size": self.size, "functions": functions}

    def close(self) -> None:
        """Let go of the file."""
        if self._own:
            self._store.close()

    def __str__(self) -> str:
        """Return it as plain text, as wide as the terminal."""
        width = get_terminal_size((_PRINTED_WIDTH, 24)).columns
        return plain_tables(self._tables(), width) or EMPTY

    def __repr__(self) -> str:
        """Return what a prompt shows: the text."""
        return str(self)

    def __rich__(self) -> TablesText | str:
        """Return what rich prints."""
        tables = self._tables()
        return TablesText(tables) if tables else EMPTY

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from eddyline.reports.html import tables_fragment  # noqa: PLC0415 - only pages need jinja2

        return tables_fragment("Ledger", self._tables(), EMPTY)

    def _tables(self) -> tuple[TableSection, ...]:
        kept = self.functions
        if not kept:
            return ()
        columns = (
            Column("Function", tuple(each.name for each in kept), "code"),
            Column("Version", tuple(each.version[:12] for each in kept), "code"),
            Column("Answers", tuple(Count(each.entries) for each in kept)),
            Column("Spared", tuple(Count(each.hits) for each in kept), meaning=_SPARED),
            Column("Saved", tuple(_money(each.saved, each.unit) for each in kept)),
            Column("Spent", tuple(_money(each.spent, each.unit) for each in kept)),
            Column("Size", tuple(size(each.size) for each in kept)),
            Column("Newest", tuple(_day(each.newest) for each in kept)),
        )
        return (TableSection("Answers that are kept", columns),)


_SPARED: Final = "calls and requests that were not made, as their answers were here."


def _values(key: object) -> Sequence[object]:
    return key if isinstance(key, tuple) else (key,)


def _money(amount: float, unit: str) -> str:
    return f"{amount:,.6g} {unit}" if unit else ""


def _day(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%d %H:%M")
