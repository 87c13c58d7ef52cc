"""What aggregates queries ask for, as frozen data."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from eddyline.engine.join_graph import Place
from eddyline.expressions import Expression
from eddyline.standing.engine.aggregation.aggregate_functions import Aggregate
from eddyline.standing.engine.aggregation.time_window import SessionWindow, TimeWindow


@dataclass(frozen=True, slots=True)
class Grouping:
    """How rows are grouped: by windows or sessions of a time, and by the values of keys.

    Queries that have it in common share their aggregates. A window closes ``delay`` microseconds
    after the watermark has passed its end.
    """

    window: TimeWindow | SessionWindow
    time: Place
    keys: tuple[Expression, ...]
    delay: int = 0

    @property
    def label(self) -> str:
        """A text that no other grouping has, and that stays the same in every process."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Aggregation:
    """The aggregates of a query: what there is of each window and group."""

    grouping: Grouping
    aggregates: tuple[Aggregate, ...]
