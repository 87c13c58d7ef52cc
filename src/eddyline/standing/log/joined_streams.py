"""What the tasks of a job that joins streams know, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from eddyline.standing.engine.join_conditions import MOST_COLUMNS
from eddyline.standing.log.jobs import Job
from eddyline.standing.log.rule_limits import NO_LIMITS, RuleLimits

VERSION = "eddyline.version"
"""The local property of a micro-batch's tasks that says which version of the queries they run."""

SAMPLE = "eddyline.sample"
"""The local property that says which part of the rows is taken."""

WAKE = "eddyline.wake"
"""The local property that says whether all cells are to work, those without rows too: queries have
gone since they did, and what was stored for them goes now."""

BATCH = "streaming.sql.batchId"
"""The local property by which Spark tells the number of a micro-batch."""


@dataclass(frozen=True, slots=True)
class JoinedStreams:
    """A job over streams, and where the log of its queries is.

    For each stream, then each table: ``types`` of its columns, None for one that cannot travel,
    and ``times``, the column that says when an event happened, None where there is none.
    ``tables`` are the files with the tables' rows, as Arrow writes them; ``cells`` the labels of
    the cells. ``remember`` says whether results of functions are kept for further events,
    ``samples`` whether rows may be dropped under overload, so that each has the share with which
    it was taken. ``names`` are those of the columns, ``limits`` what a query may take.
    """

    log: str
    job: Job
    types: tuple[tuple[pa.DataType | None, ...], ...]
    times: tuple[int | None, ...]
    tables: tuple[str, ...]
    cells: tuple[int, ...]
    remember: bool = True
    samples: bool = False
    names: tuple[tuple[str, ...], ...] = ()
    limits: RuleLimits = NO_LIMITS

    def named(self, values: Mapping[int, object]) -> dict[str, object]:
        """Return values of columns, by their numbers in conditions, by names that people know."""
        named: dict[str, object] = {}
        inputs = self.job.inputs
        for number, value in values.items():
            stream, column = divmod(number, MOST_COLUMNS)
            own = self.names[stream % len(inputs)][column] if self.names else f"column {column}"
            if not own:  # of a derived column that says whether another has a value
                continue
            name = f"{inputs[stream % len(inputs)]}.{own}" if len(inputs) > 1 else own
            named[name if name not in named else f"{name} ({len(named)})"] = value
        return named
