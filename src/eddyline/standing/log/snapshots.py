"""Snapshots: all queries of a version in one file, in the place of the changes that led there."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from eddyline.standing.query_template import QueryGroup

Place: TypeAlias = "tuple[int, int, int, bool]"
"""A query: its number, its group's number in the snapshot, its position there, whether it looks
back. A plain tuple: 100,000 are pickled in 0.08 s, and as dataclasses in 0.84."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The queries of a version, running and ``paused``, these with the reasons.

    Groups hold nothing of their queries that were dropped. ``next_columns`` has for each stream the
    number after those of all derived columns so far.
    """

    version: int
    next_number: int
    groups: tuple[QueryGroup, ...]
    running: tuple[Place, ...]
    paused: tuple[tuple[Place, str], ...]
    next_columns: Mapping[str, int] = field(default_factory=dict)

    def __setstate__(self, state: list[object]) -> None:
        """Take what was pickled: before there were derived columns it had a field less."""
        for name, value in zip(self.__slots__, [*state, {}], strict=False):
            object.__setattr__(self, name, value)

    def packed(self) -> bytes:
        """Return it as bytes; group by group, so that other threads have their turns."""
        rest = replace(self, groups=())
        return pickle.dumps([pickle.dumps(part, protocol=5) for part in (rest, *self.groups)])

    @classmethod
    def unpacked(cls, content: bytes) -> Snapshot:
        """Return what was packed; the errors of pickle where it is something else."""
        first, *groups = pickle.loads(content)  # noqa: S301 - our own, checked
        rest = pickle.loads(first)  # noqa: S301
        if not isinstance(rest, Snapshot):
            raise TypeError(f"a snapshot, not {type(rest).__name__}")
        return replace(rest, groups=tuple(map(pickle.loads, groups)))


class KeptQueries(NamedTuple):
    """The part of a group that is kept, and the new position of each query by its old one."""

    group: QueryGroup
    positions: dict[int, int]


def kept_of(group: QueryGroup, positions: Iterable[int]) -> KeptQueries:
    """Return a group with some of its queries only."""
    chosen = sorted(set(positions))
    new = {position: number for number, position in enumerate(chosen)}
    if len(chosen) == len(group.names):
        return KeptQueries(group, new)
    parameters = group.parameters
    names = tuple(group.names[position] for position in chosen)
    if parameters.num_columns:
        parameters = parameters.take(chosen)
    return KeptQueries(replace(group, names=names, parameters=parameters), new)


def needed_files(
    needed: Iterable[int], snapshots: Sequence[int], last: int
) -> tuple[set[int], set[int]]:
    """Return the snapshots and the changes by which versions are reached, each from 0 on.

    A version is reached from the newest snapshot that is not after it. The ``last`` one is
    reached from the snapshot before that, too: a file can be damaged.

    >>> snapshots, changes = needed_files({3, 12}, [5, 10, 15], last=16)
    >>> sorted(snapshots), sorted(changes)
    ([10, 15], [1, 2, 3, 11, 12, 13, 14, 15, 16])
    """
    ordered = sorted(snapshots)
    before = ordered[-2] if len(ordered) > 1 else 0
    reached = {before: last}  # the last version reached, by what it is reached from
    for version in needed:
        start = max((snapshot for snapshot in ordered if snapshot <= version), default=0)
        reached[start] = max(version, reached.get(start, 0))
    changes = {change for start, stop in reached.items() for change in range(start + 1, stop + 1)}
    return {*ordered[-2:], *reached} - {0}, changes
