"""How many rows a task takes at a time, where somebody has to answer for them.

With a limit above, first as many as it keeps, then twice as many each time: otherwise more would be
asked for than anybody wants. Without one, a reader who wants no more ends the task, so the first
rounds are small as well: as many rows as can have calls under way at a time, which takes no longer
than all would.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Self

from eddyline.blocks.filter_block import FilterBlock
from eddyline.blocks.join_block import JoinBlock

PUSHED_ROWS: Final = 1 << 15
"""Rows that are handed to the eddy at a time, where Spark's batches are smaller.

Spark sends 10,000 rows at a time by default. A visit to a SteM costs some 100 µs of its own.
"""


class Rounds:
    """The rows of one task, a round at a time, and whether a limit above has all that it keeps.

    ``call`` are the keys or values of one call; a later round is worth at least one, as one for ten
    keys costs what one for 500 does. ``at_a_time`` are those of all calls that can be under way. Of
    a block that ``stops`` a limit takes the first ``limit`` rows, whatever they are.
    """

    def __init__(self, call: int, at_a_time: int, limit: int, *, stops: bool) -> None:
        """Begin with the first; all rows are one round where there is no limit, and no call."""
        self.limited: Final = limit > 0
        self._call = call
        self._growth = 2 if self.limited else 4
        self._size = limit or at_a_time
        self._left = limit if stops else 0
        self._stops = self.limited and stops

    @classmethod
    def of_join(cls, block: JoinBlock) -> Self:
        """Return the rounds of a task that joins; those without lookups have no calls."""
        lookups = block.lookups
        if not lookups:
            return cls(1, 0, 0, stops=False)
        call = max(lookup.keys_per_call for lookup in lookups)
        at_a_time = max(lookup.width * lookup.keys_per_call for lookup in lookups)
        return cls(call, at_a_time, block.limit, stops=block.stops)

    @classmethod
    def of_filter(cls, block: FilterBlock) -> Self:
        """Return the rounds of a task that filters; without a limit all calls go at once."""
        called = [function.driver for function in block.functions if function.driver is not None]
        call = max((driver.values for driver in called), default=1)
        return cls(call, 0, block.limit, stops=block.stops)

    @property
    def small(self) -> bool:
        """Whether rounds are still smaller than they would be without calls."""
        return 0 < self._size < PUSHED_ROWS

    @property
    def enough(self) -> bool:
        """Whether the limit has all that it keeps: nobody looks at what comes now."""
        return self._stops and self._left <= 0

    def gave(self, rows: int) -> bool:
        """Take note of rows of the result; tell whether the limit has enough now."""
        self._left -= rows
        return self.enough

    def next(self, rows: int) -> int:
        """Return how many of so many rows come next."""
        if not self._size:
            return rows
        size = self._size
        self._size = min(max(self._growth * size, self._call), PUSHED_ROWS)
        return min(size, rows)

    def of(self, rows: int) -> Iterator[tuple[int, int]]:
        """Yield the first row and the number of rows of each round, until there is enough."""
        start = 0
        while start < rows and not self.enough:
            count = self.next(rows - start)
            yield start, count
            start += count
