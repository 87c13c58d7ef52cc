"""Counts the walk of a DataFrame through the rooms of the house, while ``adapt`` rewrites it.

PYTHONPATH=CHECKOUT/src python scripts/count_walk.py

A stay begins whenever a function in one folder calls one in another. The pass that rewrites a tree
node by node is counted apart: how often it changes folders depends on the query.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

from pyspark.sql.functions import udf

import eddyline

HOUSE: Final = Path(eddyline.__file__).parent

NODE_BY_NODE: Final = "blocks_in_eddies"
"""The pass that is counted apart."""


@dataclass
class Walk:
    """The rooms that a call leads through."""

    stays: list[str] = field(default_factory=list)
    apart: list[str] = field(default_factory=list)
    _rooms: list[tuple[str, bool]] = field(default_factory=list)

    def follow(self, frame: FrameType, event: str, _: object) -> None:
        """Hear of a call or a return, as :func:`sys.setprofile` tells of them."""
        code = frame.f_code
        room = room_of(code.co_filename)
        if room is None or event not in {"call", "return"}:
            return
        if event == "return":
            if self._rooms:
                self._rooms.pop()
            return
        before, inside = self._rooms[-1] if self._rooms else ("", False)
        inside = inside or code.co_name == NODE_BY_NODE
        if room != before:
            (self.apart if inside else self.stays).append(room)
        self._rooms.append((room, inside))


def room_of(file: str) -> str | None:
    """Return the folder of a source file within the house; None where it is in none."""
    folder = Path(file).parent
    return folder.relative_to(HOUSE).as_posix() if HOUSE in folder.parents else None


@contextmanager
def followed() -> Iterator[Walk]:
    """Follow the calls of this thread while the block runs."""
    walk = Walk()
    sys.setprofile(walk.follow)
    try:
        yield walk
    finally:
        sys.setprofile(None)


def queries(spark: Any) -> dict[str, Any]:  # noqa: ANN401 - a session of any PySpark
    """Return a filter of two functions, and a join with a function on each side."""
    even = udf(lambda number: number % 2 == 0, "boolean")
    tenth = udf(lambda number: number % 10 == 0, "boolean")
    numbers = spark.range(100)
    others = spark.range(50).withColumnRenamed("id", "other")
    joined = numbers.join(others, numbers.id == others.other)
    return {
        "filter": numbers.where(even("id") & tenth("id")),
        "join": joined.where(even("id") & tenth("other")),
    }


def main() -> int:
    """Print the counts for each query."""
    spark = eddyline.session("walk", master="local[1]")
    for name, frame in queries(spark).items():
        eddyline.adapt(frame)  # what is imported and compiled once is not part of the walk
        with followed() as walk:
            eddyline.adapt(frame)
        rooms = list(dict.fromkeys(walk.stays))
        print(f"{name}: {len(walk.stays)} stays in {len(rooms)} folders: {', '.join(rooms)}")
        within = set(walk.apart)
        print(f"  and {len(walk.apart)} in {len(within)} folders within {NODE_BY_NODE}")
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
