"""The routing policy that a user has chosen, as it travels to the tasks."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from functools import partial
from typing import Final

from pyspark import cloudpickle

from eddyline.engine.policies.catalogue import PolicyName, make_policy, policy_name
from eddyline.engine.policies.guarded import GuardedPolicy
from eddyline.engine.policies.policy import Policy

METHODS: Final = ("start", "route", "sent", "returned", "order")
"""What an object must have to be a policy, beside its name."""


@dataclass(frozen=True, slots=True)
class ChosenPolicy:
    """A policy by its name, or an object by what reports call it and its pickle.

    Equal ones are the same policy with the same parameters; an object that has learned something
    since is another one.
    """

    name: str
    pickled: bytes | None = None

    def make(self) -> Policy:
        """Return a new policy for one eddy: of an object a copy, behind a guard."""
        if self.pickled is None:
            return make_policy(self.name)
        return GuardedPolicy(self.name, partial(pickle.loads, self.pickled))


DEFAULT_POLICY: Final = ChosenPolicy(PolicyName.ADAPTIVE)

WRITTEN_ORDER: Final = ChosenPolicy(PolicyName.STATIC)
"""The policy that keeps the order of the query."""


def chosen_policy(policy: str | Policy) -> ChosenPolicy:
    """Return what a user has chosen, checked.

    UnknownPolicyError for a name that there is none of; TypeError for what is neither a name nor
    an object with all that :class:`~eddyline.engine.policies.policy.Policy` asks for, and for an
    object that cannot be pickled, with what it holds.
    """
    if isinstance(policy, str):
        return ChosenPolicy(policy_name(policy))
    if isinstance(policy, type):
        raise TypeError(
            f"policy is the class {policy.__name__}, not an object of it: {policy.__name__}(…)."
        )
    lacking = [method for method in METHODS if not callable(getattr(policy, method, None))]
    if len(lacking) == len(METHODS):
        raise TypeError(f"policy is a name or an object of eddyline.Policy, not {policy!r}.")
    try:
        name: object = getattr(policy, "name", None)
    except Exception:  # noqa: BLE001 - whatever its property raises
        name = None
    if not isinstance(name, str) or not name:
        lacking.insert(0, "a name (a string)")
    if lacking:
        raise TypeError(
            f"policy is a {type(policy).__name__}, which lacks {', '.join(lacking)}: "
            "eddyline.Policy says what each is for."
        )
    try:
        return ChosenPolicy(str(name), cloudpickle.dumps(policy))  # type: ignore[no-untyped-call]  # PySpark's own
    except Exception as error:
        raise TypeError(
            f"policy {name} cannot be sent to the tasks, since it cannot be pickled: {error}"
        ) from error
