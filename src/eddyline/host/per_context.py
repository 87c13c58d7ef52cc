"""Things that exist once for each Spark context."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from pyspark import SparkContext

Made = TypeVar("Made")


class PerContext(Generic[Made]):
    """One thing for each Spark context, made when it is first asked for, in any thread.

    A process has one context at a time: when another asks, those before it have stopped.
    """

    def __init__(
        self,
        make: Callable[[SparkContext], Made],
        close: Callable[[Made], None] = lambda _: None,
    ) -> None:
        """Make things with ``make``; ``close`` those of contexts that have stopped."""
        self._make = make
        self._close = close
        self._made: WeakKeyDictionary[SparkContext, Made] = WeakKeyDictionary()
        self._making = threading.Lock()

    def of(self, context: SparkContext) -> Made:
        """Return what a context has."""
        with self._making:
            made = self._made.get(context)
            if made is None:
                for before in self._made.values():
                    self._close(before)
                self._made.clear()
                made = self._made[context] = self._make(context)
        return made
