"""Static order: an eddy that does not adapt, for comparison."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from eddyline.engine.policies.policy import Allotment, no_overhead
from eddyline.engine.routes import Routes
from eddyline.engine.signature import Signature


class StaticPolicy:
    """Every tuple visits the modules in one given order.

    Avnur and Hellerstein (2000, Section 4.1) simulate static plans in this way.
    """

    name = "static"

    def __init__(self, order: Sequence[int] | None = None) -> None:
        """``order`` are the numbers of modules, first to last; None for the order as written.

        ValueError or TypeError for what is no order of modules.
        """
        self._order = None if order is None else order_of_modules(order)
        self._place: dict[int, int] = {}
        self._routes = Routes(0)

    def start(
        self,
        routes: Routes,
        generator: np.random.Generator,  # noqa: ARG002 - nothing here is random
        overhead: Callable[[int], float] = no_overhead,  # noqa: ARG002 - nor weighed
        *,
        queued: bool = False,  # noqa: ARG002 - waits for the best module, queue or no queue
    ) -> None:
        """Complete the order; modules that come later come last.

        ValueError where it does not name each of an eddy's modules once.
        """
        if routes is not self._routes:
            order = routes.numbers if self._order is None else self._order
            if tuple(sorted(order)) != routes.numbers:
                raise ValueError(f"order {order} does not name each of {routes.numbers} once")
            self._place = dict.fromkeys(order, 0)
        else:
            self._place |= dict.fromkeys(routes.numbers, 0)
        here = [module for module in self._place if module in routes.numbers]
        self._place = {module: place for place, module in enumerate(here)}
        self._routes = routes

    def route(
        self,
        signature: Signature,  # noqa: ARG002 - the same for all
        candidates: tuple[int, ...],
        open_: tuple[int, ...],  # noqa: ARG002 - waits for the module whose turn it is
        tuples: int,
    ) -> Allotment | None:
        """Send all to the first candidate in the order."""
        return Allotment(min(candidates, key=self._place.__getitem__), tuples)

    def sent(self, signature: Signature, module: int, tuples: int) -> None:
        """Learn nothing."""

    def returned(
        self, signature: Signature, module: int, tuples_in: int, tuples_out: int, cost: float
    ) -> None:
        """Learn nothing."""

    def order(self, signature: Signature) -> tuple[int, ...]:
        """Return the given order, without what is done."""
        remaining = self._routes.remaining(signature)
        return tuple(module for module in self._place if module in remaining)


def order_of_modules(value: object) -> tuple[int, ...]:
    """Return an order of modules, each of which has a number from 0 on and comes once.

    TypeError for what is no sequence of such numbers, ValueError for one with a number twice.

    >>> order_of_modules((1, 1))
    Traceback (most recent call last):
    ValueError: an order names each module once, by its number from 0 on, not (1, 1)
    """
    wrong = f"an order names each module once, by its number from 0 on, not {value!r}"
    if isinstance(value, str | AbstractSet) or not isinstance(value, Iterable):
        raise TypeError(wrong)
    numbers: Sequence[object] = tuple(value)
    if any(isinstance(number, bool) or not hasattr(number, "__index__") for number in numbers):
        raise TypeError(wrong)
    order = tuple(map(operator.index, numbers))  # type: ignore[arg-type]
    if len(set(order)) < len(order) or min(order, default=0) < 0:
        raise ValueError(wrong)
    return order
