"""What queries of the job that is killed must find in events from before they came.

A selection that looks back has all events of micro-batches before its first, as far back as it
looks. An aggregate has its windows from one on in its job, and all before, as far back, from the
history. Where a query went before it had seen all, it has the parts that had begun.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Row

from bench.standing.events_taken import FilesByStream
from eddyline.standing.engine.aggregation.time_window import TimeWindow
from eddyline.standing.history.backfill_log import BackfillLog
from eddyline.standing.history.backfill_plan import BackfillPart, first_start
from eddyline.standing.log.live_queries import StandingQuery

Ask: TypeAlias = "Callable[[str, Sequence[int], str], list[Row]]"
"""Gives what plain Spark finds for a text in those trades of files for which a condition holds."""

_NEVER = -(1 << 62)


def own_sql(query: StandingQuery) -> str:
    """Return what a query asks, or one of the two branches that it has."""
    return query.template.sql.split("UNION ALL")[query.template.branch]


class OldRows:
    """What plain Spark finds in old events."""

    def __init__(
        self,
        directory: Path,
        taken: Mapping[str, list[FilesByStream]],
        running: set[int],
        ask: Ask,
        delay: int,
    ) -> None:
        """Take which files batches had by job, which queries run at the end, and how to ask.

        ``delay`` is that of the watermark, in seconds.
        """
        self._directory = directory
        self._selecting = [batch["trades"] for batch in taken["select trades"]]
        self._aggregating = [batch["trades"] for batch in taken["aggregate trades"]]
        self._running = running
        self._ask = ask
        self._delay = delay * 1_000_000
        self._log = BackfillLog(directory / "state" / "history" / "backfills")
        self._plans = {number: plan for plan in self._log.plans() for number in plan.numbers}
        self.backfills = self.unfinished = self.with_results = 0

    def selected(self, query: StandingQuery, seam: int) -> list[Row]:
        """Return what a selection finds in events before a micro-batch, as far back as it looks."""
        self.backfills += 1
        before = range(self._selecting[seam].start)
        since = self._latest(before) - (query.look_back or 0)
        condition = f"unix_micros(time) >= {since}"
        parts = self._begun(query)
        rows: list[Row] = []
        if parts is None:
            rows = self._ask(own_sql(query), before, condition)
        for part in parts or ():
            if part.events.since != since or part.events.last >= seam:
                raise AssertionError(f"{query.name} looks at {part} before {seam} from {since} on")
            first, last = self._selecting[part.events.first], self._selecting[part.events.last]
            rows += self._ask(own_sql(query), range(first.start, last.stop), condition)
        self.with_results += bool(rows)
        return rows

    def windows(self, query: StandingQuery, of_query: Sequence[int]) -> list[Row]:
        """Return all windows of a query that looks back: those in its job, and those before."""
        self.backfills += 1
        sql, plan = own_sql(query), self._plans[query.number]
        first, last = self._aggregating[min(of_query)], self._aggregating[max(of_query)]
        window = _window_of(query)
        closed = self._watermark(range(last.start))
        here = [
            row for row in self._ask(sql, range(last.stop), "TRUE") if ends(row, query) <= closed
        ]
        if plan.window is None:
            return here
        until = first_start(window, self._latest(range(first.start)) + 1)
        here = [row for row in here if began(row) >= until]
        every = range(self._selecting[-1].stop)
        old = self._ask(sql, every, "TRUE")
        parts = self._begun(query)
        if parts is None:  # it has looked at all that has closed
            since = [part.events.since for part in plan.parts]
            since += [] if plan.waiting is None else [plan.waiting]
            spans = [(min(since, default=until), until)]
            closed = self._watermark(every)
            old = [row for row in old if ends(row, query) <= closed]
        else:
            spans = [(part.events.since, part.starts_until or 0) for part in parts]
        if max((end for _, end in spans), default=until) > until:
            raise AssertionError(f"{query.name} sees windows twice: {spans}, and from {until} on")
        old = [row for row in old if any(since <= began(row) < end for since, end in spans)]
        self.with_results += bool(old)
        return here + old

    def _begun(self, query: StandingQuery) -> list[BackfillPart] | None:
        """Return the parts that a query has seen; None where these are all."""
        if query.number in self._running:
            return None
        self.unfinished += 1
        turn, parts = 0, []
        while (begun := self._log.begun(self._plans[query.number].number, turn)) is not None:
            parts += [begun.part] if query.number in begun.numbers else []
            turn += 1
        return parts

    def _latest(self, files: Sequence[int]) -> int:
        """Return the latest time in files of trades, in microseconds."""
        paths = [self._directory / "trades" / f"{file:05}.parquet" for file in files]
        times = [pq.read_table(path)["time"].cast(pa.int64()).to_pylist() for path in paths]
        return max(map(max, times), default=_NEVER)

    def _watermark(self, files: Sequence[int]) -> int:
        return max(self._latest(files) - self._delay, 0)


def began(row: Row) -> int:
    """Return when the window of a row begins, in microseconds since 1970."""
    return int(row["began"].timestamp()) * 1_000_000


def ends(row: Row, query: StandingQuery) -> int:
    """Return when the window of a row ends, in microseconds since 1970."""
    return began(row) + _window_of(query).size


def _window_of(query: StandingQuery) -> TimeWindow:
    if query.template.aggregated is None:
        raise ValueError(f"{query.name} aggregates nothing")
    window = query.template.aggregated.aggregation.grouping.window
    if not isinstance(window, TimeWindow):
        raise TypeError(f"{query.name} has sessions, which take no backfill")
    return window
