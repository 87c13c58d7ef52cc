"""Lookup tables as plain data: what is known of them where plans are rewritten, and in tasks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlannedLookup:
    """A way to the rows of a table: by the values of its ``bind`` columns.

    ``name`` is what the server of lookups calls it, ``width`` how many calls it makes at a time,
    each for up to ``keys_per_call`` keys.
    """

    name: str
    bind: tuple[int, ...]
    width: int
    keys_per_call: int = 1


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
    """A lookup of a join block: whom a task asks, and which columns of the answer it takes.

    Those at the positions ``asked`` hold what was asked for instead, in the order of the bind
    columns; without them rows count that have their key as it was asked for, and no others. A call
    takes up to ``keys_per_call`` keys.
    """

    method: str
    columns: tuple[int, ...]
    width: int
    asked: tuple[int, ...] = ()
    keys_per_call: int = 1
