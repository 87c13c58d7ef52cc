"""Binaries of all rows put into one, also by a Spark whose ``listagg`` is missing."""

from __future__ import annotations

from eddyline.quirks.pyspark_at_hand import MINOR


def all_in_one(column: str) -> str:
    """Return an aggregate in SQL that puts binaries end to end; NULL where there are none.

    Spark 4.0 is the first with ``listagg``. Before, binaries pass as texts: Spark looks at no byte
    of what it casts or concatenates.
    """
    if MINOR >= (4, 0):
        return f"listagg({column})"
    texts = f"concat_ws('', collect_list(CAST({column} AS STRING)))"
    return f"CASE WHEN count({column}) > 0 THEN CAST({texts} AS BINARY) END"
