"""The routing policies as objects, whose parameters can be set, and what a new one is made of.

``eddyline.adapt(df, policy=eddyline.policies.Lottery(window=50))``; with nothing set an object does
what its name does. ``simulate`` of :mod:`eddyline.testing` takes the same objects.

>>> Lottery().name, Lottery(window=50).name
('lottery', 'windowed_lottery')
>>> Rank(every=0)
Traceback (most recent call last):
    ...
ValueError: the reoptimization frequency is a whole number of tuples from 1 on, not 0
"""

from __future__ import annotations

from eddyline.engine.policies.adaptive import AdaptivePolicy as Adaptive
from eddyline.engine.policies.benefit import BenefitPolicy as Benefit
from eddyline.engine.policies.lottery import LotteryPolicy as Lottery
from eddyline.engine.policies.naive import NaivePolicy as Naive
from eddyline.engine.policies.policy import Allotment, Policy, TakesPriors
from eddyline.engine.policies.rank import RankPolicy as Rank
from eddyline.engine.policies.static import StaticPolicy as Static
from eddyline.engine.prior import Prior
from eddyline.engine.routes import Routes
from eddyline.engine.signature import Signature

__all__ = [
    "Adaptive",
    "Allotment",
    "Benefit",
    "Lottery",
    "Naive",
    "Policy",
    "Prior",
    "Rank",
    "Routes",
    "Signature",
    "Static",
    "TakesPriors",
]
