"""What ends a command, and what the user is told about it."""

from __future__ import annotations

from enum import IntEnum

from eddyline.errors import EddylineError


class ExitCode(IntEnum):
    """What a command returns to the shell."""

    DONE = 0
    FAILED = 1  # while the query ran, or when its rows were printed
    MISUSED = 2  # what was asked for cannot be run
    NO_READER = 141  # nobody reads what is printed: 128 + SIGPIPE


class UsageError(EddylineError, ValueError):
    """What the user gave cannot be used; the message is one line and says what to do."""


class RunError(EddylineError, RuntimeError):
    """The query was fine and failed while it ran; the message can have several lines."""


class OutputError(RunError):
    """Standard output takes nothing, as on a full disk."""
