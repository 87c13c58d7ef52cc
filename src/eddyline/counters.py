"""What an operator sees of a Spark application as a few counters: their names, units and meanings.

Spark's metrics system and OpenTelemetry show the same ones. They only grow, from the first query
that was adapted in a Spark context.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Counter:
    """A counter: its name, its unit as UCUM has it (braces for things), and what it counts."""

    name: str
    unit: str
    description: str


BLOCKS: Final = Counter("blocks", "{block}", "Blocks made: parts of plans that run in eddies.")
ROWS: Final = Counter("rows", "{row}", "Rows that came to blocks, counted as tasks end.")
CALLS_MADE: Final = Counter(
    "calls.made", "{call}", "Calls of users' functions, tries again of concurrent ones included."
)
CALLS_AVOIDED: Final = Counter(
    "calls.avoided", "{call}", "Calls that plain Spark makes and eddies did not, at least."
)
CALLS_REMEMBERED: Final = Counter(
    "calls.remembered", "{call}", "Calls answered from memory; these are among those avoided."
)
LOOKUP_REQUESTS: Final = Counter(
    "lookup.requests", "{request}", "Requests to sources of lookup tables, tries again included."
)
QUOTA_REFUSED: Final = Counter(
    "quota.refused", "{call}", "Calls and requests that services refused for quota."
)
BUDGET_REFUSED: Final = Counter(
    "budget.refused", "{call}", "Calls refused because a job had spent its budget for a function."
)
SPILLED: Final = Counter("spilled", "By", "Bytes that joins wrote to disk for want of memory.")
CALLBACKS_FAILED: Final = Counter(
    "callbacks.failed", "{plan}", "Plans left to Spark because Python did not answer in time."
)

COUNTERS: Final = (
    BLOCKS,
    ROWS,
    CALLS_MADE,
    CALLS_AVOIDED,
    CALLS_REMEMBERED,
    LOOKUP_REQUESTS,
    QUOTA_REFUSED,
    BUDGET_REFUSED,
    SPILLED,
    CALLBACKS_FAILED,
)
"""All of them, in the order in which they are shown."""


class CounterValues:
    """What was counted so far; from any thread."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._counts = dict.fromkeys(COUNTERS, 0)
        self._adding = threading.Lock()

    def add(self, more: Mapping[Counter, int]) -> None:
        """Count more of some.

        >>> counts = CounterValues()
        >>> counts.add({ROWS: 3})
        >>> counts.values()[ROWS]
        3
        """
        with self._adding:
            for counter, number in more.items():
                self._counts[counter] += number

    def values(self) -> dict[Counter, int]:
        """Return all counts."""
        with self._adding:
            return dict(self._counts)
