"""Things that are kept while they are among the latest; usable from any thread."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


def _nothing(_: object) -> int:
    return 0


class Latest(Generic[Key, Value]):
    """Values by key; those that were put or asked for longest ago go first.

    >>> kept = Latest[str, int](most=2)
    >>> for number, key in enumerate("aba"):
    ...     kept.put(key, number)
    >>> kept.put("c", 3)
    >>> kept.get("a"), kept.get("b"), kept.get("c")
    (2, None, 3)

    >>> texts = Latest[int, str](most=9, size_of=len, largest=5)
    >>> for number, text in enumerate(("abc", "de", "f")):
    ...     texts.put(number, text)
    >>> len(texts), texts.size
    (2, 3)
    """

    def __init__(
        self, most: int, size_of: Callable[[Value], int] = _nothing, largest: int = 0
    ) -> None:
        """Keep at most so many values, with a size of at most ``largest`` together.

        The latest is kept, however large it is.
        """
        self._most = most
        self._size_of = size_of
        self._largest = largest
        self.size = 0
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._changing = threading.Lock()

    def get(self, key: Key) -> Value | None:
        """Return a value; None where there is none."""
        with self._changing:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: Key, value: Value) -> None:
        """Add a value, or replace one."""
        with self._changing:
            before = self._values.pop(key, None)
            if before is not None:
                self.size -= self._size_of(before)
            self._values[key] = value
            self.size += self._size_of(value)
            while len(self._values) > self._most or (
                self.size > self._largest and len(self._values) > 1
            ):
                _, oldest = self._values.popitem(last=False)
                self.size -= self._size_of(oldest)

    def values(self) -> list[Value]:
        """Return all that are kept."""
        with self._changing:
            return list(self._values.values())

    def items(self) -> list[tuple[Key, Value]]:
        """Return all that are kept, with their keys."""
        with self._changing:
            return list(self._values.items())

    def __len__(self) -> int:
        """Return how many are kept."""
        return len(self._values)

    def clear(self) -> None:
        """Forget everything."""
        with self._changing:
            self._values.clear()
            self.size = 0
