"""Changes on disk: version by version, a file each; and snapshots of some versions."""

from __future__ import annotations

import pickle
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from eddyline.standing.log.changes import Change
from eddyline.standing.log.files import DamagedFileError, read_whole, write_new
from eddyline.standing.log.snapshots import Snapshot

_DIGITS: Final = 10

ContentT = TypeVar("ContentT")


class ChangeLog:
    """What came and went: version 0 has no queries, each further one changes the one before.

    A version once written never changes; but its file may be removed when a snapshot of it, or
    of a later one, is there: see :mod:`eddyline.standing.log.compaction`. Files are pickles:
    keep them where only those can write who may run code in the job.
    """

    def __init__(self, directory: Path) -> None:
        """Look at a directory, which is made by :meth:`create`."""
        self.directory = directory

    def create(self) -> None:
        """Make the directory, where it is not there; only for the one who writes.

        What was being written when a writer was killed is removed.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        for path in self.directory.glob(".*"):
            path.unlink(missing_ok=True)
        if not self._label_path.exists():
            write_new(self._label_path, secrets.token_hex(8).encode())

    @classmethod
    def labelled(cls, label: str) -> ChangeLog:
        """Return the log of a :attr:`label`."""
        return cls(Path(label.rpartition("#")[0] or label))

    @property
    def label(self) -> str:
        """Where it is, and which it is: a directory that was removed and made anew has another.

        Worker processes that outlive a log know by it what is of this one.
        """
        path = self._label_path
        return f"{self.directory}#{read_whole(path).decode() if path.exists() else ''}"

    @property
    def _label_path(self) -> Path:
        return self.directory / "label"

    def last(self) -> int:
        """Return the last version that is there."""
        return max([*self.changes(), *self.snapshots()], default=0)

    def changes(self) -> list[int]:
        """Return the versions whose changes are there, ascending."""
        return self._versions("change")

    def snapshots(self) -> list[int]:
        """Return the versions that have a snapshot, ascending."""
        return self._versions("snapshot")

    def append(self, version: int, changes: tuple[Change, ...]) -> None:
        """Write a version; FileExistsError where somebody else has."""
        write_new(self._path(version), pickle.dumps(changes, protocol=5))

    def read(self, version: int) -> tuple[Change, ...]:
        """Return what a version changes; FileNotFoundError, DamagedFileError."""
        return cast("tuple[Change, ...]", _unpickled(self._path(version), pickle.loads))

    def write_snapshot(self, snapshot: Snapshot) -> None:
        """Write a snapshot; FileExistsError where there is one of the version."""
        write_new(self._snapshot_path(snapshot.version), snapshot.packed())

    def read_snapshot(self, version: int) -> Snapshot:
        """Return the snapshot of a version; FileNotFoundError, DamagedFileError."""
        return _unpickled(self._snapshot_path(version), Snapshot.unpacked)

    def remove(self, version: int) -> None:
        """Remove the changes of a version, if they are there."""
        self._path(version).unlink(missing_ok=True)

    def remove_snapshot(self, version: int) -> None:
        """Remove the snapshot of a version, if it is there."""
        self._snapshot_path(version).unlink(missing_ok=True)

    def set_aside(self, version: int) -> Path:
        """Rename the file of a version, so that the version is free again; return its new name.

        FileNotFoundError where it is not there.
        """
        return _set_aside(self._path(version))

    def set_snapshot_aside(self, version: int) -> Path:
        """Rename the snapshot of a version; return its new name."""
        return _set_aside(self._snapshot_path(version))

    def _versions(self, kind: str) -> list[int]:
        return sorted(int(path.stem) for path in self.directory.glob(f"[0-9]*.{kind}"))

    def _path(self, version: int) -> Path:
        return self.directory / f"{version:0{_DIGITS}}.change"

    def _snapshot_path(self, version: int) -> Path:
        return self.directory / f"{version:0{_DIGITS}}.snapshot"


def _set_aside(path: Path) -> Path:
    return path.rename(path.with_name(f"{path.name}.damaged"))


def _unpickled(path: Path, read: Callable[[bytes], ContentT]) -> ContentT:
    content = read_whole(path)
    try:
        return read(content)
    except _UNREADABLE as error:
        raise DamagedFileError(
            f"{path} was written by another version of Eddyline: {error}"
        ) from error


_UNREADABLE: Final[tuple[type[Any], ...]] = (
    pickle.UnpicklingError,
    AttributeError,
    ImportError,
    EOFError,
    TypeError,
    ValueError,
)
