"""An action as people watch it: what its blocks have done so far."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from eddyline.reports.block_report import BlockReport


class QueryState(StrEnum):
    """Where an action stands."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"  # it ran when Spark stopped


@dataclass(frozen=True, slots=True)
class Totals:
    """What the blocks of an action have done together.

    ``calls_possible`` are those that plain Spark would have made by now, ``spared`` an estimate of
    the seconds that the difference would have taken. ``errors`` are rows for which a function has
    raised, whether or not the error counts.
    """

    rows_in: int = 0
    rows_out: int = 0
    calls: int = 0
    calls_possible: int = 0
    spared: float = 0.0
    errors: int = 0


@dataclass(frozen=True, slots=True)
class LiveQuery:
    """One action on a DataFrame, and its eddies.

    ``number`` counts from 1 in the order in which tasks were first heard of. ``description`` is
    Spark's, ``about`` names the functions and inputs of the blocks. ``started`` and
    ``ended`` are seconds since the epoch, ``tasks`` those of the stages that eddies run in,
    ``tasks_done`` as many of them as have ended. ``blocks`` are empty for one that has ended long
    ago; ``totals`` stay. ``waiting`` says what it waits for, where that is a quota; ``waits`` are
    the latest times in which it did, as beginning and end.
    """

    number: int
    action: int | None
    description: str
    about: str
    state: QueryState
    started: float
    ended: float | None
    error: str | None
    tasks_done: int
    tasks: int
    totals: Totals
    blocks: tuple[BlockReport, ...]
    waiting: str = ""
    waits: tuple[tuple[float, float], ...] = ()

    @property
    def name(self) -> str:
        """What people call it: ``count: is_fraud, score``."""
        return f"{self.description}: {self.about}" if self.about else self.description


def totals_of(blocks: tuple[BlockReport, ...]) -> Totals:
    """Add up what blocks have done."""
    records = [block.record for block in blocks if block.record is not None]
    return Totals(
        rows_in=sum(record.rows_in for record in records),
        rows_out=sum(record.rows_out for record in records),
        calls=sum(record.calls for record in records),
        calls_possible=sum(record.calls_possible for record in records),
        spared=sum(record.seconds_spared for record in records),
        errors=sum(predicate.errors_held for record in records for predicate in record.predicates),
    )
