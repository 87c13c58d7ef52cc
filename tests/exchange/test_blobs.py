"""Blobs as the JVM carries them come out as they went in."""

from __future__ import annotations

import pyarrow as pa

from eddyline.exchange.blobs import SCHEMA, Blob, decoded, encoded, packed, unpacked

ROWS = pa.record_batch([pa.array([1, None, 3])], names=["c0"])


def test_what_is_packed_is_unpacked() -> None:
    whole = [
        Blob(cell=3, relation=1, done=(1 << 62) + 1, heavy=-(1 << 60), batch=encoded([ROWS, ROWS])),
        Blob(cell=0, relation=0, done=0, heavy=0, batch=pa.py_buffer(b"")),
    ]
    table = pa.Table.from_batches([packed(blob) for blob in whole])
    (together,) = table.combine_chunks().to_batches()
    assert together.schema == SCHEMA
    found = list(unpacked(together))
    assert [blob[:-1] for blob in found] == [blob[:-1] for blob in whole]
    assert [list(decoded(blob.batch)) for blob in found] == [[ROWS, ROWS], []]
