"""What the system says about a file that cannot be read or written, in one line."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eddyline.app.endings import OutputError, RunError, UsageError
from eddyline.errors import EddylineError


class UnsuitableFileError(EddylineError, ValueError):
    """A file holds something else than its name says; callers that know the table add its name."""


@contextmanager
def file_errors_explained(
    path: Path | str, doing: str, kind: type[RunError | UsageError] = UsageError
) -> Iterator[None]:
    """Raise an error of ours in place of the system's; ``doing`` is "read" or "written".

    >>> with file_errors_explained("there.csv", "read"):
    ...     raise PermissionError(13, "Permission denied", "there.csv")
    Traceback (most recent call last):
    eddyline.app.endings.UsageError: there.csv cannot be read: Permission denied
    """
    try:
        yield
    except OSError as error:
        raise kind(f"{path} cannot be {doing}: {error.strerror or error}") from error


def check_output(path: Path) -> None:
    """Raise :class:`UsageError` if a file cannot be written, as far as can be seen."""
    folder = path.absolute().parent
    with file_errors_explained(path, "written"):
        if not folder.is_dir():
            raise UsageError(f"there is no folder {path.parent} to write {path.name} into")
        if path.is_dir():
            raise UsageError(f"{path} is a folder; name a file in it")
        if path.exists():
            os.close(os.open(path, os.O_WRONLY))  # changes nothing
        else:
            # Permissions alone do not say: root has them all, on a read-only disk too.
            tempfile.TemporaryFile(dir=folder).close()


@contextmanager
def printing() -> Iterator[None]:
    """Raise :class:`OutputError` where standard output takes nothing.

    BrokenPipeError stays: nobody is there to be told.

    >>> with printing():
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    eddyline.app.endings.OutputError: standard output cannot be written: No space left on device
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(
            f"standard output cannot be written: {error.strerror or error}"
        ) from error
