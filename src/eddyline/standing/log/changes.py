"""How a set of standing queries changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from eddyline.standing.query_template import QueryGroup


@dataclass(frozen=True, slots=True)
class Added:
    """Queries came."""

    group: QueryGroup


@dataclass(frozen=True, slots=True)
class Dropped:
    """Queries went, for good."""

    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Paused:
    """Queries stand still: they see no rows until they go on.

    ``reason`` is what went wrong, where they did not stop by anyone's wish.
    """

    numbers: tuple[int, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Resumed:
    """Queries that stood still go on, under new numbers from ``first`` on.

    A number stands for a query while it sees all rows: what it saw before does not meet what it
    sees from now on.
    """

    numbers: tuple[int, ...]
    first: int


Change: TypeAlias = Added | Dropped | Paused | Resumed
