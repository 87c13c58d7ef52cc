"""What a join has done, in numbers."""

from __future__ import annotations

from dataclasses import dataclass

from eddyline.engine.modules.lookup_requests import LookupStatistics
from eddyline.engine.modules.selection import SelectionStatistics
from eddyline.engine.modules.stem import SteMStatistics
from eddyline.engine.relation import CallStatistics
from eddyline.engine.statistics import EddyStatistics


@dataclass(frozen=True, slots=True)
class JoinStatistics:
    """What a join eddy did so far; ``read`` are the rows of each relation, looked up or read."""

    read: tuple[int, ...]
    rows_out: int
    stems: tuple[SteMStatistics, ...]
    lookups: tuple[LookupStatistics, ...]
    predicates: tuple[SelectionStatistics, ...]
    calls: tuple[CallStatistics, ...]
    eddy: EddyStatistics
