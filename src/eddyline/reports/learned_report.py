"""What a session has learned of predicates and functions, as people see it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from shutil import get_terminal_size
from typing import Any, Final

from eddyline.reports.figures import Count, Seconds, Share
from eddyline.reports.tables import Column, TableSection
from eddyline.reports.text import TablesText, plain_tables

NOTHING_LEARNED: Final = "Nothing has been learned yet."

_PRINTED_WIDTH = 100  # columns, where nothing says how wide the terminal is


@dataclass(frozen=True, slots=True)
class LearnedPredicate:
    """What is known of a predicate, or of a term of an OR.

    ``rows`` were seen in all. Of those that count a share ``passed``, at ``seconds_per_row``, None
    where that is not known: the last action counts, and a little of those before.
    """

    text: str
    rows: int
    passed: float | None
    seconds_per_row: float | None


@dataclass(frozen=True, slots=True)
class LearnedFunction:
    """What is known of a function.

    ``rows`` were seen in all, with ``distinct`` arguments in a process at the most. Of those that
    count a share came with arguments that were ``repeated``, and answered without a call; the
    others took ``seconds_per_call``.
    """

    name: str
    rows: int
    seconds_per_call: float | None
    repeated: float | None
    distinct: int


@dataclass(frozen=True, slots=True)
class LearnedScan:
    """What is known of the scan of a lookup table: the last one of so many took ``seconds``."""

    table: str
    seconds: float
    times: int


@dataclass(frozen=True, slots=True, repr=False)
class LearnedReport:
    """What is known of predicates, functions and scans, those used last at the end.

    Printing it, or showing it at a prompt, gives text; a notebook shows tables.
    """

    predicates: tuple[LearnedPredicate, ...] = ()
    functions: tuple[LearnedFunction, ...] = ()
    scans: tuple[LearnedScan, ...] = ()

    def __str__(self) -> str:
        """Return it as plain text, as wide as the terminal."""
        width = get_terminal_size((_PRINTED_WIDTH, 24)).columns
        return plain_tables(self._tables(), width) or NOTHING_LEARNED

    def __repr__(self) -> str:
        """Return what a prompt shows: the text."""
        return str(self)

    def __rich__(self) -> TablesText | str:
        """Return what rich prints."""
        return TablesText(self._tables()) if self._tables() else NOTHING_LEARNED

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from eddyline.reports.html import tables_fragment  # noqa: PLC0415 - only pages need jinja2

        return tables_fragment("What was learned", self._tables(), NOTHING_LEARNED)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data that ``json.dumps`` takes.

        ``format``: version of these keys, now 1. ``predicates``: for each ``text``, ``rows``,
        ``passed`` (a share) and ``seconds_per_row``. ``functions``: for each ``name``, ``rows``,
        ``seconds_per_call``, ``repeated`` (a share) and ``distinct``. ``scans``: for each lookup
        table that was scanned while a query ran, ``table``, ``seconds`` and ``times``. Null where
        nothing is known.
        """
        return {
            "format": 1,
            "predicates": [asdict(predicate) for predicate in self.predicates],
            "functions": [asdict(function) for function in self.functions],
            "scans": [asdict(scan) for scan in self.scans],
        }

    def _tables(self) -> tuple[TableSection, ...]:
        tables = []
        if self.predicates:
            tables.append(_predicates(self.predicates))
        if self.functions:
            tables.append(_functions(self.functions))
        if self.scans:
            tables.append(_scans(self.scans))
        return tuple(tables)


def _predicates(predicates: tuple[LearnedPredicate, ...]) -> TableSection:
    return TableSection(
        "Predicates",
        (
            Column("Predicate", tuple(each.text for each in predicates), "code"),
            Column("Rows seen", tuple(Count(each.rows) for each in predicates)),
            Column("TRUE", tuple(_share(each.passed) for each in predicates)),
            Column("Per row", tuple(_seconds(each.seconds_per_row) for each in predicates)),
        ),
    )


def _functions(functions: tuple[LearnedFunction, ...]) -> TableSection:
    return TableSection(
        "Functions",
        (
            Column("Function", tuple(each.name for each in functions), "code"),
            Column("Rows seen", tuple(Count(each.rows) for each in functions)),
            Column("Per call", tuple(_seconds(each.seconds_per_call) for each in functions)),
            Column(
                "Repeated",
                tuple(_share(each.repeated) for each in functions),
                meaning="rows whose arguments had been there before.",
            ),
        ),
    )


def _scans(scans: tuple[LearnedScan, ...]) -> TableSection:
    return TableSection(
        "Scans of lookup tables",
        (
            Column("Table", tuple(each.table for each in scans)),
            Column("Scans", tuple(Count(each.times) for each in scans)),
            Column("Last one", tuple(Seconds(each.seconds) for each in scans)),
        ),
    )


def _share(share: float | None) -> Share | None:
    return None if share is None else Share(share, 1.0)


def _seconds(seconds: float | None) -> Seconds | None:
    return None if seconds is None else Seconds(seconds)
