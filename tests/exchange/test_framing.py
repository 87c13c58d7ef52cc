"""Frames that Spark appends to one another are the blobs that they were made of."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from eddyline.exchange.blobs import Blob, decoded, encoded
from eddyline.exchange.framing import SCHEMA, framed, frames

ROWS = pa.record_batch([pa.array([1, None, 3])], names=["c0"])

BLOBS = st.builds(
    Blob,
    cell=st.just(0),
    relation=st.integers(0, 40),
    done=st.integers(0, (1 << 63) - 1),
    heavy=st.just(0),
    batch=st.sampled_from([pa.py_buffer(b""), encoded([ROWS]), encoded([ROWS, ROWS])]),
)


@given(st.lists(BLOBS, max_size=5))
def test_what_is_framed_is_there_in_order(blobs: list[Blob]) -> None:
    batches = [framed(blob) for blob in blobs]
    assert all(each.schema == SCHEMA and each.num_rows == 1 for each in batches)
    found = list(frames(pa.py_buffer(b"".join(each.column(0)[0].as_py() for each in batches))))
    assert [(each.relation, each.done) for each in found] == [
        (blob.relation, blob.done) for blob in blobs
    ]
    for frame, blob in zip(found, blobs, strict=True):
        assert list(decoded(frame.batches)) == list(decoded(blob.batch))
