"""Which functions Spark calls in one turn, of all filters of a plan.

Spark makes one filter of several that come together in its plan, calls functions of one kind after
those of another, and filters between: people rely on it for what one kind keeps from another. What
a block is, and where it stands, gives its functions another turn. Where all functions are of one
kind, and none is called with another's value, Spark calls them for the same rows, and with any
other turn none has more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eddyline.connect.messages import Relation, everything, has_ours, has_python, relations_in
from eddyline.connect.sent_functions import PythonCall, calls_at


@dataclass(frozen=True, slots=True)
class Turns:
    """The ``kinds`` of functions that ``filters`` call; blocks are no functions here.

    ``following`` says that a filter may call one with the value of another, between which Spark
    filters: so does one on columns of a list that calls functions.
    """

    kinds: frozenset[int] = frozenset()
    filters: int = 0
    following: bool = False

    def may_change(self, nodes: Sequence[Relation]) -> bool:
        """Whether functions of the filters among some relations may have another turn."""
        in_one_turn = len(self.kinds) < 2 and not self.following  # noqa: PLR2004 - one kind
        return in_one_turn or sum(map(_calls, nodes)) == self.filters


def turns_of(root: Relation) -> Turns:
    """Return what there is in a relation, and in all below it."""
    filters = [one for one in everything(root) if isinstance(one, Relation) and _calls(one)]
    kinds = (call.kind for one in filters for call in _asked(one))
    return Turns(frozenset(kinds), len(filters), any(map(_follows, _topmost(root))))


def _topmost(root: Relation) -> Iterator[Relation]:
    """Yield the filters that call functions with no such filter above them."""
    pending = [root]
    while pending:
        relation = pending.pop()
        if _calls(relation):
            yield relation
        else:
            pending.extend(relations_in(relation))


def _follows(relation: Relation) -> bool:
    """Whether a filter, or one below it, may have another between two functions that it calls."""
    below = [one for one in everything(relation.filter.input) if isinstance(one, Relation)]
    filters = [one for one in below if _calls(one)]
    calls = (call for one in (relation, *filters) for call in _asked(one))
    return bool(filters) and (
        any(has_python(value) for call in calls for value in call.values) or any(map(_lists, below))
    )


def _asked(relation: Relation) -> list[PythonCall]:
    """Return the calls of a filter, but for those that are never Spark's."""
    return [
        call
        for expression, call in calls_at(relation.filter.condition)
        if not call.concurrent and not has_ours(expression)
    ]


def _calls(relation: Relation) -> bool:
    return bool(relation.HasField("filter")) and has_python(relation.filter.condition)


def _lists(relation: Relation) -> bool:
    """Whether a relation makes columns of functions."""
    made = [*relation.project.expressions, *(one.expr for one in relation.with_columns.aliases)]
    return any(map(has_python, made))
