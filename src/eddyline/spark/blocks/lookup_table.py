"""Lookup tables as plain data: what is known of them where plans are rewritten, and in tasks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlannedLookup:
    """A way to the rows of a table: by the values of its ``bind`` columns.

    ``name`` is what the server of lookups calls it, ``width`` how many calls it makes at a time.
    """

    name: str
    bind: tuple[int, ...]
    width: int


@dataclass(frozen=True, slots=True)
class LookupTable:
    """A table whose rows are looked up.

    ``types`` are Spark's, as JSON; ``key`` tells rows apart. It may have a ``scan`` as well.
    """

    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    key: tuple[int, ...]
    methods: tuple[PlannedLookup, ...]
    scan: bool = False


@dataclass(frozen=True, slots=True)
class BlockLookup:
    """A lookup of a join block: whom a task asks, and which columns of the answer it takes."""

    method: str
    columns: tuple[int, ...]
    width: int
