"""How a source says that there is no answer."""

from __future__ import annotations

from eddyline.errors import EddylineError


class LookupFailedError(EddylineError, RuntimeError):
    """A source has not answered, or with something else than rows, and will not."""


class TryAgainError(Exception):
    """A source has not answered this time; ``after`` so many seconds it may, if it has said so.

    It never leaves :mod:`eddyline.sources`.
    """

    def __init__(self, message: str, after: float | None = None) -> None:
        """Say what happened."""
        super().__init__(message)
        self.after = after
