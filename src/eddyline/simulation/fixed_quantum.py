"""Visits of one size, as in the papers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FixedQuantum:
    """Always the same number of tuples; 1 is the tuple-at-a-time eddy of the papers.

    ValueError for a number below 1.
    """

    tuples: int = 1

    def __post_init__(self) -> None:
        if self.tuples < 1 or self.tuples % 1:
            raise ValueError(f"tuples is a whole number of tuples from 1 on, not {self.tuples}")

    def size(self, cost: float | None, visit_cost: float, routing_cost: float) -> int:  # noqa: ARG002 - the protocol's arguments
        """Return the fixed number."""
        return self.tuples
