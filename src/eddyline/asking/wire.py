"""What tasks and the server of lookups say to each other.

A message is a line of JSON and, as long as its ``bytes`` says, an Arrow stream. A task begins with
the token, its job and the access method. Then it sends ``calls``, numbers of its own, and a row of
bind values for each. The server sends ``calls``, for each the number of its ``rows`` and the
``seconds`` that it took, and all these rows; or ``calls`` and an ``error``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

LINE: Final = 1 << 24
"""Bytes of a line of JSON at the most."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is, and what lets a task in."""

    host: str
    port: int
    token: str = field(repr=False)


def packed(table: pa.Table) -> bytes:
    """Return a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table.combine_chunks())
    stream_of: bytes = sink.getvalue().to_pybytes()
    return stream_of
