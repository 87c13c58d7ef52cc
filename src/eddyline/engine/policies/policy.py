"""What an eddy asks of a routing policy."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
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

    It needs no base class. A class that has this one inherits a :meth:`sent` and a
    :meth:`returned` that learn nothing.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """What reports call the policy."""
        ...

    @abstractmethod
    def start(
        self,
        routes: Routes,
        generator: np.random.Generator,
        overhead: Callable[[int], float] = no_overhead,
        *,
        queued: bool = False,
    ) -> None:
        """Take what an eddy routes by; called before all else, and again when modules come or go.

        ``routes`` says which modules there are (``routes.numbers``), which are left to a tuple
        (``routes.remaining(signature)``), which of these are legal now
        (``routes.candidates(signature)``), and what signature a tuple has after one of them
        (``routes.after(signature, module)``). What is known of other modules stays.

        ``generator`` is where all chance comes from: one seed is one sequence of decisions.
        ``overhead`` gives what a visit to a module costs now before its first
        tuple: the eddy's own work and the module's. ``queued`` says that modules
        stand behind bounded queues, so that back-pressure can be felt.
        """
        ...

    @abstractmethod
    def route(
        self, signature: Signature, candidates: tuple[int, ...], open_: tuple[int, ...], tuples: int
    ) -> Allotment | None:
        """Choose for the next of ``tuples`` waiting tuples: one of ``candidates``, for how many.

        ``candidates`` ascend. ``open_`` are those whose queue has room, all of them where there
        are no queues. A module without room may be chosen; the tuples then wait for it. For more
        tuples than there are, or than are worth a visit, the eddy sends fewer.

        None means: wait until something comes back. Where nothing is with a module that is an
        error.
        """
        ...

    def sent(self, signature: Signature, module: int, tuples: int) -> None:
        """Learn that tuples were handed to a module."""
        del signature, module, tuples  # a method without a statement would count as abstract

    def returned(
        self, signature: Signature, module: int, tuples_in: int, tuples_out: int, cost: float
    ) -> None:
        """Learn what became of tuples: how many came back, and their cost in all.

        The cost is in the clock's unit.
        """
        del signature, module, tuples_in, tuples_out, cost

    @abstractmethod
    def order(self, signature: Signature) -> tuple[int, ...]:
        """Return the order in which a tuple of this signature would now visit the modules.

        Reports show it. It names what is left to the tuple.
        """
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


@runtime_checkable
class RoutesByContent(Policy, Protocol):
    """A policy that knows classes of tuples, told apart by their values, by their marks."""

    @property
    def by_content(self) -> bool:
        """Whether it wants tuples to be told apart at all."""
        ...

    @property
    def shifts(self) -> int:
        """How many changes of selectivities it has noticed."""
        ...

    def tell_apart(self, classes: Sequence[Mapping[int, Prior]]) -> None:
        """Forget the classes of before; tuples are of these now, with marks from 1 on.

        Each is given what is known beforehand of its tuples at the modules, by number. Without
        any, tuples are not told apart any longer.
        """
        ...


def begin_with(policy: Policy, priors: Mapping[int, Prior]) -> None:
    """Let a policy that has started begin with what is known beforehand, if it takes any."""
    if priors and isinstance(policy, TakesPriors):
        policy.believe(priors)
