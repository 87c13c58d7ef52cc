"""The registry of standing queries on the driver: names, versions, and one writer at a time."""

from __future__ import annotations

import fcntl
import itertools
import json
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Final

from eddyline.errors import StateError, UnknownQueryError
from eddyline.standing.log.batch_log import BatchLog, BatchRun
from eddyline.standing.log.change_log import ChangeLog
from eddyline.standing.log.changes import Added, Change, Dropped, Paused, Resumed
from eddyline.standing.log.compaction import EVERY, Compaction
from eddyline.standing.log.files import DamagedFileError, read_whole, write_new
from eddyline.standing.log.live_queries import LiveQueries, StandingQuery
from eddyline.standing.query_template import QueryGroup

WATERMARK: Final = "spark.watermarkDelayMs"
"""What Spark calls the watermark's delay in the metadata of a column."""


class QueryRegistry:
    """All standing queries of a state directory; any thread may ask it and change it.

    A change is on disk when a method returns. Only one process at a time can have it open.
    """

    def __init__(self, state: Path, schemas: Mapping[str, str], *, every: int = EVERY) -> None:
        """Open a state directory, which is made where it is not there.

        ``schemas`` are those of the streams and tables, as JSON; StateError where the directory
        was made with others, is open elsewhere, or is damaged. ``every`` are the versions from
        one snapshot to the next.
        """
        self.state = state
        state.mkdir(parents=True, exist_ok=True)
        self._lock_file = _locked(state)
        self._changing = threading.RLock()
        self._naming = threading.RLock()  # taken before the other, where both are
        self._batches: dict[str, BatchLog] = {}
        self._compaction: Compaction | None = None
        try:
            _check_schemas(state, schemas)
            self.log = ChangeLog(state / "queries")
            self.log.create()
            self._live = LiveQueries()
            self._replay()
            self._compaction = Compaction(self.log, self._named, every)
            self._compaction.consider(self._live)
        except BaseException:
            self.close()
            raise
        named = [(number, query.name) for number, query in self._live.running.items()]
        named += [(number, query.name) for number, (query, _) in self._live.paused.items()]
        self._numbers = _by_name(sorted(named))

    @property
    def version(self) -> int:
        """The version of the queries as they are now."""
        with self._changing:
            return self._live.version

    def require_open(self) -> None:
        """Raise StateError where others may have the directory by now."""
        if self._lock_file.closed:
            raise StateError(f"the standing queries in {self.state} were stopped: make them anew")

    def close(self) -> None:
        """Let other processes have the directory."""
        if self._compaction is not None:
            self._compaction.close()
        self._lock_file.close()

    def batches(self, job: str) -> BatchLog:
        """Return which versions the micro-batches of a job ran."""
        with self._naming:
            if job not in self._batches:
                self._batches[job] = BatchLog(self.job_directory(job) / "batches")
            return self._batches[job]

    def begin(self, job: str, batch: int, kept: float) -> BatchRun:
        """Return what a micro-batch runs: the version now, unless it ran another before.

        That stays within reach. StateError where what it ran is not known any more.
        """
        try:
            with self._naming:
                return self.batches(job).run(batch, BatchRun(self.version, kept))
        except DamagedFileError as error:
            raise StateError(
                f"{error}: it said which queries batch {batch} of the job {job} has run. Restore "
                "it from a copy, or begin anew with another state directory."
            ) from error

    def samples(self, *, now: bool) -> bool:
        """Tell whether events are dropped ``now``, or may have been before in this directory."""
        sampled = self.state / "sampled"
        if now:
            sampled.touch()
        return sampled.exists()

    def job_directory(self, job: str) -> Path:
        """Return where a job keeps its own things."""
        return self.state / "jobs" / job

    def running(self) -> list[StandingQuery]:
        """Return the queries that run now."""
        with self._changing:
            return list(self._live.running.values())

    def paused(self) -> list[tuple[StandingQuery, str]]:
        """Return the queries that stand still now, and why."""
        with self._changing:
            return list(self._live.paused.values())

    def at(self, version: int) -> list[StandingQuery]:
        """Return the queries that ran at a version."""
        with self._changing:
            if version == self._live.version:
                return self.running()
        live = LiveQueries()
        try:
            live.go_to(version, self.log)
        except (FileNotFoundError, DamagedFileError) as error:
            raise StateError(f"version {version} cannot be read: {error}. {_RESTORE}") from error
        return list(live.running.values())

    def next_columns(self) -> dict[str, int]:
        """Return for each stream the number after those of all derived columns so far."""
        with self._changing:
            return dict(self._live.next_columns)

    def numbers(self) -> set[int]:
        """Return the numbers of all queries that there are now, running and paused."""
        with self._changing:
            return set(itertools.chain(*self._numbers.values()))

    def still_running(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """Return those of some queries that run now."""
        with self._changing:
            return tuple(number for number in numbers if number in self._live.running)

    def named(self, name: str) -> StandingQuery:
        """Return the query of a name, be it paused; UnknownQueryError where there is none.

        Of several branches the first.
        """
        with self._changing:
            number = self._numbers_of([name])[0]
            query = self._live.running.get(number)
            return self._live.paused[number][0] if query is None else query

    def has(self, name: str) -> bool:
        """Tell whether there is a query of that name."""
        with self._changing:
            return name in self._numbers

    def add(self, *groups: QueryGroup, instead: Sequence[str] = ()) -> None:
        """Add queries, which get their numbers here; drop others in the same version.

        Groups with the same names are branches of the same queries, in their order.
        ValueError for a name that is there already, UnknownQueryError for one that is to be
        dropped and is not there.
        """
        with self._changing:
            names = [name for group in groups for name in group.names]
            taken = [name for name in names if name in self._numbers and name not in instead]
            if taken:
                raise ValueError(f"there is a query {_listed(taken)} already; replace or drop it")
            dropped = self._numbers_of(instead)
            firsts = itertools.accumulate(
                (len(group.names) for group in groups), initial=self._live.next_number
            )
            numbered = [
                replace(group, first=first) for group, first in zip(groups, firsts, strict=False)
            ]
            changes: tuple[Change, ...] = tuple(map(Added, numbered))
            self._write((Dropped(dropped), *changes) if dropped else changes)
            for name in instead:
                del self._numbers[name]
            self._numbers |= _by_name(
                named for group in numbered for named in enumerate(group.names, group.first)
            )

    def drop(self, names: Sequence[str]) -> int:
        """Drop queries; return the version without them. UnknownQueryError for a name not there."""
        with self._changing:
            if names:
                self._write((Dropped(self._numbers_of(names)),))
                for name in dict.fromkeys(names):
                    del self._numbers[name]
            return self._live.version

    def pause(self, names: Sequence[str], reason: str = "") -> None:
        """Let queries stand still; those that do already stay as they are."""
        with self._changing:
            numbers = [n for n in self._numbers_of(names) if n in self._live.running]
            if numbers:
                self._write((Paused(tuple(numbers), reason),))

    def pause_failed(self, reasons: Mapping[int, str]) -> dict[str, str]:
        """Let queries of these numbers stand still that cannot go on; return why, by name.

        In one version. Those that went, were replaced, or stand still already are left as they are:
        what failed may be a query that is not there any more, under a name that is. All branches
        of a query stand still where one has failed.
        """
        with self._changing:
            running = self._live.running
            told = {running[n].name: reason for n, reason in reasons.items() if n in running}
            if told:
                paused = {name: self._running_of(name) for name in told}
                self._write(tuple(Paused(paused[name], told[name]) for name in told))
            return told

    def _running_of(self, name: str) -> tuple[int, ...]:
        return tuple(number for number in self._numbers[name] if number in self._live.running)

    def resume(self, names: Sequence[str]) -> None:
        """Let queries that stand still go on."""
        with self._changing:
            numbers = [n for n in self._numbers_of(names) if n in self._live.paused]
            if not numbers:
                return
            first = self._live.next_number
            self._write((Resumed(tuple(numbers), first),))
            resumed = range(first, first + len(numbers))
            self._numbers |= _by_name((n, self._live.running[n].name) for n in resumed)

    def _numbers_of(self, names: Sequence[str]) -> tuple[int, ...]:
        """Return the numbers of queries, of all branches, each once however often it is named."""
        unknown = [name for name in names if name not in self._numbers]
        if unknown:
            raise UnknownQueryError(f"there is no query {_listed(unknown)}")
        by_query = (self._numbers[name] for name in dict.fromkeys(names))
        return tuple(itertools.chain(*by_query))

    def _write(self, changes: tuple[Change, ...]) -> None:
        self.require_open()
        self.log.append(self._live.version + 1, changes)
        self._live.take(changes)
        if self._compaction is not None:
            self._compaction.consider(self._live)

    @contextmanager
    def _named(self) -> Iterator[tuple[set[int], int]]:
        """Give the versions that batches have run, and the last; none begins meanwhile."""
        with self._naming:
            runs = [self.batches(job).versions() for job in self._jobs()]
            yield set().union(*runs), self.version

    def _replay(self) -> None:
        """Take on all versions on disk; one that was cut off as it was written never was."""
        last = self.log.last()
        try:
            self._live.go_to(last, self.log)
        except FileNotFoundError as error:
            for snapshot in self._live.passed_over.values():
                raise StateError(f"{snapshot}, and what it replaced is gone. {_RESTORE}") from error
            raise StateError(f"{error.filename} is missing: {_HOW_TO_MEND}") from error
        except DamagedFileError as error:
            damaged = self._live.version + 1
            if damaged < last or self._newest_run() >= damaged:
                raise StateError(f"{error}: {_HOW_TO_MEND}") from error
            aside = self.log.set_aside(damaged)
            warnings.warn(
                f"The last change of the standing queries was cut off before any batch ran it, "
                f"and is left out: {error}. It is now {aside.name}.",
                stacklevel=2,
            )
        for version, damage in self._live.passed_over.items():
            aside = self.log.set_snapshot_aside(version)
            warnings.warn(
                f"{damage}. The queries were read from what was there before it; it is now "
                f"{aside.name}.",
                stacklevel=2,
            )

    def _newest_run(self) -> int:
        try:
            return max((self.batches(job).newest() for job in self._jobs()), default=0)
        except DamagedFileError as error:
            raise StateError(f"{error}. {_RESTORE}") from error

    def _jobs(self) -> list[str]:
        jobs = self.state / "jobs"
        return [path.name for path in jobs.iterdir()] if jobs.is_dir() else []


def _by_name(numbers: Iterable[tuple[int, str]]) -> dict[str, tuple[int, ...]]:
    """Return the numbers of queries by name, ascending as they are given: branch after branch.

    >>> _by_name([(3, "a"), (4, "b"), (5, "a")])
    {'a': (3, 5), 'b': (4,)}
    """
    by_name: dict[str, tuple[int, ...]] = {}
    for number, name in numbers:
        by_name[name] = (*by_name.get(name, ()), number)
    return by_name


_RESTORE = "Restore it from a copy, or begin anew with another state directory."

_HOW_TO_MEND = f"batches have run with it, so that it cannot be left out. {_RESTORE}"


def _locked(state: Path) -> IO[str]:
    file = (state / "lock").open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise StateError(f"{state} is in use: the standing queries in it run already") from error
    return file


def _check_schemas(state: Path, schemas: Mapping[str, str]) -> None:
    path = state / "streams.json"
    given = {name: json.loads(schema) for name, schema in schemas.items()}
    try:
        known = json.loads(read_whole(path))
    except FileNotFoundError:
        write_new(path, json.dumps(given, indent=1).encode())
        return
    except DamagedFileError as error:
        raise StateError(str(error)) from error
    except ValueError as error:
        raise StateError(f"{path} is damaged: {error}") from error
    for name in known.keys() | given.keys():
        if known.get(name) != given.get(name):
            what = (
                "is new"
                if name not in known
                else "is missing"
                if name not in given
                else "has another watermark"
                if _without_watermark(known[name]) == _without_watermark(given[name])
                else "has other columns"
            )
            raise StateError(
                f"{state} was made for other streams: {name} {what}. Give the same ones, or "
                "another state directory."
            )


def _without_watermark(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the columns of a schema without what Spark notes of the watermark."""
    return [
        column | {"metadata": {k: v for k, v in column["metadata"].items() if k != WATERMARK}}
        for column in schema["fields"]
    ]


def _listed(names: Sequence[str]) -> str:
    few = ", ".join(map(repr, names[:3]))
    return few if len(names) <= 3 else f"{few} and {len(names) - 3:,} more"  # noqa: PLR2004 - enough to see
