"""What a Spark context has learned of functions, predicates and scans, for later queries."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from math import isfinite, log
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, overload

from eddyline.asking.driver_channel import Address
from eddyline.blocks.filter_block import FilterBlock
from eddyline.blocks.join_block import JoinBlock
from eddyline.engine.prior import Prior
from eddyline.latest import Latest
from eddyline.learning.named_terms import NamedParts, NamedTerm, named_parts
from eddyline.reports.records import FunctionRecord, PredicateRecord, TaskRecord

if TYPE_CHECKING:
    from eddyline.reports.learned_report import LearnedReport

MOST: Final = 1024
"""Predicates that are known, and functions; the latest ones. One takes some 700 bytes."""

EARLIER: Final = 1_000.0
"""Rows that all earlier actions count as at the most, beside those of the last one.

So a distribution that has changed is believed after one action of some thousand rows, and a few
rows do not outweigh what was seen before.
"""

LEAST: Final = 8.0
"""Rows that a predicate must have seen before tasks are told of it, as many as of a first look.

One that stands late in the order sees no more in a whole query, and each task that is not told of
it looks again. Six predicates over 20 tasks of 500 rows then take 1.09 to 1.28 times the cost that
they take in one long task, whatever an earlier query has learned, and 0.97 to 0.98 with 8 for 64.
"""

OTHER_SHARE: Final = 0.05
"""Change of the share that passes which makes a function worth making again."""

OTHER_COST: Final = 2.0
"""The same for a cost, as a factor."""

FIRMER: Final = 8.0
"""The same for the rows that it rests on."""

LONGEST_TEXT: Final = 200
"""Characters of a predicate's text that are kept."""

Block: TypeAlias = FilterBlock | JoinBlock

Told: TypeAlias = tuple[Prior | None, ...]
"""What the tasks of a block are told of its predicates."""


@dataclass(slots=True)
class Sums:
    """What rows did: at a predicate, or at a function, where ``hits`` came with known arguments.

    Rows of a task's first visit are ``cold``: it may have waited for a model to load.
    """

    rows: float = 0.0
    hits: float = 0.0
    warm_rows: float = 0.0
    warm_seconds: float = 0.0
    cold_rows: float = 0.0
    cold_seconds: float = 0.0

    def add(self, other: Sums) -> None:
        """Add others."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def capped(self, rows: float) -> Sums:
        """Return the same as if there had been no more than so many rows."""
        part = min(1.0, rows / self.rows) if self.rows else 1.0
        return Sums(*(getattr(self, each.name) * part for each in fields(self)))

    @property
    def cost(self) -> float | None:
        """Seconds a row; None where there were none."""
        if self.warm_rows >= 1.0:
            return max(self.warm_seconds, 0.0) / self.warm_rows
        return max(self.cold_seconds, 0.0) / self.cold_rows if self.cold_rows else None


@dataclass(slots=True)
class Known:
    """What is known of one predicate or function.

    ``seen`` are all its rows; ``before`` is what actions before the last one say, ``now`` that one.
    """

    text: str
    seen: int = 0
    distinct: int = 0
    action: int = -1
    before: Sums = field(default_factory=Sums)
    now: Sums = field(default_factory=Sums)

    def add(self, action: int, rows: int, sums: Sums) -> None:
        """Add what a task of an action has reported."""
        if action > self.action:
            self.before, self.now, self.action = self.all(), Sums(), action
        self.seen += rows
        self.now.add(sums)

    def all(self) -> Sums:
        """Return what is believed now: the last action, and a little of those before it."""
        believed = self.before.capped(EARLIER)
        believed.add(self.now)
        return believed


@dataclass(slots=True)
class KnownScan:
    """What is known of the scan of a lookup table: the seconds that the last of so many took."""

    text: str
    seconds: float
    times: int = 1


class Keeper(Protocol):
    """Is told that something was learned, to keep it for longer than the context."""

    def changed(self) -> None:
        """Take note; it may ask for everything."""
        ...

    def save(self) -> None:
        """Keep what is known now."""
        ...


class LearnedStore:
    """Predicates and functions by name, with what tasks have reported of them; from any thread.

    And what scans of lookup tables take.

    It is bounded: the latest are known. What a block's tasks are told stays the same as long as
    nothing has changed that matters to them, so that the block's function stays the same.
    """

    def __init__(self) -> None:
        self._predicates = Latest[str, Known](MOST)
        self._functions = Latest[str, Known](MOST)
        self._scans = Latest[str, KnownScan](MOST)
        self._parts = Latest[str, NamedParts](MOST // 4)  # by identity of a block
        self._told = Latest[str, Told](MOST // 4)  # likewise
        self._changing = threading.Lock()
        self.keeper: Keeper | None = None

    def reported(self, block: Block, record: TaskRecord) -> None:
        """Take in what a task of a block has reported."""
        parts = self._parts_of(block)
        with self._changing:
            for term, predicate in zip(parts.predicates, record.predicates, strict=False):
                self._learn(term, predicate, record.action)
            for name, function in zip(parts.functions, record.functions, strict=False):
                self._learn_function(name, function, record.action)
        if self.keeper is not None:
            self.keeper.changed()

    def scanned(self, name: str, text: str, seconds: float) -> None:
        """Take in what a scan of a lookup table has taken, by its name; ``text`` is for people."""
        with self._changing:
            before = self._scans.get(name)
            times = 1 if before is None else before.times + 1
            self._scans.put(name, KnownScan(text[:LONGEST_TEXT], seconds, times))
        if self.keeper is not None:
            self.keeper.changed()

    def scan_seconds(self, name: str) -> float | None:
        """Return what a scan has taken last; None where none is known."""
        known = self._scans.get(name)
        return None if known is None else known.seconds

    def for_one_rewriting(self, asked_at: Address | None = None) -> Telling:
        """Return what puts into blocks what is known now: into equal blocks the same.

        And ``asked_at``, where their tasks ask what is known then.
        """
        return Telling(self.told, asked_at)

    def told(self, block: Block) -> Told:
        """Return what the tasks of a block are to be told; empty where nothing is known."""
        parts = self._parts_of(block)
        with self._changing:
            known = tuple(map(self._prior, parts.predicates))
        if not any(known):
            return ()
        before = self._told.get(block.identity)
        if before is not None and not _matters(before, known):
            return before
        self._told.put(block.identity, known)
        return known

    def report(self) -> LearnedReport:
        """Return all that is known, for people."""
        # Only who asks has what draws tables imported, which takes 0.05 s.
        from eddyline.reports.learned_report import (  # noqa: PLC0415
            LearnedFunction,
            LearnedPredicate,
            LearnedReport,
            LearnedScan,
        )

        with self._changing:
            predicates = [(known, known.all()) for known in self._predicates.values()]
            functions = [(known, known.all()) for known in self._functions.values()]
            scans = list(self._scans.values())
        return LearnedReport(
            tuple(
                LearnedPredicate(
                    known.text, known.seen, sums.hits / sums.rows if sums.rows else None, sums.cost
                )
                for known, sums in predicates
            ),
            tuple(
                LearnedFunction(
                    known.text,
                    known.seen,
                    sums.cost,
                    sums.hits / sums.rows if sums.rows else None,
                    known.distinct,
                )
                for known, sums in functions
            ),
            tuple(LearnedScan(known.text, known.seconds, known.times) for known in scans),
        )

    def __len__(self) -> int:
        """Return of how many predicates, functions and scans something is known."""
        return len(self._predicates) + len(self._functions) + len(self._scans)

    def forget(self) -> None:
        """Know nothing, but of what tasks that run now will report."""
        with self._changing:
            self._predicates.clear()
            self._functions.clear()
            self._scans.clear()
            self._told.clear()

    def save(self) -> None:
        """Have what is known kept for longer than the context, where somebody does."""
        if self.keeper is not None:
            self.keeper.save()

    def as_data(self) -> dict[str, Any]:
        """Return all that is known as plain data."""
        with self._changing:
            return {
                kind: [_as_data(name, known) for name, known in kept.items()]
                for kind, kept in self._kinds()
            } | {"scans": [{"name": name, **asdict(known)} for name, known in self._scans.items()]}

    def take_up(self, data: Mapping[str, Any]) -> None:
        """Begin with plain data of another time, where nothing is known here.

        TypeError, ValueError or KeyError for what is no such data; nothing is taken up then.
        """
        read = {
            kind: [_from_data(each) for each in _listed(data.get(kind, ()))]
            for kind, _ in self._kinds()
        }
        scans = [_scan_from_data(each) for each in _listed(data.get("scans", ()))]
        with self._changing:
            for kind, kept in self._kinds():
                for name, known in read[kind]:
                    if kept.get(name) is None:
                        kept.put(name, known)
            for name, scan in scans:
                if self._scans.get(name) is None:
                    self._scans.put(name, scan)

    def _kinds(self) -> tuple[tuple[str, Latest[str, Known]], ...]:
        return ("predicates", self._predicates), ("functions", self._functions)

    def _parts_of(self, block: Block) -> NamedParts:
        # By identity: where rows stay in the JVM, the tasks' columns are numbered otherwise.
        parts = self._parts.get(block.identity)
        if parts is None:
            parts = named_parts(block)
            self._parts.put(block.identity, parts)
        return parts

    def _learn(self, term: NamedTerm, record: PredicateRecord, action: int) -> None:
        if term.name and record.rows_in > 0:
            known = _of(self._predicates, term.name, record.text)
            known.add(
                action,
                record.rows_in,
                Sums(
                    record.rows_in,
                    record.passed,
                    record.rows_in - record.first_rows,
                    record.seconds - record.first_seconds,
                    record.first_rows,
                    record.first_seconds,
                ),
            )
        for part, nested in zip(term.nested, record.nested, strict=False):
            self._learn(part, nested, action)

    def _learn_function(self, name: str, record: FunctionRecord, action: int) -> None:
        rows = record.calls + record.remembered
        if rows > 0:
            known = _of(self._functions, name, record.name)
            known.distinct = max(known.distinct, record.distinct)
            seconds = record.seconds - record.lookup_seconds
            known.add(action, rows, Sums(rows, record.remembered, record.calls, seconds))

    def _prior(self, term: NamedTerm) -> Prior | None:
        nested = tuple(map(self._prior, term.nested))
        known = self._predicates.get(term.name) if term.name else None
        believed = None if known is None else known.all()
        if believed is None or believed.rows < LEAST or (cost := believed.cost) is None:
            return None
        passed = min(max(believed.hits, 0.0), believed.rows)
        return Prior(believed.rows, passed, cost, nested if any(nested) else ())


class Telling:
    """Puts what is known into the blocks of one rewriting, and where to ask what is later."""

    def __init__(self, told: Callable[[Block], Told], asked_at: Address | None) -> None:
        self._told = told
        self._asked_at = asked_at
        self._by_identity: dict[str, Told] = {}

    @overload
    def __call__(self, block: FilterBlock) -> FilterBlock: ...

    @overload
    def __call__(self, block: JoinBlock) -> JoinBlock: ...

    def __call__(self, block: Block) -> Block:
        """Return a block whose tasks are told what is known of its predicates.

        It is the same block: neither its identity nor its answers depend on that.
        """
        told = self._by_identity.get(block.identity)
        if told is None:
            told = self._by_identity[block.identity] = self._told(block)
        if isinstance(block, FilterBlock):
            return replace(block, priors=told, learned_at=self._asked_at)
        return replace(block.with_priors(told), learned_at=self._asked_at)


def _of(kept: Latest[str, Known], name: str, text: str) -> Known:
    known = kept.get(name)
    if known is None:
        known = Known(text[:LONGEST_TEXT])
        kept.put(name, known)
    return known


def _matters(before: Told, now: Told) -> bool:
    """Tell whether what is known is other enough for the tasks of a block to be told."""
    if len(before) != len(now):
        return True
    return any(map(_differs, before, now))


def _differs(before: Prior | None, now: Prior | None) -> bool:
    if before is None or now is None:
        return before is not now
    if abs(before.selectivity - now.selectivity) > OTHER_SHARE:
        return True
    if now.tuples > FIRMER * before.tuples:
        return True
    if not before.cost or not now.cost:
        return before.cost != now.cost
    return abs(log(now.cost / before.cost)) > log(OTHER_COST) or _matters(before.nested, now.nested)


def _as_data(name: str, known: Known) -> dict[str, Any]:
    return {
        "name": name,
        "text": known.text,
        "seen": known.seen,
        "distinct": known.distinct,
        **asdict(known.all()),
    }


def _listed(value: object) -> Iterable[Mapping[str, Any]]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, Mapping) for each in value):
        raise TypeError("a list of objects is expected")
    return value


def _from_data(data: Mapping[str, Any]) -> tuple[str, Known]:
    sums = Sums(*(_amount(data[each.name]) for each in fields(Sums)))
    if sums.hits > sums.rows:
        raise ValueError(f"of {sums.rows} rows there cannot have been {sums.hits}")
    known = Known(str(data["text"])[:LONGEST_TEXT], int(_amount(data["seen"])))
    known.distinct = int(_amount(data["distinct"]))
    known.before = sums
    return str(data["name"]), known


def _scan_from_data(data: Mapping[str, Any]) -> tuple[str, KnownScan]:
    seconds, times = _amount(data["seconds"]), int(_amount(data["times"]))
    return str(data["name"]), KnownScan(str(data["text"])[:LONGEST_TEXT], seconds, times)


def _amount(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"a number is expected, not {value!r}")
    if not (isfinite(value) and value >= 0.0):
        raise ValueError(f"a number from 0 on is expected, not {value}")
    return float(value)
