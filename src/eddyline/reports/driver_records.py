"""The driver's work for the tasks of a query: lookups, and calls of concurrent functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AskedTable:
    """What one way into a lookup table was asked for, in all jobs of a query.

    ``keys`` are distinct ones, asked for once a job each, in ``requests`` requests, retries
    included; ``failures`` are tries that brought no answer, ``at_a_time`` the most requests
    under way at once. ``by_source`` has the keys that each of its sources got, ``unmatched`` the
    rows that came with a key that their call had not asked for. ``kept`` are
    further keys whose rows a ledger had, ``together`` is how many keys one request may have.
    ``refusals`` are requests that were refused for quota, which are none of the requests, and
    ``waited`` are the seconds in which none was let through for that. ``waits`` are the latest of
    these times, as beginning and end in seconds since the epoch; short gaps between them are left
    out. ``choice`` says whether a table that can be scanned as well was, and why. The requests have
    cost what was ``spent``, in ``unit``, which is empty where no price is known.
    """

    name: str
    keys: int
    requests: int
    failures: int
    at_a_time: int
    by_source: tuple[tuple[str, int], ...] = ()
    unmatched: int = 0
    kept: int = 0
    together: int = 1
    refusals: int = 0
    waited: float = 0.0
    waits: tuple[tuple[float, float], ...] = ()
    choice: str = ""
    spent: float = 0.0
    unit: str = ""

    @property
    def money(self) -> str:
        """What was spent, as text; empty where no price is known."""
        return _amount(self.spent, self.unit) if self.unit else ""


@dataclass(frozen=True, slots=True)
class CalledFunction:
    """What became of a concurrent function, in all jobs of a query.

    ``values`` are the distinct arguments that it was called for, in ``calls`` calls, retries
    included; ``failures`` are the values that it did not get. ``seconds`` is the sum of the
    time that calls took, ``spent`` what they have cost, in ``unit``, which is empty where
    no price is known. ``kept`` are further values that a ledger had, which had cost as much as was
    ``saved``; ``together`` is how many values one call may have. ``refusals`` are calls that were
    refused for quota, which are none of the calls, and ``waited`` the seconds in which none was let
    through for that, and ``waits`` the latest of these times, as above; answers took so many
    ``tokens``.
    """

    name: str
    values: int
    calls: int
    failures: int
    seconds: float
    spent: float = 0.0
    unit: str = ""
    kept: int = 0
    together: int = 1
    saved: float = 0.0
    refusals: int = 0
    waited: float = 0.0
    tokens: float = 0.0
    waits: tuple[tuple[float, float], ...] = ()

    @property
    def money_saved(self) -> str:
        """What answers of a ledger had cost, as text; empty where nothing was saved."""
        return _amount(self.saved, self.unit) if self.saved else ""

    @property
    def money(self) -> str:
        """What was spent, as text; empty where no price is known."""
        return _amount(self.spent, self.unit) if self.unit else ""


def spent_in_all(functions: Sequence[CalledFunction]) -> str:
    """Return what was spent in all, unit by unit; empty where nothing costs anything.

    >>> spent_in_all([CalledFunction("f", 2, 3, 0, 0.1, 0.25, "USD")])
    '0.25 USD'
    >>> spent_in_all([CalledFunction("f", 2, 3, 0, 0.1, 1234567.0, "tokens")])
    '1,234,567 tokens'
    """
    sums: dict[str, float] = {}
    for function in functions:
        if function.unit:
            sums[function.unit] = sums.get(function.unit, 0.0) + function.spent
    return ", ".join(_amount(spent, unit) for unit, spent in sums.items())


def _amount(spent: float, unit: str) -> str:
    return f"{round(spent, 6):,.10g} {unit}"  # what floats add beyond a millionth is no money
