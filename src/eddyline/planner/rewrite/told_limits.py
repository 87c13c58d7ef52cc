"""Tells blocks of the limits above them, where these come after the blocks were made.

Users take a few rows of an adapted DataFrame: by ``show``, ``take``, ``first``. That limit is in
the plan that the action runs, and the block, which has calls to make for its rows, is below
it. There its function is replaced by one that knows of the limit: it takes rows in growing rounds,
and stops when it has given as many as are wanted, unless something between may drop some.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from eddyline import catalyst
from eddyline.blocks.filter_block import FUSED_NAME, FilterBlock
from eddyline.blocks.join_block import Counted, JoinBlock
from eddyline.catalyst import Plan
from eddyline.planner.read.chains import ExpressionId, FilterLink, ProjectLink, Tree, read_link
from eddyline.planner.rewrite.replaced import replaced

TellLimit: TypeAlias = "Callable[[bytes, int, Callable[[FilterBlock | JoinBlock], bool]], bytes]"
"""From a function, as it is pickled, and a limit to the one that knows of it.

It is the same function where it does not heed limits. The last argument tells of its block whether
the limit takes the first rows that it gives.
"""

_UNTOLD: frozenset[ExpressionId] = frozenset()


@dataclass(frozen=True, slots=True)
class _Wanted:
    """How many rows of a node a limit above takes of each task, 0 for all, and what is between.

    ``asked`` are the columns of the node that each condition between is about, ``inlined`` those
    that each make several rows of one.
    """

    limit: int = 0
    asked: tuple[frozenset[ExpressionId], ...] = ()
    inlined: tuple[frozenset[ExpressionId], ...] = ()

    def below(self, limit: int) -> _Wanted:
        """Return what is wanted below a node that wants ``limit`` rows of its child."""
        if not limit:
            return _Wanted()
        return self if limit == self.limit else _Wanted(limit)

    def as_made_of(self, made: dict[ExpressionId, frozenset[ExpressionId]]) -> _Wanted:
        """Return what is wanted below a projection that makes columns of others."""

        def of(columns: frozenset[ExpressionId]) -> frozenset[ExpressionId]:
            return frozenset().union(*(made.get(column, frozenset([column])) for column in columns))

        return replace(self, asked=tuple(map(of, self.asked)), inlined=tuple(map(of, self.inlined)))


def with_limits_told(plan: Plan, tell: TellLimit) -> Plan:
    """Return a plan whose blocks know of the limits above them; the same where none has any."""
    return _Telling(tell).told(plan, _Wanted())


@dataclass(frozen=True, slots=True)
class _Telling:
    tell: TellLimit

    def told(self, plan: Plan, wanted: _Wanted) -> Plan:
        if not catalyst.has_python_function(plan):
            return plan
        if not wanted.limit and not catalyst.has_limit(plan):
            return plan
        below = self._below(plan, wanted)
        if wanted.limit:
            plan = self._calling_what_knows(plan, wanted)
        children = catalyst.children(plan)
        new = [self.told(child, below) for child in children]
        return replaced(plan, children, new, lambda subquery: self.told(subquery, _Wanted()))

    def _below(self, plan: Plan, wanted: _Wanted) -> _Wanted:
        kind = catalyst.class_name(plan).rpartition(".")[2]
        if not wanted.limit or kind == "LocalLimit":
            return wanted.below(catalyst.rows_wanted(plan, wanted.limit))
        link, _ = read_link(plan) if kind in {"Filter", "Project"} else (None, True)
        if isinstance(link, FilterLink):
            asked = (frozenset(conjunct.attributes()) for conjunct in link.conjuncts)
            return replace(wanted, asked=(*wanted.asked, *asked))
        if isinstance(link, ProjectLink):
            items = (item for item in link.items if item.name == "Alias")
            return wanted.as_made_of({i.identity: frozenset(i.attributes()) for i in items})
        if kind == "Generate":
            array = frozenset(Tree.of(catalyst.generator(plan)).attributes())
            return replace(wanted, inlined=(*wanted.inlined, array))
        if kind.endswith("MapInArrow") and any(map(_is_fused, catalyst.evaluated_functions(plan))):
            return replace(wanted, asked=(*wanted.asked, _UNTOLD))  # it drops rows itself
        evaluates = kind in {"ArrowEvalPython", "BatchEvalPython"}
        rows = wanted.limit if evaluates else catalyst.rows_wanted(plan, wanted.limit)
        return wanted.below(rows)

    def _calling_what_knows(self, plan: Plan, wanted: _Wanted) -> Plan:
        """Return a node that evaluates functions with those that know of the limit."""
        for number, function in enumerate(catalyst.evaluated_functions(plan)):
            if not _is_fused(function):
                continue
            rows = catalyst.class_name(plan).endswith("MapInArrow")
            attribute = None if rows else Tree.of(catalyst.result_attribute(plan, number)).identity
            command = catalyst.pickled_function(function).command
            told = self.tell(command, wanted.limit, partial(_takes_the_first, attribute, wanted))
            if told is not command:
                plan = catalyst.calling_instead(plan, number, told, maps=rows)
        return plan


def _is_fused(function: catalyst.CatalystExpression) -> bool:
    return catalyst.function_name(function).startswith(FUSED_NAME)


def _takes_the_first(
    result: ExpressionId | None, wanted: _Wanted, block: FilterBlock | JoinBlock
) -> bool:
    """Whether a limit takes the first rows that a block gives, as nothing between drops any.

    ``result`` is the column of what the block says of each row; None where it gives rows itself.
    """
    if result is None:
        return not wanted.asked and not wanted.inlined
    own = frozenset([result])
    if any(columns != own for columns in wanted.asked):
        return False
    if isinstance(block, FilterBlock):
        return not wanted.inlined
    matters = (Counted.MATCHES, Counted.MATCHES_OR_ROW)
    if wanted.inlined != ((own,) if block.counted in matters else ()):
        return False
    return not wanted.asked or block.counted not in {Counted.MATCHES_OR_ROW, Counted.ROWS}
