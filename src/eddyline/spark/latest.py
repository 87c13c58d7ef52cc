"""Things that are kept for as long as they are among the latest, for any thread."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Latest(Generic[Key, Value]):
    """Values by key, of which those go first that were put or asked for longest ago.

    >>> kept = Latest[str, int](most=2)
    >>> for number, key in enumerate("aba"):
    ...     kept.put(key, number)
    >>> kept.put("c", 3)
    >>> kept.get("a"), kept.get("b"), kept.get("c")
    (2, None, 3)
    """

    def __init__(self, most: int) -> None:
        """Keep so many values at the most."""
        self._most = most
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
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > self._most:
                self._values.popitem(last=False)

    def __len__(self) -> int:
        """Return how many are kept."""
        return len(self._values)

    def clear(self) -> None:
        """Forget everything."""
        self._values.clear()
