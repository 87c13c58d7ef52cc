"""Keeps account of actions by what their tasks tell; knows neither Spark nor sockets."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from eddyline.monitor.live_query import LiveQuery, QueryState, totals_of
from eddyline.reports.block_report import BlockReport
from eddyline.reports.merging import merge
from eddyline.reports.records import TaskRecord
from eddyline.reports.wording import one_line
from eddyline.tasks.live_news import News, NewsTask

KEPT_WHOLE: Final = 200
"""Past actions of which the blocks' records are kept, some 40 kB each."""

KEPT: Final = 10_000
"""Past actions of which it is kept what they were, some 500 bytes each."""

WAITS: Final = 200
"""Waits for quota that are kept of an action, the latest ones."""

LOOKED_AT: Final = 1.0
"""Seconds within which an action that waits is looked at again, or it has not waited meanwhile."""


@dataclass(frozen=True, slots=True)
class StageCount:
    """How many tasks a stage has, and how many of them have ended."""

    tasks: int
    done: int


@dataclass(slots=True)
class _Block:
    """What a block has done in an action: ended tasks together, and those that run, by attempt.

    What was last heard of a task counts until it is said to have ended, also after the action has:
    a connection may be slower than Spark, or broken.
    """

    ended: TaskRecord | None = None
    over: set[int] = field(default_factory=set)  # attempts that have ended
    running: dict[int, TaskRecord] = field(default_factory=dict)

    def take(self, attempt: int, record: TaskRecord, *, ended: bool) -> None:
        if attempt in self.over:
            return
        if not ended:
            self.running[attempt] = record
            return
        self.running.pop(attempt, None)
        self.over.add(attempt)
        self.ended = record if self.ended is None else merge(self.ended, record)

    def total(self) -> TaskRecord | None:
        total = self.ended
        for record in self.running.values():
            total = record if total is None else merge(total, record)
        return total


@dataclass(slots=True)
class _Entry:
    """An action, with all that is known of its blocks."""

    query: LiveQuery
    blocks: dict[str, _Block] = field(default_factory=dict)
    stages: dict[int, StageCount | None] = field(default_factory=dict)


class QueryBook:
    """All actions that tasks have reported, running and past; usable from any thread."""

    def __init__(
        self,
        block_report: Callable[[str, TaskRecord], BlockReport | None],
        now: Callable[[], float],
    ) -> None:
        """Start with none.

        ``block_report`` says what is known of a block by the key of its records, ``now`` gives
        the seconds since the epoch.
        """
        self._block_report = block_report
        self._now = now
        self._entries: OrderedDict[int, _Entry] = OrderedDict()  # those with blocks, by number
        self._by_action: dict[tuple[str, int], int] = {}
        self._actions: dict[int, tuple[str, int]] = {}  # the other way round
        self._past: OrderedDict[int, LiveQuery] = OrderedDict()  # those without
        self._number = 0
        self._version = 0
        self._changed = threading.Condition()

    def take(self, news: News) -> None:
        """Learn what a task has done."""
        with self._changed:
            entry = self._entry(news.place)
            if entry is None:
                return  # of an action that is forgotten
            entry.stages.setdefault(news.place.stage, None)
            block = entry.blocks.setdefault(news.block, _Block())
            block.take(news.place.attempt, news.record, ended=news.ended)
            self._tell()

    def forget(self) -> None:
        """Keep of past actions only what they were, and nothing of their blocks."""
        with self._changed:
            self._thin(0)
            self._tell()

    def running(self) -> list[tuple[LiveQuery, list[int]]]:
        """Return the actions that run, with the stages that eddies run in."""
        with self._changed:
            return [
                (entry.query, list(entry.stages))
                for entry in self._entries.values()
                if entry.query.state is QueryState.RUNNING
            ]

    def mark(
        self,
        number: int,
        stages: Mapping[int, StageCount],
        *,
        description: str | None = None,
        started: float | None = None,
        ended: float | None = None,
        state: QueryState = QueryState.RUNNING,
        error: str | None = None,
        waiting: str = "",
    ) -> None:
        """Learn what Spark says of an action; None where it says nothing new."""
        with self._changed:
            entry = self._entries.get(number)
            if entry is None:
                return
            before = entry.query, dict(entry.stages)
            entry.stages.update(stages)
            counts = [count for count in entry.stages.values() if count is not None]
            entry.query = replace(
                entry.query,
                description=one_line(description) if description else entry.query.description,
                started=entry.query.started if started is None else started,
                ended=ended,
                state=state,
                error=error,
                waiting=waiting,
                waits=self._waits(entry.query, waiting),
                tasks_done=sum(count.done for count in counts),
                tasks=sum(count.tasks for count in counts),
            )
            if state is not QueryState.RUNNING:
                self._thin(KEPT_WHOLE)
            if (entry.query, entry.stages) != before:
                self._tell()

    def end_all(self) -> None:
        """Spark has stopped."""
        for query, _ in self.running():
            self.mark(query.number, {}, ended=self._now(), state=QueryState.UNKNOWN)

    def query(self, number: int) -> LiveQuery | None:
        """Return an action by its number; None where it is not known (any more)."""
        with self._changed:
            entry = self._entries.get(number)
            if entry is None:
                return self._past.get(number)
            entry.query = query = self._whole(entry)
            return query

    def queries(
        self, *, before: int | None = None, most: int = 50, find: str = ""
    ) -> Sequence[LiveQuery]:
        """Return actions, the latest first, whose names have a text in them.

        ``before`` is a number: only actions that began earlier are wanted.
        """
        with self._changed:
            numbers = [*reversed(self._entries), *reversed(self._past)]
        queries: list[LiveQuery] = []
        for number in numbers:
            if len(queries) == most:
                break
            if before is not None and number >= before:
                continue
            query = self.query(number)
            if query is not None and find.casefold() in query.name.casefold():
                queries.append(query)
        return queries

    @property
    def count(self) -> int:
        """Actions that are known."""
        with self._changed:
            return len(self._entries) + len(self._past)

    def wait(self, version: int, timeout: float) -> int:
        """Wait until something is newer than ``version``, so many seconds at most; return it."""
        with self._changed:
            self._changed.wait_for(lambda: self._version != version, timeout)
            return self._version

    def _entry(self, place: NewsTask) -> _Entry | None:
        key = ("stage", place.stage) if place.action is None else ("action", place.action)
        number = self._by_action.get(key)
        if number is not None:
            return self._entries.get(number)
        self._number = number = self._number + 1
        self._by_action[key], self._actions[number] = number, key
        kind, which = key
        query = LiveQuery(
            number=number,
            action=place.action,
            description=f"{kind} {which}",
            about="",
            state=QueryState.RUNNING,
            started=self._now(),
            ended=None,
            error=None,
            tasks_done=0,
            tasks=0,
            totals=totals_of(()),
            blocks=(),
        )
        entry = self._entries[number] = _Entry(query)
        return entry

    def _waits(self, query: LiveQuery, waiting: str) -> tuple[tuple[float, float], ...]:
        """Return when an action has waited for quota, as far as it was looked at."""
        if not waiting:
            return query.waits
        began = now = self._now()
        before = query.waits
        if before and now - before[-1][1] <= LOOKED_AT:
            *earlier, (began, _) = before
            before = tuple(earlier)
        return (*before, (began, now))[-WAITS:]

    def _whole(self, entry: _Entry) -> LiveQuery:
        reports = []
        for key, block in entry.blocks.items():
            record = block.total()
            report = None if record is None else self._block_report(key, record)
            if report is not None:
                reports.append(report)
        blocks = tuple(reports)
        about = "; ".join(dict.fromkeys(one_line(block.title) for block in blocks))
        return replace(entry.query, blocks=blocks, about=about, totals=totals_of(blocks))

    def _thin(self, whole: int) -> None:
        """Keep less of what has ended long ago, and nothing of what was before that."""
        ended = [n for n, entry in self._entries.items() if entry.query.ended is not None]
        for number in ended[: max(len(ended) - whole, 0)]:
            entry = self._entries.pop(number)
            self._past[number] = replace(self._whole(entry), blocks=())
        while len(self._past) > KEPT:
            forgotten, _ = self._past.popitem(last=False)
            del self._by_action[self._actions.pop(forgotten)]

    def _tell(self) -> None:
        self._version += 1
        self._changed.notify_all()
