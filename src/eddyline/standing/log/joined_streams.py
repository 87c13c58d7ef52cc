"""What the tasks of a job that joins streams know, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from eddyline.standing.log.jobs import Job

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
    it was taken.
    """

    log: str
    job: Job
    types: tuple[tuple[pa.DataType | None, ...], ...]
    times: tuple[int | None, ...]
    tables: tuple[str, ...]
    cells: tuple[int, ...]
    remember: bool = True
    samples: bool = False
