"""What tasks and the server of lookups say to each other.

A message is a line of JSON and, as long as its ``bytes`` says, an Arrow stream. A task says in its
hello of which job it is, and which access method it asks. Then it sends ``calls``, numbers of its
own, and a row of bind values for each. The server sends ``calls``, for each the number of its
``rows`` and the ``seconds`` that it took, and all these rows; or ``calls`` and an ``error``.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

LINE: Final = 1 << 24
"""Bytes of a line of JSON at the most."""


def packed(table: pa.Table) -> bytes:
    """Return a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table.combine_chunks())
    stream_of: bytes = sink.getvalue().to_pybytes()
    return stream_of
