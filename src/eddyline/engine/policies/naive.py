"""The naive eddy: back-pressure and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eddyline.engine.policies.policy import Allotment, no_overhead
from eddyline.engine.routes import Routes
from eddyline.engine.signature import ENTERING, Signature


class ConsumptionRates:
    """How fast each module takes tuples in, for engines in which no queue shows it.

    Deshpande (2004, Section 2.1.4): in a single-threaded engine there is no
    back-pressure, so the costs are instrumented instead.
    """

    def __init__(self) -> None:
        self._tuples: dict[int, int] = {}
        self._cost: dict[int, float] = {}

    def record(self, module: int, tuples: int, cost: float) -> None:
        """Add a visit."""
        self._tuples[module] = self._tuples.get(module, 0) + tuples
        self._cost[module] = self._cost.get(module, 0.0) + cost

    def of(self, module: int) -> float | None:
        """Return tuples per unit of cost; None where nothing is known."""
        tuples = self._tuples.get(module)
        return tuples / max(self._cost[module], 1e-300) if tuples else None

    def among(self, modules: tuple[int, ...]) -> list[float]:
        """Return the rates of some modules; an unknown one counts as the fastest that is known."""
        rates = [self.of(module) for module in modules]
        fastest = max((rate for rate in rates if rate is not None), default=1.0)
        return [fastest if rate is None else rate for rate in rates]


def draw(modules: tuple[int, ...], weights: list[float], generator: np.random.Generator) -> int:
    """Draw one module with a chance in proportion to its weight; evenly if all are 0."""
    total = sum(weights)
    if not total > 0.0:
        return modules[int(generator.integers(len(modules)))]
    point = generator.random() * total
    for module, weight in zip(modules, weights, strict=True):
        point -= weight
        if point < 0.0:
            return module
    return modules[-1]


class NaivePolicy:
    """Send a tuple to any module that has room.

    Avnur and Hellerstein (2000, Section 4.2): fast modules make room more often,
    so cheap ones come first by fluid dynamics alone; selectivity has no effect.
    Among modules with room the choice is even. Where modules have no queues, the
    chance follows the measured rate of consumption, which is what back-pressure
    would bring about.
    """

    name = "naive"

    def __init__(self) -> None:
        self._rates: ConsumptionRates | None = None

    def start(
        self,
        routes: Routes,
        generator: np.random.Generator,
        overhead: Callable[[int], float] = no_overhead,  # noqa: ARG002 - the paper weighs none
        *,
        queued: bool = False,
    ) -> None:
        """Take the routes and the generator."""
        self._routes = routes
        self._generator = generator
        if queued:
            self._rates = None
        elif self._rates is None:
            self._rates = ConsumptionRates()

    def route(
        self,
        signature: Signature,  # noqa: ARG002 - the same for all
        candidates: tuple[int, ...],  # noqa: ARG002 - only what has room counts
        open_: tuple[int, ...],
        tuples: int,
    ) -> Allotment | None:
        """Draw among the modules with room; wait if there is none."""
        if not open_:
            return None
        if len(open_) == 1:
            return Allotment(open_[0], tuples)
        return Allotment(draw(open_, self._weights(open_), self._generator), tuples)

    def sent(self, signature: Signature, module: int, tuples: int) -> None:
        """Learn nothing."""

    def returned(
        self,
        signature: Signature,  # noqa: ARG002 - rates are the modules' own
        module: int,
        tuples_in: int,
        tuples_out: int,  # noqa: ARG002 - selectivity has no effect
        cost: float,
    ) -> None:
        """Add to the rates."""
        if self._rates is not None:
            self._rates.record(module, tuples_in, cost)

    def order(self, signature: Signature = ENTERING) -> tuple[int, ...]:
        """Return the likeliest order."""
        modules = self._routes.remaining(signature)
        weights = dict(zip(modules, self._weights(modules), strict=True))
        return tuple(sorted(modules, key=lambda module: -weights[module]))

    def _weights(self, modules: tuple[int, ...]) -> list[float]:
        if self._rates is None:
            return [1.0] * len(modules)
        return self._rates.among(modules)
