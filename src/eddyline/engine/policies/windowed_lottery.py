"""Lottery scheduling with forgetting: banked and escrow tickets."""

from __future__ import annotations

from eddyline.engine.policies.lottery import LotteryPolicy
from eddyline.engine.signature import Signature


class WindowedLotteryPolicy(LotteryPolicy):
    """Play with the tickets earned in the window before this one.

    Avnur and Hellerstein (2000, Section 4.5): tickets earned now go into escrow;
    at the start of a window the escrow account replaces the banked one, which is
    what counts in lotteries, and starts again from nothing, so that every module
    proves itself anew in every window. A window is a number of tuples sent.
    """

    name = "windowed_lottery"

    def __init__(self, window: int = 500) -> None:
        """Set the window, in tuples sent to any module."""
        super().__init__()
        if window < 1:
            message = f"a window is a number of tuples from 1 on, not {window}"
            raise ValueError(message)
        self._window = window
        self._left = window
        self._banked: tuple[float, ...] = ()

    def accounts(self) -> tuple[float, ...]:
        """Return the banked tickets, by module; in the first window those in escrow."""
        return self._banked or tuple(self._tickets)

    def sent(self, signature: Signature, module: int, tuples: int) -> None:
        """Credit the escrow account; start a new window when this one is over."""
        super().sent(signature, module, tuples)
        self._left -= tuples
        if self._left <= 0:
            self._banked = tuple(self._tickets)
            self._tickets = [0.0] * len(self._tickets)
            self._left = self._window
