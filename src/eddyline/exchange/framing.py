"""Blobs of several inputs in one value: framed by Spark, taken apart by a worker."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

FRAME_HEAD: Final = struct.Struct(">qqq")
"""The length of a frame's blob in bytes, its relation, and what its rows have passed."""

# Said in SQL, since each function of PySpark's that makes a column is several calls of the JVM.
FRAMES: Final = "listagg(concat({}, batch)) AS frames".format(
    ", ".join(
        f"unhex(lpad(hex({number}), 16, '0'))"  # eight bytes, the highest first
        for number in ("octet_length(batch)", "relation", "done")
    )
)
"""The aggregate that frames all blobs: of rows with ``relation``, ``done`` and ``batch``."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A blob of one input with the predicates, as a mask, that its rows have passed."""

    relation: int
    done: int
    batches: pa.Buffer


def frames(framed: pa.Buffer) -> Iterator[Frame]:
    """Yield what was framed, without copying it."""
    at = 0
    while at < framed.size:
        length, relation, done = FRAME_HEAD.unpack_from(framed, at)
        at += FRAME_HEAD.size
        yield Frame(relation, done, framed.slice(at, length))
        at += length
