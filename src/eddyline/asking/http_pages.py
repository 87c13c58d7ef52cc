"""How an HTTP service's answer goes on, page by page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NextLink:
    """Pages that say where the next one is: at this JMESPath, a link; the last has none."""

    path: str


@dataclass(frozen=True, slots=True)
class PageNumber:
    """Pages that are asked for by number, until one has no rows."""

    parameter: str
    first: int = 1


@dataclass(frozen=True, slots=True)
class Cursor:
    """Pages that say by which value the next one is asked for; the last says nothing."""

    path: str
    parameter: str
