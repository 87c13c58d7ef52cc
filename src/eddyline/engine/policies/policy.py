"""What an eddy asks of a routing policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from eddyline.engine.prior import Prior
from eddyline.engine.routes import Routes
from eddyline.engine.signature import Signature


class Allotment(NamedTuple):
    """Where the next tuples of a signature go, and how many of them at the most."""

    module: int
    tuples: int


def no_overhead(module: int) -> float:  # noqa: ARG001 - the same for all
    """Return 0: visits cost nothing but what their tuples cost, as on a virtual clock."""
    return 0.0


class Policy(Protocol):
    """Chooses, for tuples of one signature, the module that they visit next.

    A policy sees counts and costs, never rows, and only legal candidates; it can
    make a run slow but not an answer wrong. One instance serves one eddy at
    a time; what it has learned stays when :meth:`start` hands it to the next.
    """

    @property
    def name(self) -> str:
        """The policy's name, as users pass it."""
        ...

    def start(
        self,
        routes: Routes,
        generator: np.random.Generator,
        overhead: Callable[[int], float] = no_overhead,
        *,
        queued: bool = False,
    ) -> None:
        """Take what an eddy routes by; called before all else, and again when modules come or go.

        What is known of other modules stays.

        ``overhead`` gives what a visit to a module costs now before its first
        tuple: the eddy's own work and the module's. ``queued`` says that modules
        stand behind bounded queues, so that back-pressure can be felt.
        """
        ...

    def route(
        self, signature: Signature, candidates: tuple[int, ...], open_: tuple[int, ...], tuples: int
    ) -> Allotment | None:
        """Choose for the next of ``tuples`` waiting tuples.

        ``open_`` are the candidates whose queue has room, all of them where there
        are no queues. None means: wait. A module without room may be chosen;
        the tuples then wait for it.
        """
        ...

    def sent(self, signature: Signature, module: int, tuples: int) -> None:
        """Learn that tuples were handed to a module."""
        ...

    def returned(
        self, signature: Signature, module: int, tuples_in: int, tuples_out: int, cost: float
    ) -> None:
        """Learn what became of tuples: how many came back, and their cost in all.

        The cost is in the clock's unit.
        """
        ...

    def order(self, signature: Signature) -> tuple[int, ...]:
        """Return the order in which a tuple of this signature would now visit the modules."""
        ...


@runtime_checkable
class TakesPriors(Protocol):
    """A policy that begins with what is known of modules beforehand, where anything is."""

    def believe(self, priors: Mapping[int, Prior]) -> None:
        """Take what is known, by number of the module, once it has started, before any tuple.

        What is learned from then on overrules it. Other modules than those of the routes are
        left out.
        """
        ...


def begin_with(policy: Policy, priors: Mapping[int, Prior]) -> None:
    """Let a policy that has started begin with what is known beforehand, if it takes any."""
    if priors and isinstance(policy, TakesPriors):
        policy.believe(priors)
