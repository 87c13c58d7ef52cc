"""Where modules that answer later say that they have answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Agenda(Protocol):
    """The way back into the eddy, shared by its modules: thread-safe, or on a virtual clock."""

    def tell(self, module: int) -> None:
        """Say that a module has answers; from any thread."""
        ...

    def poll(self) -> Sequence[int]:
        """Return the modules that have said so by now, without waiting."""
        ...

    def wait(self) -> Sequence[int]:
        """Return the modules that have said so, after some time at least one."""
        ...
