"""Lottery scheduling: tickets for tuples consumed, taken back for tuples returned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from eddyline.checked_values import whole_number
from eddyline.engine.policies.naive import ConsumptionRates, draw
from eddyline.engine.policies.policy import Allotment, no_overhead
from eddyline.engine.routes import Routes
from eddyline.engine.signature import ENTERING, Signature

WINDOW: Final = 100
"""Decisions in a window where one is wanted by name; the paper does not give its own.

On the simulated river windows from 50 on do equally well where nothing changes.
Over the toggling costs of Section 4.5 one of 100 takes 67,000 delay units, one
of 200 71,000, of 500 101,000, of 1,000 130,000.
"""


class LotteryPolicy:
    """Hold a lottery among the modules that may take the tuple.

    Avnur and Hellerstein (2000, Section 4.3): a module is credited one ticket
    for every tuple it is given and debited one for every tuple it returns, so its
    account follows how well it drains tuples from the system; its chance is in
    proportion to the account, with one ticket as the least. A winner without room
    forfeits: the tuple waits for the next lottery. So slow modules win in vain,
    which brings in their speed, and yet a good module that is busy is not passed
    over at once for a bad one that is not. Where modules have no queues the chance
    is the account times the measured rate of consumption.

    With a ``window`` it forgets (Section 4.5): tickets earned now go into escrow;
    at the start of a window the escrow account replaces the banked one, which is
    what counts in lotteries, and starts again from nothing, so that every module
    proves itself anew in every window. A window is a number of decisions: of
    tuples, where each is routed by itself, and of visits, where these take more,
    so that a window always is long enough for several modules to be tried.
    Measured rates of consumption, where modules have no queues, are forgotten in
    the same way.
    """

    def __init__(self, window: int | None = None) -> None:
        """``window`` is a number of decisions; without one nothing is forgotten.

        ValueError or TypeError for what is no whole number from 1 on.
        """
        if window is not None:
            window = whole_number(window, "a window", 1, "decisions", floats=True)
        self.name = "lottery" if window is None else "windowed_lottery"
        self._window = window
        self._left = window or 0
        self._routes = Routes(0)
        self._tickets: dict[int, float] = {}
        self._rates: ConsumptionRates | None = None
        self._banked: Mapping[int, float] = {}
        self._banked_rates: ConsumptionRates | None = None

    def start(
        self,
        routes: Routes,
        generator: np.random.Generator,
        overhead: Callable[[int], float] = no_overhead,  # noqa: ARG002 - the paper weighs none
        *,
        queued: bool = False,
    ) -> None:
        """Take the routes and the generator; accounts of an earlier eddy stay."""
        self._generator = generator
        if routes is not self._routes and routes.numbers != tuple(self._tickets):
            self._forget()
        if queued:
            self._rates = None
        elif self._rates is None:
            self._rates = ConsumptionRates()
        self._routes = routes
        self._tickets = {number: self._tickets.get(number, 0.0) for number in routes.numbers}

    def _forget(self) -> None:
        """Start anew, with empty accounts and a new window."""
        self._left = self._window or 0
        self._tickets, self._banked = {}, {}
        self._rates = self._banked_rates = None

    def accounts(self) -> Mapping[int, float]:
        """Return the tickets that count in a lottery, by module; one that is missing has none.

        With a window they are the banked ones, in the first window those in escrow.
        """
        return self._banked or self._tickets

    def rates(self) -> ConsumptionRates | None:
        """Return the rates that count in a lottery; None where back-pressure shows them.

        With a window they are those of the window before this one, in the first one its own.
        """
        return self._rates and (self._banked_rates or self._rates)

    def route(
        self,
        signature: Signature,  # noqa: ARG002 - accounts are the modules' own
        candidates: tuple[int, ...],
        open_: tuple[int, ...],
        tuples: int,
    ) -> Allotment | None:
        """Hold the lottery; wait if the winner has no room."""
        if len(candidates) == 1:
            return Allotment(candidates[0], tuples)
        winner = draw(candidates, self._weights(candidates), self._generator)
        return Allotment(winner, tuples) if winner in open_ else None

    def sent(self, signature: Signature, module: int, tuples: int) -> None:  # noqa: ARG002 - accounts are the modules' own
        """Credit a ticket a tuple; start a new window when this one is over."""
        self._tickets[module] += tuples
        if self._window is not None:
            self._left -= 1
            if self._left <= 0:
                self._begin_window(self._window)

    def returned(
        self,
        signature: Signature,  # noqa: ARG002 - accounts are the modules' own
        module: int,
        tuples_in: int,
        tuples_out: int,
        cost: float,
    ) -> None:
        """Debit a ticket for each tuple that came back."""
        self._tickets[module] -= tuples_out
        if self._rates is not None:
            self._rates.record(module, tuples_in, cost)

    def order(self, signature: Signature = ENTERING) -> tuple[int, ...]:
        """Return the likeliest order."""
        modules = self._routes.remaining(signature)
        weights = dict(zip(modules, self._weights(modules), strict=True))
        return tuple(sorted(modules, key=lambda module: -weights[module]))

    def _begin_window(self, decisions: int) -> None:
        self._left = decisions
        self._banked = self._tickets
        self._tickets = dict.fromkeys(self._tickets, 0.0)
        if self._rates is not None:
            self._banked_rates = self._rates
            self._rates = ConsumptionRates()

    def _weights(self, modules: tuple[int, ...]) -> list[float]:
        accounts = self.accounts()
        weights = [max(accounts.get(module, 0.0), 1.0) for module in modules]
        measured = self.rates()
        if measured is None:
            return weights
        return [
            weight * rate for weight, rate in zip(weights, measured.among(modules), strict=True)
        ]
