"""What concurrent functions were called for, and what that has cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CalledFunction:
    """What became of a concurrent function in all jobs of a query.

    ``values`` are distinct arguments that it was called for, in ``calls`` calls, tries again
    included; ``failures`` are the values that it did not get. ``seconds`` is the sum of the
    time that calls took, ``spent`` what they have cost, in ``unit``, which is empty where
    nothing was said.
    """

    name: str
    values: int
    calls: int
    failures: int
    seconds: float
    spent: float = 0.0
    unit: str = ""

    @property
    def money(self) -> str:
        """What was spent, as text."""
        return amount(self.spent, self.unit) if self.unit else ""


def amount(spent: float, unit: str) -> str:
    """Return an amount of money as text.

    >>> amount(0.1 + 0.2, "USD"), amount(1234567.0, "tokens")
    ('0.3 USD', '1,234,567 tokens')
    """
    return f"{round(spent, 6):,.10g} {unit}"


def in_all(functions: Sequence[CalledFunction]) -> str:
    """Return what was spent in all, unit by unit; empty where nothing costs anything.

    >>> in_all([CalledFunction("f", 2, 3, 0, 0.1, 0.25, "USD")])
    '0.25 USD'
    """
    sums: dict[str, float] = {}
    for function in functions:
        if function.unit:
            sums[function.unit] = sums.get(function.unit, 0.0) + function.spent
    return ", ".join(amount(spent, unit) for unit, spent in sums.items())
