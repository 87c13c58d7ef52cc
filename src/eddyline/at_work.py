"""What is at work in a session, for as long as a block of code lasts.

Blocks may be nested, and end in any order. What was begun in a session and has not ended stands in
a list, and the last of it is at work. Of classic sessions these are rules of the optimizer, of
those of Spark Connect hooks of the client.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Final, Generic, Self, TypeAlias, TypeVar

T = TypeVar("T")

Change: TypeAlias = Callable[[Callable[[list[T]], list[T]]], list[T]]
"""Gives a session what becomes of the list of what was begun there, and returns what it was."""


class AtWork(Generic[T]):
    """Something that is at work in a session, until the block ends.

    >>> begun = ["a"]
    >>> def change(changed):
    ...     before, begun[:] = list(begun), changed(list(begun))
    ...     return before
    >>> first, second = AtWork(change, "b"), AtWork(change, "c")
    >>> begun
    ['a', 'b', 'c']
    >>> with second:
    ...     with first:
    ...         pass
    ...     print(begun)
    ['a', 'c']
    >>> begun
    ['a']
    """

    def __init__(self, change: Change[T], own: T) -> None:
        """Begin."""
        self._change: Final = change
        self._own: Final = own
        self._entered = 0
        self._begin()

    def _begin(self) -> None:
        own = self._own
        self._change(lambda begun: begun if own in begun else [*begun, own])

    def __enter__(self) -> Self:
        """Return this; where it has ended it begins again."""
        self._begin()
        self._entered += 1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End this, unless it was entered before and not left.

        What was begun before or since, and has not ended, stays.
        """
        self._entered = max(0, self._entered - 1)
        if not self._entered:
            self._end()

    def _end(self) -> None:
        own = self._own
        self._change(lambda begun: [one for one in begun if one is not own])

    def __repr__(self) -> str:
        return "Eddyline adapts what this session runs; eddyline.disable() ends it."


class NothingAtWork(Generic[T]):
    """A session that is left to Spark, until the block ends.

    >>> begun = ["a", "b"]
    >>> def change(changed):
    ...     before, begun[:] = list(begun), changed(list(begun))
    ...     return before
    >>> with NothingAtWork(change):
    ...     begun.append("c")
    >>> begun
    ['a', 'b', 'c']
    """

    def __init__(self, change: Change[T]) -> None:
        """End what was begun."""
        self._change: Final = change
        self._before = change(lambda _: [])

    def __enter__(self) -> Self:
        """Return this."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Have at work what was so before, unless something else has begun since."""
        before, self._before = self._before, []
        if before:
            self._change(lambda since: [*before, *since])

    def __repr__(self) -> str:
        return "What this session runs is left to Spark; eddyline.enable() changes that."
