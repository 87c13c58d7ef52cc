"""What the system says about a file that cannot be read or written, in one line."""

from __future__ import annotations

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
