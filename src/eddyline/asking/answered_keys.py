"""Which of the keys of a call each row of the answer belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from eddyline.asking.lookup_source import Key, LookedUpTable
from eddyline.asking.source_rows import described
from eddyline.engine.storage.key_set import KeySet


@dataclass(frozen=True, slots=True)
class AnsweredKeys:
    """The rows of an answer by key.

    ``rows`` are those of each key, ``unmatched`` are the rows of none. Of a single key all rows
    may have another spelling, which is then ``respelled``.
    """

    rows: tuple[pa.RecordBatch, ...]
    unmatched: pa.RecordBatch
    respelled: bool = False
    foreign: bool = False

    @property
    def nothing_matches(self) -> bool:
        """Whether there are rows, and none is of any key."""
        return (
            self.unmatched.num_rows > 0
            and not self.foreign
            and not any(each.num_rows for each in self.rows)
        )


def answered_keys(
    table: LookedUpTable, batch: pa.RecordBatch, keys: Sequence[Key], *, singly: bool
) -> AnsweredKeys:
    """Tell apart the rows that a source has given for distinct keys, by their bind columns.

    A source may spell a key in another way than it was asked for: as ``A`` for ``a``, with
    blanks at its end, by the number that a name stands for. Where keys are asked for ``singly``,
    the rows can only belong to the key, if they are all of one, without NULL, and none is as it was
    asked for. Where several may be, nobody knows, and the
    row is unmatched: also in a call that happens to be for one, since it must make no difference
    which keys go together. Takes time in proportion to rows and keys.

    >>> table = LookedUpTable("t", ("k", "v"), (pa.string(), pa.int64()), (0,))
    >>> rows = pa.RecordBatch.from_pylist([{"k": "A", "v": 1}], schema=table.schema)
    >>> answered_keys(table, rows, [("a",)], singly=True).respelled
    True
    >>> answered_keys(table, rows, [("a",), ("b",)], singly=False).nothing_matches
    True
    """
    if not batch.num_rows:
        return AnsweredKeys((batch,) * len(keys), batch)
    types = [table.types[column] for column in table.bind]
    wanted = KeySet(types)
    wanted.add([pa.array([k[n] for k in keys], kind) for n, kind in enumerate(types)])
    given = [batch.column(column) for column in table.bind]
    of_rows = wanted.find(given)
    order = np.argsort(of_rows, kind="stable")
    in_order = batch.take(pa.array(order))
    ends = np.searchsorted(of_rows[order], np.arange(-1, len(keys)), side="right").tolist()
    rows = tuple(in_order.slice(start, stop - start) for start, stop in pairwise(ends))
    whole = not any(column.null_count for column in given)  # NULL is equal to nothing
    if singly and whole and ends[-1] == ends[0] and len(KeySet(types).add(given)) == 1:
        return AnsweredKeys((batch,), batch.slice(0, 0), respelled=True)
    # More keys than were asked for, or none at all: a source that gives all that it has.
    foreign = not whole or len(KeySet(types).add(given)) > len(keys)
    return AnsweredKeys(rows, in_order.slice(0, ends[0]), foreign=foreign)


def why_unmatched(
    table: LookedUpTable, unmatched: pa.RecordBatch, *, none: bool, singly: bool
) -> str:
    """Say what came instead of what was asked for, and what to do; ``none`` matches any key."""
    columns = [unmatched.column(column).slice(0, 1).to_pylist() for column in table.bind]
    (came,) = zip(*columns, strict=True)
    rows = unmatched.num_rows
    what = (
        f"of the rows that came ({rows:,}) none has a key that was asked for"
        if none
        else f"rows came ({rows:,}) with keys that were not asked for, and are left out"
    )
    advice = (
        " Let the source give each key as it was asked for, or ask for one at a time "
        "(keys_per_call=1): then an answer can only belong to that key."
        if not singly
        else ""
    )
    return f"{what}; the first came with {described(table, [came])}.{advice}"
