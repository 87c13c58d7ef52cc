"""What cannot be a standing query, and why."""

from __future__ import annotations

from eddyline.errors import EddylineError


class NotShareableError(EddylineError, ValueError):
    """A query asks for something that standing queries cannot do."""


class UnknownQueryError(EddylineError, KeyError):
    """There is no standing query of that name."""

    def __str__(self) -> str:
        """Return the message as it is: a KeyError would put it in quotes."""
        return str(self.args[0])


class StateError(EddylineError, RuntimeError):
    """The state directory is in use by another process, damaged, or of another set of streams."""
