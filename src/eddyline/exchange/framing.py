"""Blobs of several inputs in one value: framed by workers, gathered by Spark, taken apart again."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from eddyline.exchange.blobs import Blob, as_binary

FRAME_HEAD: Final = struct.Struct(">qqq")
"""The length of a frame's blob in bytes, its relation, and what its rows have passed."""

SCHEMA: Final = pa.schema([pa.field("frame", pa.binary())])
"""What the JVM sees of frames, one a row."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A blob of one input with the predicates, as a mask, that its rows have passed."""

    relation: int
    done: int
    batches: pa.Buffer


def framed(blob: Blob) -> pa.RecordBatch:
    """Return a blob as a record batch of one row of :data:`SCHEMA`.

    The bytes are copied once, which inputs that are gathered are small enough for.
    """
    head = FRAME_HEAD.pack(blob.batch.size, blob.relation, blob.done)
    frame = as_binary(pa.py_buffer(b"".join((head, blob.batch))))
    return pa.record_batch([frame], schema=SCHEMA)


def frames(framed: pa.Buffer) -> Iterator[Frame]:
    """Yield what was framed, without copying it."""
    at = 0
    while at < framed.size:
        length, relation, done = FRAME_HEAD.unpack_from(framed, at)
        at += FRAME_HEAD.size
        yield Frame(relation, done, framed.slice(at, length))
        at += length
