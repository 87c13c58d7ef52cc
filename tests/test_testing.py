"""The check of policies: ours pass, and each way to be wrong is found."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from eddyline import policies
from eddyline.engine.policies.catalogue import PolicyName
from eddyline.engine.policies.naive import NaivePolicy
from eddyline.engine.policies.policy import Allotment, Policy
from eddyline.engine.policies.rank import RankPolicy
from eddyline.engine.routes import Routes
from eddyline.engine.signature import Signature
from eddyline.errors import UnknownPolicyError
from eddyline.testing import check_policy

pytestmark = pytest.mark.slow(5)

OBJECTS: list[Policy] = [
    policies.Adaptive(exploration=0.5),
    policies.Lottery(window=3),
    policies.Rank(every=1),
]


@pytest.mark.parametrize(
    "policy", [*PolicyName, *OBJECTS], ids=lambda policy: type(policy).__name__
)
def test_our_own_pass(policy: str | Policy) -> None:
    check_policy(policy, seed=3)


class Wrong(policies.Policy):
    """Routes at random as it should, unless a subclass says otherwise."""

    name = "wrong"

    def start(
        self,
        routes: Routes,
        generator: np.random.Generator,
        overhead: Callable[[int], float] = lambda _: 0.0,  # noqa: ARG002 - not weighed
        *,
        queued: bool = False,  # noqa: ARG002 - nor felt
    ) -> None:
        self.routes = routes
        self.generator = generator

    def route(
        self,
        signature: Signature,  # noqa: ARG002 - the same for all
        candidates: tuple[int, ...],
        open_: tuple[int, ...],  # noqa: ARG002 - likewise
        tuples: int,
    ) -> Allotment | None:
        return Allotment(int(self.generator.choice(candidates)), tuples)

    def order(self, signature: Signature) -> tuple[int, ...]:
        return self.routes.remaining(signature)


def test_one_that_has_the_protocol_for_a_base_needs_to_learn_nothing() -> None:
    check_policy(Wrong())


class Illegal(Wrong):
    def route(self, *_: Any) -> Allotment | None:  # noqa: ANN401
        return Allotment(0, 1)


class AllotsNone(Wrong):
    def route(self, _: Any, candidates: tuple[int, ...], *__: Any) -> Allotment | None:  # noqa: ANN401
        return Allotment(candidates[0], 0)


class Waits(Wrong):
    def route(self, *_: Any) -> Allotment | None:  # noqa: ANN401
        return None


class Forgets(Wrong):
    """Tells an order without the modules that are not candidates yet."""

    def order(self, signature: Signature) -> tuple[int, ...]:
        return self.routes.candidates(signature)


class CommonChance(Wrong):
    """Takes nothing of what it draws."""

    def route(self, *arguments: Any) -> Allotment | None:  # noqa: ANN401
        random.random()
        return super().route(*arguments)


class CommonChanceOfNumPy(Wrong):
    def route(self, *arguments: Any) -> Allotment | None:  # noqa: ANN401
        np.random.random()  # noqa: NPY002 - that is what is wrong
        return super().route(*arguments)


class OwnChance(Wrong):
    """Draws from a generator that nobody seeds."""

    def route(self, _: Any, candidates: tuple[int, ...], *rest: Any) -> Allotment | None:  # noqa: ANN401
        return Allotment(int(np.random.default_rng().choice(candidates)), rest[1])


class Shares(Wrong):
    """Copies learn from each other, in a dictionary of the module."""

    def route(self, signature: Signature, candidates: tuple[int, ...], *rest: Any) -> Allotment:  # noqa: ANN401
        LEARNED[signature] += 1
        return Allotment(candidates[LEARNED[signature] // 50 % len(candidates)], rest[1])


LEARNED: Counter[Signature] = Counter()


class OnlyOnce(Wrong):
    """Cannot be started for a second eddy."""

    def start(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401
        if hasattr(self, "routes"):
            raise RuntimeError("started already")
        super().start(*arguments, **options)


class FixedModules(Wrong):
    """Does not know modules that come later."""

    def start(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401
        super().start(*arguments, **options)
        self.tickets = getattr(self, "tickets", None) or dict.fromkeys(self.routes.numbers, 0)

    def sent(self, _: Signature, module: int, tuples: int) -> None:
        self.tickets[module] += tuples


class Believes(Wrong):
    """Fails where anything is known beforehand."""

    def believe(self, priors: Any) -> None:  # noqa: ANN401
        raise KeyError(len(priors))


class OfFilters(Wrong):
    """Takes the number of a module for a bit of ``done``, as it is in filters alone."""

    def route(self, signature: Signature, candidates: tuple[int, ...], *rest: Any) -> Allotment:  # noqa: ANN401
        first = (~signature.done & (signature.done + 1)).bit_length() - 1
        return Allotment(first if first < 5 else candidates[0], rest[1])


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (Illegal, "fails with 2 predicates: ValueError: module 0 is none of the candidates"),
        (AllotsNone, "is to get 0 tuples"),
        (Waits, "it waits although no tuple is with a module"),
        (Forgets, "fails with predicates that wait: .*does not name what is left"),
        (CommonChance, "policy wrong draws from a common generator"),
        (CommonChanceOfNumPy, "policy wrong draws from a common generator"),
        (OwnChance, "fails with one seed, several times: decision . differs"),
        (Shares, "fails with one seed, several times: decision"),
        (OnlyOnce, "fails with one eddy after another: RuntimeError: started already"),
        (FixedModules, "fails with one eddy after another: KeyError|modules that come and go"),
        (Believes, "fails with what is known beforehand: KeyError"),
        (OfFilters, "is none of the candidates"),
    ],
)
def test_what_is_wrong_is_found(wrong: type[Wrong], told: str) -> None:
    LEARNED.clear()
    with pytest.raises(AssertionError, match=told):
        check_policy(wrong())


def test_a_reader_of_other_queues_is_found() -> None:
    class NeverFull(NaivePolicy):
        """Fails where a module has no room."""

        def route(
            self,
            signature: Signature,
            candidates: tuple[int, ...],
            open_: tuple[int, ...],
            tuples: int,
        ) -> Allotment | None:
            if open_ != candidates:
                raise ValueError("a queue is full")
            return super().route(signature, candidates, open_, tuples)

    with pytest.raises(AssertionError, match="fails with bounded queues: ValueError: a queue"):
        check_policy(NeverFull())


def test_what_is_no_policy_is_no_failed_check() -> None:
    with pytest.raises(UnknownPolicyError):
        check_policy("fastest")
    with pytest.raises(TypeError, match="the class RankPolicy, not an object"):
        check_policy(RankPolicy)  # type: ignore[arg-type]
