"""What a join has done, in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eddyline.engine.components import ComponentStores
from eddyline.engine.eddy import Eddy
from eddyline.engine.modules.concurrent_index_access import ConcurrentIndexAccess
from eddyline.engine.modules.index_access import IndexAccess, LookupStatistics
from eddyline.engine.modules.join_selection import JoinSelection
from eddyline.engine.modules.selection import SelectionStatistics
from eddyline.engine.modules.stem import SteM, SteMStatistics
from eddyline.engine.relation import CallStatistics
from eddyline.engine.statistics import EddyStatistics
from eddyline.expressions import Call


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


def statistics_of(
    components: ComponentStores,
    read: Sequence[int],
    rows_out: int,
    stems: Sequence[SteM],
    lookups: Sequence[IndexAccess | ConcurrentIndexAccess],
    selections: Sequence[JoinSelection],
    eddy: Eddy,
) -> JoinStatistics:
    """Return what was done by an eddy whose modules are the selections, SteMs and lookups.

    ``read`` are the rows of each relation that its scan gave.
    """
    came = list(read)
    for (relation, _), lookup in zip(components.query.lookups, lookups, strict=True):
        came[relation] += lookup.rows
    first_lookup = len(selections) + len(stems)
    return JoinStatistics(
        tuple(came),
        rows_out,
        tuple(stem.statistics() for stem in stems),
        tuple(
            lookup.statistics(eddy.seconds_in(first_lookup + number))
            for number, lookup in enumerate(lookups)
        ),
        tuple(
            selection.statistics(eddy.spent_in(number))
            for number, selection in enumerate(selections)
        ),
        _calls(components, came),
        eddy.statistics(),
    )


def _calls(components: ComponentStores, came: Sequence[int]) -> tuple[CallStatistics, ...]:
    """Return the calls made for rows in SteMs and for those that only passed, together.

    Possible are the rows of a call's relation; of several relations the most of any.
    """
    calls: dict[Call, CallStatistics] = {}
    holders = {id(part): part for part in (*components.built, *components.passing)}
    for holder in holders.values():
        for statistics in holder.statistics():
            before = calls.get(statistics.call)
            mask = components.query.relations_in(statistics.call) or 1
            calls[statistics.call] = CallStatistics(
                statistics.call,
                statistics.calls + (before.calls if before else 0),
                max(rows for r, rows in enumerate(came) if mask >> r & 1),
                statistics.seconds + (before.seconds if before else 0.0),
            )
    return tuple(calls.values())
