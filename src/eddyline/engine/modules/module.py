"""What an eddy asks of a module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from eddyline.engine.batch import TupleBatch


@runtime_checkable
class Module(Protocol):
    """An inline module: it computes while the eddy waits.

    ``name`` is shown to people. What :meth:`process` returns goes back to the
    eddy: fewer tuples than it got (a selection), more (a probe into a SteM), the
    same tuples under another signature (a build that bounces back), none. Each
    returned batch carries its own signature, so a module that keeps tuples, adds
    components to them or lets them visit it again says so there.
    """

    @property
    def name(self) -> str:
        """The module as people know it."""
        ...

    def process(self, batch: TupleBatch) -> Sequence[TupleBatch]:
        """Handle a batch and return what goes on."""
        ...


@runtime_checkable
class ConcurrentModule(Protocol):
    """A module that works while the eddy goes on, behind a bounded queue.

    The eddy never waits for one as long as another can work. A full queue is
    back-pressure: :meth:`has_room` is False until the module has caught up
    (Avnur and Hellerstein, 2000, Section 4.2).
    """

    @property
    def name(self) -> str:
        """The module as people know it."""
        ...

    def has_room(self) -> bool:
        """Tell whether the queue takes another batch."""
        ...

    def offer(self, batch: TupleBatch) -> None:
        """Put a batch into the queue; raises IndexError where there is no room."""
        ...
