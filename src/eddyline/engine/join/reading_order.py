"""Which relation of a join to read next."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from eddyline.engine.modules.scan_access import ScanAccess


class Goal(StrEnum):
    """What reading is for."""

    THROUGHPUT = "throughput"  # finish soon: complete the small inputs, stream the largest past
    INTERACTIVE = "interactive"  # first results soon: read all inputs at one rate


class StalledError(RuntimeError):
    """Rows are missing, and no input has any to give."""


class ReadingOrder:
    """Chooses the input to read next.

    For throughput: the one with the fewest rows left goes first, so that the largest comes
    last and needs no SteM. Where sizes are not known, the one with the fewest rows read:
    whichever ends first was the smallest. For interactive use: always the one with the
    fewest rows read, as in a ripple join. An input that has nothing to give now is
    passed over.
    """

    def __init__(self, goal: Goal = Goal.THROUGHPUT) -> None:
        self.goal = goal

    def order(self, inputs: Sequence[ScanAccess], read: Sequence[int]) -> list[int]:
        """Return the inputs that have not ended, first the one to try first.

        ``read`` are the rows read of each so far.
        """
        open_ = [number for number, source in enumerate(inputs) if not source.ended]
        if self.goal is Goal.INTERACTIVE:
            return sorted(open_, key=lambda number: read[number])

        def by_size(number: int) -> tuple[bool, float]:
            expected = inputs[number].expected_rows
            return (expected is None, read[number] if expected is None else expected)

        return sorted(open_, key=by_size)
