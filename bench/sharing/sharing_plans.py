"""Six ways to share the work of many queries, as data.

Krishnamurthy, Franklin, Jacobson and Hellerstein (2004): the three plans of NiagaraCQ that
Section 3 takes apart, TULIP (Section 4), CACQ as Section 6.1 describes it, and CAR (Section 6.3).
They differ in where selections stand, and so in what rows in SteMs know of them, and in whether
queries have operators of their own. All run on one engine and have equal answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class SelectionPlacement(StrEnum):
    """Where the predicates of all queries on a stream are evaluated first."""

    ABOVE = "above"  # on joined tuples only
    BELOW_AS_DISJUNCTION = (
        "below, as a disjunction"  # before the build; what was found is forgotten
    )
    BELOW = "below"  # before the build; what was found is the tuple's lineage
    AFTER_BUILD = "after build"  # between the build and the probe


@dataclass(frozen=True, slots=True)
class SharingPlan:
    """Choices that make a plan.

    ``joins_apart``: each query has joins of its own, into which its tuples are copied.
    ``outputs_apart``: each query has an output of its own. ``adaptive``: a policy chooses among
    operators, within the precedence graph; else their order is fixed.
    """

    name: str
    selections: SelectionPlacement
    joins_apart: bool = False
    outputs_apart: bool = False
    adaptive: bool = False

    @property
    def selects_at_output(self) -> bool:
        """Whether outputs have to find out whose results joined tuples are."""
        return self.selections in {
            SelectionPlacement.ABOVE,
            SelectionPlacement.BELOW_AS_DISJUNCTION,
        }


_PLANS: Final = (
    SharingPlan("selection_pull_up", SelectionPlacement.ABOVE, outputs_apart=True),
    SharingPlan("filtered_pull_up", SelectionPlacement.BELOW_AS_DISJUNCTION, outputs_apart=True),
    SharingPlan(
        "selection_push_down", SelectionPlacement.BELOW, joins_apart=True, outputs_apart=True
    ),
    SharingPlan("tulip", SelectionPlacement.BELOW),
    SharingPlan("cacq", SelectionPlacement.AFTER_BUILD, adaptive=True),
    SharingPlan("car", SelectionPlacement.BELOW, adaptive=True),
)

PLANS: Final = MappingProxyType({plan.name: plan for plan in _PLANS})
"""By name."""
