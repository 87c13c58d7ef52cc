"""Whether to remember what a function returns: as long as it does not lose.

A row that is looked up and not found was looked up in vain; one that is found spares a call. The
balance of the two decides, and what may be lost at any time is bounded by a part of what the
function itself costs. So nothing has to be known of the arguments beforehand, and a change in
them is noticed within that bound: the loss of a function whose arguments never repeat is a
hundredth of its own cost, and of one whose arguments begin to repeat the looks that find it out.

A function that costs next to nothing could not even pay for the first looks. So some arguments of
the first large visit are picked out and only counted, which is quick. Where they do not repeat, few
rows are looked up before it is known what the function costs, and no more than that allows for.
Later visits are picked from within another hundredth: of 250,000 rows in 25 visits, for a function
of 3.5 µs over texts of 229 bytes, looks took 10 ms and picks 7, together 1.8 % of the time.
"""

from __future__ import annotations

from typing import Final

from eddyline.engine.cost_model import CostModel, TypicalVisit

ALLOWANCE: Final = 4e-3
"""Seconds that may be lost at the beginning.

Enough to look up ten thousand rows, a batch of Spark's. A query that is worth adapting takes
a hundred times as long.
"""

TRIAL: Final = 250
"""Calls whose cost may be lost at the beginning, where arguments were seen not to repeat.

Of functions of 16 µs and more that is the :data:`ALLOWANCE`. One of 0.1 µs lost 4 ms of the 8 that
a task of 50,000 rows took without a memory.
"""

FIRST_LOOK: Final = 64
"""Rows to look up before it is known what the function costs."""

FEWEST: Final = 128
"""Rows of a visit to pick some out of, at least."""

REPEATED: Final = 1 / 64
"""Part of the rows whose arguments have come before, from which on arguments count as repeating.

Among 256 rows picked out of many, 4 do if there are some 8,000 arguments. A function that is so
cheap that looks hardly pay does not gain from more.
"""

SHARE: Final = 0.01
"""Part of the time in the function's calls that may be lost in all."""

LOOKUP_VISIT: Final = 110e-6
LOOKUP_ROW: Final = 0.1e-6
"""Seconds that a visit to the memory and a row in it take, until that was measured.

One column of integers, all of them remembered, took 110 to 140 µs a visit, and a row of 10,000
another 11 ns with 100 distinct, 30 with 1,000 and 230 with 20,000.
"""

WINDOW: Final = 4_096
"""Rows that the hit rate looks back on, approximately."""


class Balance:
    """Gains and losses of one function's memory.

    >>> balance = Balance()
    >>> balance.called(100, 1.0)  # the first visit may load something: it is not counted
    >>> balance.called(100, 0.1)  # a millisecond a row
    >>> balance.looked_up(100, hits=0, seconds=10e-6)
    >>> balance.rows_worth(50)  # nothing was found, but a look costs next to nothing
    50
    """

    def __init__(self) -> None:
        self._calls = CostModel(TypicalVisit(0.0))
        self._lookups = CostModel(TypicalVisit(LOOKUP_VISIT))
        self._call_seconds = 0.0
        self._lost = 0.0
        self._hit_rate = 0.0
        self._weight = 0.0  # rows behind the hit rate
        self._repeating: bool | None = None  # not known as long as visits are small
        self._least: float | None = None  # cost of a row in the visit in which that was least
        self._picking = 0.0  # seconds

    def wants_some(self, rows: int) -> bool:
        """Return whether to pick out some of ``rows`` rows, and tell :meth:`picked` about them."""
        affordable = self._picking <= SHARE * self._call_seconds
        return self._repeating is not True and rows >= FEWEST and affordable

    def picked(self, rows: int, repeated: int, seconds: float) -> None:
        """Learn that so many of ``rows`` rows have the arguments of others; seconds of the clock.

        Rows with one frequent value are left out of the count, unless they are half of all.
        """
        self._picking += seconds  # not lost: the first time in a process it loads something
        self._repeating = repeated >= REPEATED * rows
        if self._repeating:  # looks at a few rows before, the first in a process, say nothing now
            self._lost = 0.0
            self._lookups = CostModel(TypicalVisit(LOOKUP_VISIT))

    def expect_repeats(self) -> None:
        """Take it that arguments repeat until looks have shown that they do not."""
        self._repeating = True

    def rows_worth(self, rows: int) -> int:
        """Return how many of ``rows`` rows to look up, from none to all."""
        per_row = self._lookups.per_tuple or LOOKUP_ROW
        loss = per_row - self._hit_rate * (self._calls.per_tuple or 0.0)
        per_visit = self._lookups.per_visit
        if per_visit + rows * loss <= 0.0:
            return rows
        allowance = ALLOWANCE
        if self._repeating is False:
            if self._least is None:
                return min(rows, FIRST_LOOK)
            allowance = min(ALLOWANCE, TRIAL * self._least)
        left = allowance + SHARE * self._call_seconds - self._lost - per_visit
        if left <= 0.0:
            return 0
        return rows if rows * loss <= left else int(left / loss)

    def looked_up(self, rows: int, hits: int, seconds: float) -> None:
        """Learn from a lookup of ``rows`` rows, ``hits`` of them found; seconds of the clock."""
        if not self._weight:  # the first one in a process loads something
            seconds = min(seconds, 2 * LOOKUP_VISIT + 10 * rows * LOOKUP_ROW)
        self._lookups.record(rows, seconds)
        spared = hits * (self._calls.per_tuple or 0.0)
        self._lost = max(self._lost + seconds - spared, 0.0)
        self._hit_rate = (self._hit_rate * self._weight + hits) / (self._weight + rows)
        self._weight = min(self._weight + rows, WINDOW)
        if 2 * hits > rows:
            self._repeating = True

    def called(self, rows: int, seconds: float) -> None:
        """Learn from calls for ``rows`` rows; seconds of the clock."""
        cost = seconds / rows
        self._least = cost if self._least is None else min(cost, self._least)
        self._calls.record(rows, seconds)
        self._call_seconds += seconds


class Always(Balance):
    """No balance: every row is looked up, whatever that costs.

    For a function that is to be called once for each tuple of arguments, and not only where that
    pays.

    >>> always = Always()
    >>> always.wants_some(1_000)
    False
    >>> always.looked_up(10_000, hits=0, seconds=1.0)
    >>> always.rows_worth(100)
    100
    """

    def wants_some(self, rows: int) -> bool:
        """Return False: nothing has to be known."""
        del rows
        return False

    def rows_worth(self, rows: int) -> int:
        """Return how many of ``rows`` rows to look up: all."""
        return rows
