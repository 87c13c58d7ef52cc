"""The routing policies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from types import MappingProxyType

from eddyline.engine.policies.adaptive import AdaptivePolicy
from eddyline.engine.policies.benefit import BenefitPolicy
from eddyline.engine.policies.lottery import WINDOW, LotteryPolicy
from eddyline.engine.policies.naive import NaivePolicy
from eddyline.engine.policies.policy import Policy
from eddyline.engine.policies.rank import RankPolicy
from eddyline.engine.policies.static import StaticPolicy
from eddyline.errors import UnknownPolicyError


class PolicyName(StrEnum):
    """The policies that users can ask for."""

    STATIC = "static"  # the written order, always
    NAIVE = "naive"  # back-pressure only (Avnur and Hellerstein, 2000)
    LOTTERY = "lottery"  # tickets (Avnur and Hellerstein, 2000)
    WINDOWED_LOTTERY = "windowed_lottery"  # banked and escrow tickets (the same)
    RANK = "rank"  # rank order, re-decided every 100 tuples (Deshpande, 2004)
    BENEFIT = "benefit"  # value over time among access methods (Raman and others, 2003)
    ADAPTIVE = "adaptive"  # least expected cost, own forgetting: the default


_MAKERS: Mapping[PolicyName, Callable[[], Policy]] = MappingProxyType(
    {
        PolicyName.STATIC: StaticPolicy,
        PolicyName.NAIVE: NaivePolicy,
        PolicyName.LOTTERY: LotteryPolicy,
        PolicyName.WINDOWED_LOTTERY: partial(LotteryPolicy, WINDOW),
        PolicyName.RANK: RankPolicy,
        PolicyName.BENEFIT: BenefitPolicy,
        PolicyName.ADAPTIVE: AdaptivePolicy,
    }
)


def policy_name(name: str) -> PolicyName:
    """Return the policy of that name.

    >>> policy_name("rank")
    <PolicyName.RANK: 'rank'>
    """
    try:
        return PolicyName(name)
    except ValueError:
        known = ", ".join(PolicyName)
        message = f"there is no routing policy {name!r}; choose one of: {known}"
        raise UnknownPolicyError(message) from None


def make_policy(name: str) -> Policy:
    """Make a policy with its default settings."""
    return _MAKERS[policy_name(name)]()
