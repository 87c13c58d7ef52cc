"""Lottery scheduling: tickets for tuples consumed, taken back for tuples returned."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from eddyline.engine.policies.naive import ConsumptionRates, draw
from eddyline.engine.policies.policy import Allotment, no_overhead
from eddyline.engine.routes import Routes
from eddyline.engine.signature import ENTERING, Signature


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
    """

    name = "lottery"

    def __init__(self) -> None:
        self._routes = Routes(0)
        self._tickets: dict[int, float] = {}
        self._rates: ConsumptionRates | None = None

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
        """Start anew, with empty accounts."""
        self._tickets = {}
        self._rates = None

    def accounts(self) -> Mapping[int, float]:
        """Return the tickets that count in a lottery, by module; one that is missing has none."""
        return self._tickets

    def rates(self) -> ConsumptionRates | None:
        """Return the rates that count in a lottery; None where back-pressure shows them."""
        return self._rates

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
        """Credit a ticket a tuple."""
        self._tickets[module] += tuples

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

    def _weights(self, modules: tuple[int, ...]) -> list[float]:
        accounts = self.accounts()
        weights = [max(accounts.get(module, 0.0), 1.0) for module in modules]
        measured = self.rates()
        if measured is None:
            return weights
        return [
            weight * rate for weight, rate in zip(weights, measured.among(modules), strict=True)
        ]
