"""What answers need of a file system that applications share."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol


class FolderOfFiles(Protocol):
    """A folder whose files are written once and never changed; OSError for whatever fails.

    It is used from one thread.
    """

    @property
    def url(self) -> str:
        """The folder's name, as messages have it."""

    def names(self) -> list[str]:
        """Return the names of all files; none where there is no folder."""

    def fetch(self, name: str, into: Path) -> None:
        """Copy a file to this machine; FileNotFoundError where it is gone."""

    def put(self, file: Path, draft: str, name: str) -> None:
        """Copy a file of this machine there, as ``draft``, and give it its name when it is whole.

        The folder is made where it is missing.
        """

    def delete(self, names: Iterable[str]) -> None:
        """Delete files; those that are gone do not matter."""
