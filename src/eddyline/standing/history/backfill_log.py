"""Which backfills there are and how far they have come, on disk."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from eddyline.errors import StateError
from eddyline.standing.history.backfill_plan import BackfillPart, BackfillPlan, part_of
from eddyline.standing.log.files import DamagedFileError, read_whole, write_new
from eddyline.standing.log.live_queries import StandingQuery

KEPT: Final = 1_000
"""Plans that stay when their queries are gone."""


class BegunPart(NamedTuple):
    """A part that has begun: what it is, and for which queries; the same when it is run again."""

    part: BackfillPart
    numbers: tuple[int, ...]


class BackfillLog:
    """Plans of backfills and what has become of them, a directory each.

    What a part is and which queries it is for is written down before it begins: if a crash comes
    before it is done, it is run again as it was.
    """

    def __init__(self, directory: Path) -> None:
        """Open a directory, which is made if it is not there."""
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        for path in directory.glob("[0-9]*"):
            if not (path / "plan").exists():
                shutil.rmtree(path)  # it was being made, or removed

    def plans(self) -> list[BackfillPlan]:
        """Return all plans, those that are done too, the oldest first."""
        numbers = sorted(int(path.name) for path in self._directory.glob("[0-9]*"))
        return [BackfillPlan.of(self._read(number, "plan")) for number in numbers]

    def add(self, plan: BackfillPlan, queries: Sequence[StandingQuery]) -> None:
        """Write a plan and the queries that it is for."""
        path = self._path(plan.number)
        path.mkdir()
        write_new(path / "queries", pickle.dumps(tuple(queries), protocol=5))
        self._write(plan.number, "plan", plan.to_dict())

    def queries(self, number: int) -> tuple[StandingQuery, ...]:
        """Return the queries of a plan that is not finished, those that are gone, too."""
        queries = pickle.loads(self._content(number, "queries"))  # noqa: S301 - our own, checked
        return cast("tuple[StandingQuery, ...]", queries)

    def begun(self, number: int, turn: int) -> BegunPart | None:
        """Return what the part of a turn is; None where it has not begun."""
        try:
            part, numbers = self._read(number, f"part-{turn}")
        except FileNotFoundError:
            return None
        return BegunPart(part_of(part), tuple(numbers))

    def begin(self, number: int, turn: int, part: BegunPart) -> None:
        """Take note of what the part of a turn is."""
        self._write(number, f"part-{turn}", part)

    def done(self, number: int) -> int:
        """Return how many parts are done, the first ones."""
        turns = [int(path.name[5:]) for path in self._path(number).glob("done-*")]
        return max(turns, default=-1) + 1

    def end(self, number: int, turn: int) -> None:
        """Take note that the part of a turn is done."""
        self._write(number, f"done-{turn}", turn)

    def finish(self, number: int, why: str) -> None:
        """Take note that nothing is left to be done, and why; the parts are forgotten."""
        if self.finished(number) is None:
            self._write(number, "finished", why)
        for path in (self._path(number) / "queries", *self._path(number).glob("*-*")):
            path.unlink(missing_ok=True)

    def finished(self, number: int) -> str | None:
        """Return why nothing is left to be done; None where something is."""
        try:
            return str(self._read(number, "finished"))
        except FileNotFoundError:
            return None

    def forget(self, there: Collection[int]) -> None:
        """Remove what is finished of queries none of which is there any more, but for the latest.

        A micro-batch that is run again may have such a query.
        """
        for plan in self.plans()[:-KEPT]:
            if self.finished(plan.number) is not None and not {*plan.numbers} & {*there}:
                shutil.rmtree(self._path(plan.number))

    def _path(self, number: int) -> Path:
        return self._directory / f"{number:010}"

    def _read(self, number: int, name: str) -> Any:  # noqa: ANN401 - JSON
        return json.loads(self._content(number, name))

    def _content(self, number: int, name: str) -> bytes:
        try:
            return read_whole(self._path(number) / name)
        except DamagedFileError as error:
            raise StateError(
                f"{error}: it said how far a backfill has come. Restore it from a copy."
            ) from error

    def _write(self, number: int, name: str, content: object) -> None:
        write_new(self._path(number) / name, json.dumps(content).encode())
