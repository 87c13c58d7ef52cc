"""The queries of a version, kept up with the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from eddyline.standing.log.change_log import ChangeLog
from eddyline.standing.log.changes import Added, Change, Dropped, Paused, Resumed
from eddyline.standing.log.files import DamagedFileError
from eddyline.standing.log.snapshots import Place, Snapshot, kept_of
from eddyline.standing.query_template import QueryGroup, QueryTemplate


class StandingQuery(NamedTuple):
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

    came: tuple[StandingQuery, ...]
    went: tuple[int, ...]


class LiveQueries:
    """The queries that run, and those that stand still, at some version of a log."""

    def __init__(self) -> None:
        """Start at version 0, without any."""
        self.version = 0
        self.running: dict[int, StandingQuery] = {}
        self.paused: dict[int, tuple[StandingQuery, str]] = {}
        """Those that stand still, and why."""
        self.next_number = 0
        self.next_columns: dict[str, int] = {}
        """By stream the number after those of all derived columns that queries ever asked about."""
        self.passed_over: dict[int, DamagedFileError] = {}
        """Snapshots that were damaged, by version."""

    def go_to(self, version: int, log: ChangeLog) -> Difference:
        """Take on the changes up to a version; ValueError for one before this.

        From version 0 on, or where changes were removed, by way of a snapshot. The log may be
        compacted meanwhile. FileNotFoundError or DamagedFileError where no way is left: then
        this stands at the version before what is missing.
        """
        if version < self.version:
            raise ValueError(f"version {version} is before {self.version}")
        before = dict(self.running)
        if self.version < version and not self.version:
            self._leap(version, log)
        while self.version < version:
            try:
                changes = log.read(self.version + 1)
            except (FileNotFoundError, DamagedFileError):
                if not self._leap(version, log):
                    raise
            else:
                self.take(changes)
        came = tuple(query for n, query in self.running.items() if n not in before)
        went = tuple(n for n in before if n not in self.running)
        return Difference(came, went)

    def take(self, changes: tuple[Change, ...]) -> None:
        """Take on the changes of the next version."""
        for change in changes:
            self._take(change)
        self.version += 1

    def snapshot(self) -> Snapshot:
        """Return the queries as they are now; what was dropped is not in it."""
        positions: dict[int, list[int]] = {}
        groups: dict[int, QueryGroup] = {}
        for query in (*self.running.values(), *(query for query, _ in self.paused.values())):
            positions.setdefault(id(query.group), []).append(query.position)
            groups[id(query.group)] = query.group
        kept = {key: kept_of(group, positions[key]) for key, group in groups.items()}
        numbers = {key: number for number, key in enumerate(groups)}

        def place(query: StandingQuery) -> Place:
            key = id(query.group)
            position = kept[key].positions[query.position]
            return query.number, numbers[key], position, query.look_back is not None

        return Snapshot(
            self.version,
            self.next_number,
            tuple(kept_group.group for kept_group in kept.values()),
            tuple(place(query) for query in self.running.values()),
            tuple((place(query), reason) for query, reason in self.paused.values()),
            dict(self.next_columns),
        )

    def copy(self) -> LiveQueries:
        """Return the same queries, which stay as they are."""
        copied = LiveQueries()
        copied.version, copied.next_number = self.version, self.next_number
        copied.running, copied.paused = dict(self.running), dict(self.paused)
        copied.next_columns = dict(self.next_columns)
        return copied

    def _leap(self, version: int, log: ChangeLog) -> bool:
        """Go to the newest snapshot between here and a version; False where there is none.

        One that was removed since it was seen has given way to a newer one, or was not needed:
        the directory is looked at again. A damaged one is passed over.
        """
        seen: list[int] | None = None
        while True:
            candidates = [
                candidate for candidate in log.snapshots() if self.version < candidate <= version
            ]
            if candidates == seen:
                return False
            for candidate in reversed(candidates):
                try:
                    self._take_on(log.read_snapshot(candidate))
                except FileNotFoundError:
                    continue
                except DamagedFileError as error:
                    self.passed_over[candidate] = error
                    continue
                return True
            seen = candidates

    def _take_on(self, snapshot: Snapshot) -> None:
        """Be at a snapshot; queries that are here already stay the same objects."""
        here = self.running

        def query(place: Place) -> StandingQuery:
            number, group, position, looks_back = place
            known = here.get(number)
            if known is not None:
                return known
            of_group = snapshot.groups[group]
            return StandingQuery(
                number, of_group, position, of_group.look_back if looks_back else None
            )

        paused = {place[0]: (query(place), reason) for place, reason in snapshot.paused}
        self.running = {place[0]: query(place) for place in snapshot.running}
        self.paused = paused
        self.version, self.next_number = snapshot.version, snapshot.next_number
        self._take_columns(snapshot.next_columns)

    def _take(self, change: Change) -> None:
        match change:
            case Added(group):
                self.running |= {query.number: query for query in _queries(group)}
                self.next_number = max(self.next_number, group.first + len(group.names))
                self._take_columns({c.stream: c.number + 1 for c in group.template.derived})
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
                    self.running[new] = query._replace(number=new, look_back=None)
                self.next_number = max(self.next_number, first + len(numbers))

    def _take_columns(self, following: Mapping[str, int]) -> None:
        for stream, number in following.items():
            self.next_columns[stream] = max(self.next_columns.get(stream, 0), number)


def _queries(group: QueryGroup) -> Iterator[StandingQuery]:
    return (
        StandingQuery(group.first + position, group, position, group.look_back)
        for position in range(len(group.names))
    )
