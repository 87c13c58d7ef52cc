"""Answers as rows of Parquet files: any number of files, in any order, are one ledger.

Rows are facts that stay true: an answer that was given at a time, answers that were removed up to
a time, calls that an application had spared by a time. So files may be read twice, merged by two
applications at once, or seen late, and the newest of each key is the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from eddyline.errors import LedgerError
from eddyline.keeping.answer_store import Stored

FORMAT: Final = b"1"
"""What the metadata of a file say that this code understands."""

REMOVED: Final = "removed"
"""Answers of a key, or of all keys where there is none, written before this time are no more."""

SPARED: Final = "spared"
"""So many calls (``answer``) of this cost an application (``key``) has spared so far."""

_MARK: Final = b"eddyline.answers"

_ROWS: Final = 2_000
"""Rows of a row group: what is in memory at a time, when files are read and merged."""

_FUNCTION: Final = ("name", "version", "signature", "unit")

SCHEMA: Final = pa.schema(
    [
        *((name, pa.string()) for name in _FUNCTION),
        ("what", pa.string()),
        ("key", pa.binary()),
        ("answer", pa.binary()),
        ("written", pa.float64()),
        ("cost", pa.float64()),
    ],
    metadata={_MARK: FORMAT},
)
"""``what`` is the type of an answer, :data:`REMOVED` or :data:`SPARED`; times since 1970, in s."""


class FunctionName(NamedTuple):
    """What tells a function, or a lookup table, from all others."""

    name: str
    version: str
    signature: str
    unit: str


class FactRow(NamedTuple):
    """A row of a file."""

    function: FunctionName
    what: str
    key: bytes | None
    answer: bytes | None
    written: float
    cost: float = 0.0


def stored_as(answer: Stored) -> tuple[str, bytes | None]:
    """Return the type of an answer, and its bytes.

    >>> stored_as("a"), stored_as(5), stored_as(None)
    (('text', b'a'), ('integer', b'5'), ('null', None))
    """
    if answer is None:
        return "null", None
    if isinstance(answer, bytes):
        return "bytes", answer
    if isinstance(answer, str):
        return "text", answer.encode()
    return ("integer" if isinstance(answer, int) else "number"), repr(answer).encode()


def answer_of(what: str, content: bytes | None) -> Stored:
    """Return the answer that was stored as this."""
    if what == "null" or content is None:
        return None
    if what == "text":
        return content.decode()
    if what == "integer":
        return int(content)
    return float(content) if what == "number" else content


def write_rows(path: Path, rows: Iterable[FactRow]) -> int:
    """Write a file of this machine, and return its bytes; OSError."""
    left = iter(rows)
    with pq.ParquetWriter(
        path,
        SCHEMA,
        compression="zstd",
        use_dictionary=[*_FUNCTION, "what"],
        write_statistics=False,
    ) as writer:
        while some := list(itertools.islice(left, _ROWS)):
            writer.write_batch(_batch(some))
    return path.stat().st_size


def _batch(rows: Sequence[FactRow]) -> pa.RecordBatch:
    columns = list(zip(*((*row.function, *row[1:]) for row in rows), strict=True))
    arrays = [pa.array(column, kind) for column, kind in zip(columns, SCHEMA.types, strict=True)]
    return pa.record_batch(arrays, schema=SCHEMA)


def read_rows(path: Path) -> Iterator[list[FactRow]]:
    """Yield the rows of a file of this machine.

    ValueError or OSError where it is none of ours, torn or damaged; LedgerError where it is of a
    newer Eddyline.
    """
    with pq.ParquetFile(path) as file:
        known = (file.schema_arrow.metadata or {}).get(_MARK)
        if known is None:
            raise ValueError("no file of answers")
        if known != FORMAT:
            raise LedgerError(
                f"it was written by a newer Eddyline (format {known.decode()}); this one reads "
                f"format {FORMAT.decode()}"
            )
        for batch in file.iter_batches(_ROWS):
            columns = [batch.column(name).to_pylist() for name in SCHEMA.names]
            functions = map(FunctionName, *columns[:4])
            yield list(map(FactRow, functions, *columns[4:]))
