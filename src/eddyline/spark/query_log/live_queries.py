"""The queries of a version, kept up with the log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from eddyline.spark.blocks.standing import QueryGroup, QueryTemplate
from eddyline.spark.query_log.change_log import ChangeLog
from eddyline.spark.query_log.changes import Added, Change, Dropped, Paused, Resumed


@dataclass(frozen=True, slots=True)
class LiveQuery:
    """A query: its number, and its position in the group that it came with."""

    number: int
    group: QueryGroup
    position: int
    look_back: int | None = None
    """How far it looks back as it comes, in microseconds before the latest of what is stored."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.group.names[self.position]

    @property
    def template(self) -> QueryTemplate:
        """What it has in common with the others of its group."""
        return self.group.template


@dataclass(frozen=True, slots=True)
class Difference:
    """Queries that came and went between two versions; one that was replaced did both."""

    came: tuple[LiveQuery, ...]
    went: tuple[int, ...]


class LiveQueries:
    """The queries that run, and those that stand still, at some version of a log."""

    def __init__(self) -> None:
        """Start at version 0, without any."""
        self.version = 0
        self.running: dict[int, LiveQuery] = {}
        self.paused: dict[int, tuple[LiveQuery, str]] = {}
        """Those that stand still, and why."""
        self.next_number = 0

    def go_to(self, version: int, log: ChangeLog) -> Difference:
        """Take on the changes up to a version; ValueError for one before this."""
        if version < self.version:
            raise ValueError(f"version {version} is before {self.version}")
        before = dict(self.running)
        while self.version < version:
            self.take(log.read(self.version + 1))
        came = tuple(query for n, query in self.running.items() if n not in before)
        went = tuple(n for n in before if n not in self.running)
        return Difference(came, went)

    def take(self, changes: tuple[Change, ...]) -> None:
        """Take on the changes of the next version."""
        for change in changes:
            self._take(change)
        self.version += 1

    def _take(self, change: Change) -> None:
        match change:
            case Added(group):
                self.running |= {query.number: query for query in _queries(group)}
                self.next_number = max(self.next_number, group.first + len(group.names))
            case Dropped(numbers):
                for number in numbers:
                    self.running.pop(number, None)
                    self.paused.pop(number, None)
            case Paused(numbers, reason):
                for number in numbers:
                    if number in self.running:
                        self.paused[number] = self.running.pop(number), reason
            case Resumed(numbers, first):
                for new, number in enumerate(numbers, first):
                    query, _ = self.paused.pop(number)
                    self.running[new] = replace(query, number=new, look_back=None)
                self.next_number = max(self.next_number, first + len(numbers))


def _queries(group: QueryGroup) -> Iterator[LiveQuery]:
    return (
        LiveQuery(group.first + position, group, position, group.look_back)
        for position in range(len(group.names))
    )
