"""A client of Spark Connect that runs every shape plainly and adapted, and tells what it saw.

It runs in a process of its own, as in one that has a JVM functions would be classic ones.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import eddyline

SPARK = SparkSession.builder.getOrCreate()  # functions are Connect's from here on

from tests.connect.client_shapes import CLIENT_SHAPES, ClientShape  # noqa: E402 - likewise
from tests.planner.shapes import SHAPES, Shape  # noqa: E402 - which declares some


def rows(df: DataFrame) -> list[str]:
    """Return the bag of rows."""
    return sorted(repr(tuple(row)) for row in df.collect())


def told_of(shape: Shape) -> dict[str, object]:
    """Return what becomes of a shape."""
    try:
        df = shape.build(SPARK)
        plain = rows(df)
    except Exception as error:  # noqa: BLE001 - whatever Connect lacks
        return {"shape": shape.name, "lacking": f"{type(error).__name__}: {error}"[:200]}
    fast = eddyline.adapt(df)
    same = fast is df or (rows(fast) == plain and fast.schema == df.schema)
    of_filters = eddyline.explain(eddyline.adapt(df, remember=False))
    with redirect_stdout(io.StringIO()) as planned:
        fast.explain()
    reports = eddyline.report(fast).blocks
    return {
        "shape": shape.name,
        "same": same,
        "rows": len(plain),
        "blocks": [list(block.predicates) for block in of_filters.blocks],
        "left": [str(left) for left in of_filters.left],
        "planned": "eddy[" in planned.getvalue(),
        "reported": [block.record is not None for block in reports],
    }


def told_of_client_shape(shape: ClientShape) -> dict[str, object]:
    """Return what becomes of a shape that is a client's."""
    for key, value in shape.settings.items():
        SPARK.conf.set(key, value)
    try:
        df = shape.build(SPARK)
        fast = eddyline.adapt(df)
        found = {
            "rows": [outcome(df), outcome(fast)],
            "schemas": [df.schema.json(), fast.schema.json()],
            "explained": str(eddyline.explain(fast)),
        }
    finally:
        for key in shape.settings:
            SPARK.conf.unset(key)
    return {"shape": shape.name, **found}


def outcome(df: DataFrame) -> list[str] | str:
    """Return the bag of rows, or the error in place of it."""
    try:
        return rows(df)
    except Exception as error:  # noqa: BLE001 - it is compared
        return f"{type(error).__name__}: {error}"


def told(names: list[str]) -> Iterator[dict[str, object]]:
    for of_client in CLIENT_SHAPES:
        if not names or of_client.name in names:
            yield told_of_client_shape(of_client)
    for shape in SHAPES:
        if not names or shape.name in names:
            yield told_of(shape)


if __name__ == "__main__":
    with Path(os.environ["TOLD"]).open("w", encoding="utf-8") as file:
        for entry in told(sys.argv[1:]):
            print(json.dumps(entry), file=file, flush=True)
