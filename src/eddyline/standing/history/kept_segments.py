"""Segments of a history: the events of some micro-batches, and which segments there are."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from eddyline.errors import StateError
from eddyline.standing.log.files import DamagedFileError, read_whole, write_new


class Segment(NamedTuple):
    """The events of the micro-batches from ``first`` to ``last``, ``rows`` of them.

    Their event times are from ``earliest`` to ``latest``, in microseconds; None where no event has
    one.
    """

    first: int
    last: int
    rows: int
    earliest: int | None
    latest: int | None

    @property
    def name(self) -> str:
        """The name of its directory, and of the file that says it is there as a whole."""
        return f"{self.first:010}-{self.last:010}"


class SegmentLog:
    """Which segments of a stream are there; only what has an entry is read.

    Events are written before their entry is, and removed after it. So what a crash leaves without
    an entry is nothing, and one that was merged into another is still whole or already in it.
    """

    def __init__(self, directory: Path) -> None:
        """Open a directory, which is made if it is not there, and remove what nobody reads."""
        self._entries, self._events = directory / "segments", directory / "events"
        for path in (self._entries, self._events):
            path.mkdir(parents=True, exist_ok=True)
        for path in self._entries.glob(".*"):
            path.unlink(missing_ok=True)
        found = sorted(map(_read, self._entries.glob("[0-9]*")), key=lambda one: -one.last)
        self.segments: list[Segment] = []
        for segment in sorted(found, key=lambda one: one.first - one.last):  # the longest first
            if any(one.first <= segment.first <= one.last for one in self.segments):
                self._entry(segment).unlink()
            else:
                self.segments.append(segment)
        self.segments.sort()
        known = {segment.name for segment in self.segments}
        for path in self._events.iterdir():
            if path.name not in known:
                shutil.rmtree(path)

    def place(self, segment: Segment) -> Path:
        """Return where the events of a segment are, or are to be."""
        return self._events / segment.name

    def add(self, segment: Segment, instead: Collection[Segment] = ()) -> None:
        """Take in a segment whose events are there, in the place of others."""
        write_new(self._entry(segment), json.dumps(segment._asdict()).encode())
        self.segments = sorted({*self.segments, segment} - set(instead))
        self._remove(instead)

    def leave_out(self, segment: Segment) -> None:
        """Remove what was written for a segment that is to have no entry."""
        shutil.rmtree(self.place(segment), ignore_errors=True)

    def remove(self, gone: Collection[Segment]) -> None:
        """Remove segments with their events."""
        self.segments = sorted(set(self.segments) - set(gone))
        self._remove(gone)

    def _remove(self, gone: Collection[Segment]) -> None:
        for segment in gone:
            self._entry(segment).unlink(missing_ok=True)
        for segment in gone:
            shutil.rmtree(self.place(segment), ignore_errors=True)

    def _entry(self, segment: Segment) -> Path:
        return self._entries / segment.name


def _read(path: Path) -> Segment:
    try:
        return Segment(**json.loads(read_whole(path)))
    except DamagedFileError as error:
        raise StateError(
            f"{error}: it said which events of a history are there. Restore it from a copy."
        ) from error
