"""Lottery scheduling with forgetting: banked and escrow tickets."""

from __future__ import annotations

from collections.abc import Mapping

from eddyline.engine.policies.lottery import LotteryPolicy
from eddyline.engine.policies.naive import ConsumptionRates
from eddyline.engine.signature import Signature

WINDOW = 100
"""Decisions in a window, unless told otherwise; the paper does not give its own.

On the simulated river windows from 50 on do equally well where nothing changes.
Over the toggling costs of Section 4.5 one of 100 takes 67,000 delay units, one
of 200 71,000, of 500 101,000, of 1,000 130,000.
"""


class WindowedLotteryPolicy(LotteryPolicy):
    """Play with the tickets earned in the window before this one.

    Avnur and Hellerstein (2000, Section 4.5): tickets earned now go into escrow;
    at the start of a window the escrow account replaces the banked one, which is
    what counts in lotteries, and starts again from nothing, so that every module
    proves itself anew in every window. A window is a number of decisions: of
    tuples, where each is routed by itself, and of visits, where these take more,
    so that a window always is long enough for several modules to be tried.
    Measured rates of consumption, where modules have no queues, are forgotten in
    the same way.
    """

    name = "windowed_lottery"

    def __init__(self, window: int = WINDOW) -> None:
        """``window`` is a number of decisions."""
        super().__init__()
        if window < 1:
            message = f"a window is a number of decisions from 1 on, not {window}"
            raise ValueError(message)
        self._window = window
        self._left = window
        self._banked: Mapping[int, float] = {}
        self._banked_rates: ConsumptionRates | None = None

    def _forget(self) -> None:
        """Start anew, with empty accounts and a new window."""
        super()._forget()
        self._left = self._window
        self._banked = {}
        self._banked_rates = None

    def accounts(self) -> Mapping[int, float]:
        """Return the banked tickets, by module; in the first window those in escrow."""
        return self._banked or self._tickets

    def rates(self) -> ConsumptionRates | None:
        """Return the rates of the window before this one; in the first window its own."""
        return self._rates and (self._banked_rates or self._rates)

    def sent(self, signature: Signature, module: int, tuples: int) -> None:
        """Credit the escrow account; start a new window when this one is over."""
        super().sent(signature, module, tuples)
        self._left -= 1
        if self._left <= 0:
            self._banked = self._tickets
            self._tickets = dict.fromkeys(self._tickets, 0.0)
            self._left = self._window
            if self._rates is not None:
                self._banked_rates = self._rates
                self._rates = ConsumptionRates()
