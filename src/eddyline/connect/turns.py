"""Which functions Spark calls in one turn, of all filters of a plan.

Spark makes one filter of several that come together in its plan, calls functions of one kind after
those of another, and filters between: people rely on it for what one kind keeps from another. What
a block is, and where it stands, gives its functions another turn. Where all functions are of one
kind Spark calls them for the same rows, and with any other turn none has more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eddyline.connect.messages import Relation, everything, has_ours, has_python
from eddyline.connect.sent_functions import calls_at


@dataclass(frozen=True, slots=True)
class Turns:
    """The ``kinds`` of functions that ``filters`` call; blocks are no functions here."""

    kinds: frozenset[int] = frozenset()
    filters: int = 0

    def may_change(self, nodes: Sequence[Relation]) -> bool:
        """Whether functions of the filters among some relations may have another turn."""
        return len(self.kinds) < 2 or sum(map(_calls, nodes)) == self.filters  # noqa: PLR2004 - one kind


def turns_of(root: Relation) -> Turns:
    """Return what there is in a relation, and in all below it."""
    filters = [one for one in everything(root) if isinstance(one, Relation) and _calls(one)]
    kinds = (
        call.kind
        for one in filters
        for expression, call in calls_at(one.filter.condition)
        if not call.concurrent and not has_ours(expression)
    )
    return Turns(frozenset(kinds), len(filters))


def _calls(relation: Relation) -> bool:
    return bool(relation.HasField("filter")) and has_python(relation.filter.condition)
