"""What is to be done for new queries that ask for old data, as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, NamedTuple

from eddyline.standing.engine.aggregation.time_window import TimeWindow
from eddyline.standing.engine.shared_query import NEVER
from eddyline.standing.history.event_history import OldEvents
from eddyline.standing.history.kept_segments import Segment

PART_ROWS: Final = 500_000
"""Events of a part, about: a second or so of one core, after which others have their turn."""


class BackfillPart(NamedTuple):
    """A part of a backfill: some old events, all results of which are put out together.

    Of aggregates these are the windows that begin from the first of their event times on, and
    before ``starts_until``, in microseconds; the events are all that these windows have.
    """

    events: OldEvents
    starts_until: int | None = None


@dataclass(frozen=True)
class BackfillPlan:
    """The old data of queries that came in one micro-batch and look back equally far.

    ``numbers`` are those of the queries, the first of which names it, ``job`` and ``stream`` what
    they are of. ``parts`` are what can be done at once.

    Where they aggregate in a ``window``, they see those that begin before ``until`` only here, and
    all others only in the job. The windows from ``waiting`` on and before ``until``, if there are
    any, each get a part when the watermark of the history has passed their ends, with the events
    that have come by then; ``after`` is the last micro-batch of the history that the other parts
    have the events of.
    """

    numbers: tuple[int, ...]
    job: str
    stream: str
    parts: tuple[BackfillPart, ...] = ()
    window: TimeWindow | None = None
    until: int | None = None
    waiting: int | None = None
    after: int = -1
    delay: int = 0

    @property
    def number(self) -> int:
        """The number of its first query, which names it."""
        return self.numbers[0]

    def needed(self) -> int | None:
        """Return the event time from which on it needs events; None where it needs none."""
        since = [part.events.since for part in self.parts]
        return min(since if self.waiting is None else [*since, self.waiting], default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return it as what JSON can say."""
        return asdict(self)

    @classmethod
    def of(cls, saved: dict[str, Any]) -> BackfillPlan:
        """Return what was saved."""
        window = saved["window"]
        return cls(
            **saved
            | {
                "numbers": tuple(saved["numbers"]),
                "parts": tuple(map(part_of, saved["parts"])),
                "window": None if window is None else TimeWindow(**window),
            }
        )


def part_of(saved: Sequence[Any]) -> BackfillPart:
    """Return a part that was saved as JSON."""
    events, starts_until = saved
    return BackfillPart(OldEvents(*events), starts_until)


def of_selections(
    plan: BackfillPlan, segments: Sequence[Segment], seam: int, since: int
) -> BackfillPlan:
    """Return a plan with the events before the micro-batch ``seam``, from an event time on."""
    parts = []
    chosen: list[Segment] = []
    for segment in segments:
        if segment.first >= seam or segment.latest is None or segment.latest < since:
            continue
        chosen.append(segment)
        if sum(one.rows for one in chosen) >= PART_ROWS:
            parts.append(_together(chosen, seam, since))
            chosen = []
    if chosen:
        parts.append(_together(chosen, seam, since))
    return replace(plan, parts=tuple(parts))


def _together(segments: Sequence[Segment], seam: int, since: int) -> BackfillPart:
    last = min(segments[-1].last, seam - 1)
    return BackfillPart(OldEvents(segments[0].first, last, since, NEVER))


def of_windows(plan: BackfillPlan, segments: Sequence[Segment], since: int) -> BackfillPlan:
    """Return a plan with the windows that begin from an event time on, and before its ``until``.

    Those that end by the watermark after the last of the segments are there at once.
    """
    window, until = plan.window, plan.until
    if window is None or until is None:
        raise ValueError("a plan of windows says which")
    closed = watermark(latest_in(segments), plan.delay)
    first = first_start(window, since)
    # No later than the first window that ends after the watermark.
    settled = min(first_start(window, closed - window.size + 1), until)
    events = sum(s.rows for s in segments if s.latest is not None and s.latest >= first)
    last = max((segment.last for segment in segments), default=-1)
    parts = []
    earliest = min((s.earliest for s in segments if s.earliest is not None), default=settled)
    begin = max(first, first_start(window, earliest - window.size + 1))  # none before has any
    stretch = max((settled - begin) * PART_ROWS // max(events, 1), window.size)
    while begin < settled:
        end = min(first_start(window, begin + stretch), settled)
        parts.append(windows_part(window, begin, end, last))
        begin = end
    waiting = max(first, settled)
    return replace(
        plan, parts=tuple(parts), waiting=waiting if waiting < until else None, after=last
    )


def windows_part(window: TimeWindow, begin: int, end: int, last: int) -> BackfillPart:
    """Return the part with the windows that begin from one time on and before another.

    Of the events of micro-batches up to ``last``.
    """
    return BackfillPart(OldEvents(0, last, begin, end - window.slide + window.size), end)


def first_start(window: TimeWindow, time: int) -> int:
    """Return when the first window begins that does not begin before a time.

    >>> window = TimeWindow(size=60, slide=20, start=5)
    >>> first_start(window, 5), first_start(window, 6)
    (5, 25)
    """
    return time + (window.start - time) % window.slide


def closing(
    plan: BackfillPlan, waiting: int, segments: Sequence[Segment]
) -> Iterator[BackfillPart]:
    """Yield parts with the windows of a plan from ``waiting`` on that have closed.

    A micro-batch closes the windows that end by the watermark after it. They have the events of
    this and of earlier micro-batches: those after it would have been too late.
    """
    window, until = plan.window, plan.until
    if window is None or until is None:
        return
    seen = latest_in([segment for segment in segments if segment.last <= plan.after])
    for segment in segments:
        if segment.last <= plan.after:
            continue
        seen = max(seen, latest_in([segment]))
        end = min(first_start(window, watermark(seen, plan.delay) - window.size + 1), until)
        if end > waiting:
            yield windows_part(window, waiting, end, segment.last)
            waiting = end


def watermark(latest: int, delay: int) -> int:
    """Return the watermark after events up to a time, as Spark has it: of whole milliseconds.

    >>> watermark(5_000_999, 2_000_000)
    3000000
    """
    return latest // 1000 * 1000 - delay


def latest_in(segments: Sequence[Segment]) -> int:
    """Return the latest event time of segments; the least number where there is none."""
    return max((s.latest for s in segments if s.latest is not None), default=-NEVER)
