"""How much a single query may take of a micro-batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class RuleLimits:
    """Limits of every query of a job, None where there is none.

    ``function_seconds`` are what a Python function may take in a task, and ``max_results`` the
    results that a query may have in a micro-batch.
    """

    function_seconds: float | None = None
    max_results: int | None = None


NO_LIMITS: Final = RuleLimits()
