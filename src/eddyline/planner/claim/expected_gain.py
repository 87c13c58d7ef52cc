"""Whether a join in an eddy is worth what it costs, where the costs of its functions are known.

What tasks have reported of functions (:mod:`eddyline.planner.learned`) says what a call costs; the
footers of Parquet files say how many rows a table has. Where both are known of everything that is
asked, the most that an eddy can save is known too: all calls, each once a row of its input, as
functions that are left to Spark remember. A join of which that is less than what an eddy takes by
itself is left to Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from eddyline import catalyst
from eddyline.blocks.filter_block import UserFunction
from eddyline.catalyst import Plan
from eddyline.planner.claim.join_claim import JoinClaim

CostOf: TypeAlias = "Callable[[UserFunction], float | None]"
"""From a function to the seconds that a call has taken; None where nobody knows."""

BY_ITSELF: Final = 0.02
"""Seconds that a block of joins takes by itself.

Of the short queries (``python -m bench short``) those whose functions take microseconds for some
thousand rows of two tables took 15 to 30 ms longer in an eddy than in Spark.
"""

A_ROW: Final = 1e-6
"""Seconds to carry a row to Python and back, which Spark does only with rows it asks about."""


class ExpectedGain(NamedTuple):
    """Seconds that a join in an eddy saves at the most, and those that it costs."""

    most: float
    cost: float

    @property
    def pays(self) -> bool:
        """Whether the eddy may be worth it."""
        return self.most >= self.cost

    def __str__(self) -> str:
        """Return it for people: "about 4 ms to gain, 21 ms to pay"."""
        return f"about {1000 * self.most:.0f} ms to gain, {1000 * self.cost:.0f} ms to pay"


def expected_gain(claim: JoinClaim, plans: Sequence[Plan], cost_of: CostOf) -> ExpectedGain | None:
    """Return what a claim over some inputs may gain; None where that is not known.

    A function over columns of several inputs may be asked about any number of rows.
    """
    if claim.looked_up or claim.constants:
        return None
    costs = list(map(cost_of, claim.functions))
    if None in costs:
        return None
    catalyst.look_at(plans)
    rows = [catalyst.parquet_rows(plan) for plan in plans]
    most = 0.0
    asked = set[int]()
    for call in claim.calls:
        inputs = claim.looked_at(call)
        if len(inputs) != 1:
            return None
        (number,) = inputs
        known, cost = rows[number], costs[call.function]
        if known is None or cost is None:
            return None
        most += known * cost
        asked.add(number)
    moved = sum(known or 0 for number, known in enumerate(rows) if number not in asked)
    return ExpectedGain(most, BY_ITSELF + A_ROW * moved)
