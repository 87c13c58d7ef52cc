"""Changes on disk: version by version, a file each."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Final, cast

from eddyline.spark.query_log.changes import Change
from eddyline.spark.query_log.files import DamagedFileError, read_whole, write_new

_DIGITS: Final = 10


class ChangeLog:
    """What came and went: version 0 has no queries, each further one changes the one before.

    A version once written never changes. Files are pickles: keep them where only those can
    write who may run code in the job.
    """

    def __init__(self, directory: Path) -> None:
        """Look at a directory, which is made by :meth:`create`."""
        self.directory = directory

    def create(self) -> None:
        """Make the directory, where it is not there."""
        self.directory.mkdir(parents=True, exist_ok=True)

    def last(self) -> int:
        """Return the last version that is there."""
        numbers = [int(path.stem) for path in self.directory.glob("[0-9]*.change")]
        return max(numbers, default=0)

    def append(self, version: int, changes: tuple[Change, ...]) -> None:
        """Write a version; FileExistsError where somebody else has."""
        write_new(self._path(version), pickle.dumps(changes, protocol=5))

    def read(self, version: int) -> tuple[Change, ...]:
        """Return what a version changes; FileNotFoundError, DamagedFileError."""
        content = read_whole(self._path(version))
        try:
            return cast("tuple[Change, ...]", pickle.loads(content))  # noqa: S301 - our own, checked
        except (pickle.UnpicklingError, AttributeError, ImportError, EOFError, TypeError) as error:
            raise DamagedFileError(
                f"{self._path(version)} was written by another version of Eddyline: {error}"
            ) from error

    def set_aside(self, version: int) -> Path:
        """Rename the file of a version, so that the version is free again; return its new name."""
        path = self._path(version)
        return path.rename(path.with_suffix(".damaged"))

    def _path(self, version: int) -> Path:
        return self.directory / f"{version:0{_DIGITS}}.change"
