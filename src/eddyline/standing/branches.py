"""The branches of a query: UNION ALL and outer joins, as queries that are put out under one name.

What ``a UNION ALL b`` puts out are the rows of both. A LEFT JOIN puts out what an inner join does,
and the rows of its left side that meet none, with NULLs. So these are queries that can stand, and
each is shared with others that say the same: see
``docs/decisions/0087-unions-and-outer-joins-are-branches.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pyspark.errors import PySparkException

from eddyline import catalyst
from eddyline.blocks.decline import not_understood
from eddyline.catalyst import Analyst, CatalystExpression, Plan
from eddyline.planner.read.chains import EvaluationLink, Tree, read_link
from eddyline.standing.existences import ANTI, EXISTENCE, ONE_SIDED
from eddyline.standing.markers import PARAMETER
from eddyline.standing.plan_sources import PlanSources, name_of

MOST_BRANCHES: Final = 64
"""Branches of one query; six outer joins, one after the other, have as many."""

_MAY_MISS: Final = {
    "LEFT OUTER": (False, True),
    "RIGHT OUTER": (True, False),
    "FULL OUTER": (True, True),
}
"""Of outer joins whether a row may be without a left side, and whether without a right one."""

_CHAINED: Final = frozenset({"Filter", "Project", "Generate", "BatchEvalPython", "ArrowEvalPython"})
"""Nodes that treat each row by itself."""


def branches_of(analyst: Analyst, plan: Plan, sources: PlanSources) -> tuple[Plan, ...]:
    """Return the branches of an optimized plan: their rows together are those of the plan.

    Each has the columns of the plan, in the same order, and is optimized; the plan itself where it
    is its only branch. A join of aggregates of streams is none of several. DeclinedError where
    something needs the rows of several branches together, and for more than :data:`MOST_BRANCHES`.
    """
    branching = _Branching(sources)
    if not branching.has_branches(plan):
        return (plan,)
    branches = []
    for number, branch in enumerate(branching.branches(plan), 1):
        if number > MOST_BRANCHES:
            raise not_understood(
                f"more than {MOST_BRANCHES} branches of UNION ALL and outer joins: add several "
                "queries"
            )
        try:
            optimized = _without_idle(analyst.optimized_again(branch))
        except PySparkException as error:
            told = str(error).split("\n", 1)[0]
            raise not_understood(
                f"what it says of rows that meet none raises an error whatever comes: {told}"
            ) from error
        if not _is_never_true(optimized):
            branches.append(optimized)
    return tuple(branches) or (plan,)


class _Branching:
    """Takes plans apart."""

    def __init__(self, sources: PlanSources) -> None:
        self._sources = sources

    def has_branches(self, plan: Plan) -> bool:
        """Tell whether a plan is to be taken apart."""
        if name_of(plan) == "Union" or self._is_outer(plan):
            return True
        return any(map(self.has_branches, catalyst.children(plan)))

    def _is_outer(self, plan: Plan) -> bool:
        """Tell whether a node is an outer join whose rows are results, and no groups."""
        return any(_may_miss(plan)) and not self._sources.joins_groups(plan)

    def branches(self, plan: Plan) -> Iterator[Plan]:
        """Yield the branches of a plan, not optimized."""
        name = name_of(plan)
        if self._sources.table_of(plan) is not None or not self.has_branches(plan):
            yield plan
        elif name == "Union":
            for child in catalyst.children(plan):
                for branch in self.branches(child):
                    yield _under_names_of(plan, branch)
        elif name == "Join":
            yield from self._of_join(plan)
        elif name in _CHAINED:
            (child,) = catalyst.children(plan)
            for branch in self.branches(child):
                yield catalyst.with_children(plan, [branch])
        else:
            raise not_understood(_TOGETHER.get(name, f"UNION or an outer join below {name}"))

    def _of_join(self, plan: Plan) -> Iterator[Plan]:
        kind = catalyst.join_type(plan)
        left, right = catalyst.children(plan)
        if kind in ONE_SIDED:
            for branch in self.branches(left):
                yield catalyst.with_children(plan, [branch, right])
            return
        lefts, rights = tuple(self.branches(left)), tuple(self.branches(right))
        no_left, no_right = _may_miss(plan)
        if (no_left or no_right) and not self._is_outer(plan):
            raise not_understood(
                "an outer join of aggregates with UNION ALL below it: join each of them, and write "
                "UNION ALL of the joins"
            )
        for one in lefts:
            for other in rights:
                yield (
                    catalyst.joined_as("inner", plan, one, other)
                    if kind in _MAY_MISS
                    else catalyst.with_children(plan, [one, other])
                )
        if no_right:
            yield from self._alone(plan, lefts, rights)
        if no_left:
            yield from self._alone(plan, rights, lefts)

    def _alone(self, join: Plan, rows: Sequence[Plan], others: Sequence[Plan]) -> Iterator[Plan]:
        """Yield the rows of which none of the others meets any, with NULLs in these' columns."""
        if len(others) > 1:  # a row meets none only if it meets none of any branch
            raise not_understood(
                "an outer join with what UNION ALL or an outer join gives, on the side that may "
                "be missing: join one stream or table after the other"
            )
        (missing,) = others
        numbers = frozenset(catalyst.output_numbers(missing))
        items = [
            catalyst.no_value_like(attribute) if number in numbers else attribute
            for attribute, number in zip(
                catalyst.outputs(join), catalyst.output_numbers(join), strict=True
            )
        ]
        condition = catalyst.join_condition(join)
        if not self._sources.of_tables(missing):
            missing, names = self._renamed(missing)
            if condition is not None:
                condition = catalyst.with_attributes(condition, names)
        for plan in rows:
            if self._sources.of_tables(plan):
                raise not_understood(
                    "an outer join that puts out rows of a table that no event meets, which is "
                    "never known: write stream LEFT JOIN table"
                )
            alone = catalyst.joined_as("leftanti", join, plan, missing, condition)
            yield catalyst.projected(items, alone)

    def _renamed(self, plan: Plan) -> tuple[Plan, dict[int, CatalystExpression]]:
        """Return a plan whose columns have new identities, and its attributes by the old numbers.

        The NULLs above have the old ones: what stands for one of them must not be a column.
        """
        if self._sources.table_of(plan) is not None:
            new = catalyst.leaf_under_new_names(plan)
            pairs = zip(catalyst.output_numbers(plan), catalyst.outputs(new), strict=True)
            return new, dict(pairs)
        name = name_of(plan)
        link, _ = read_link(plan)
        parameters = isinstance(link, EvaluationLink) and all(
            str(function.node.fields["name"]).startswith(PARAMETER) for function in link.functions
        )
        if name not in {"Filter", "Project"} and not parameters:
            raise not_understood(
                "an outer join in which what may be missing is more than one stream and conditions "
                "on it, or calls a Python function: make that a stream of its own"
            )
        (child,) = catalyst.children(plan)
        below, names = self._renamed(child)
        if parameters:  # which the NULLs above do not stand for
            return catalyst.with_children(plan, [below]), names
        if name == "Filter":
            kept = catalyst.with_attributes(catalyst.condition(plan), names)
            return catalyst.filtered(kept, below), names
        items = []
        for item in catalyst.project_list(plan):
            if Tree.of(item).name == "Alias":
                value = catalyst.with_attributes(catalyst.aliased(item), names)
                items.append(catalyst.named(value, str(Tree.of(item).node.fields["name"])))
                names[catalyst.identity_number(item)] = catalyst.attribute_of(items[-1])
            else:
                items.append(catalyst.with_attributes(item, names))
        return catalyst.projected(items, below), names


_OF_AGGREGATE: Final = (
    "an aggregate of UNION ALL or of an outer join: make the union, or the join with a table, in "
    "the stream's own DataFrame (UNION is an aggregate as well: write UNION ALL)"
)

_TOGETHER: Final = {"Aggregate": _OF_AGGREGATE, "Distinct": _OF_AGGREGATE}


def _may_miss(plan: Plan) -> tuple[bool, bool]:
    """Tell whether a row of a node may be without a left side, and whether without a right one."""
    kind = catalyst.join_type(plan) if name_of(plan) == "Join" else ""
    return _MAY_MISS.get(kind, (False, False))


def _under_names_of(union: Plan, branch: Plan) -> Plan:
    """Return a branch whose columns have the identities of the union's, which are the first's."""
    numbers = zip(catalyst.output_numbers(union), catalyst.output_numbers(branch), strict=True)
    if all(asked == given for asked, given in numbers):
        return branch
    pairs = zip(catalyst.outputs(union), catalyst.outputs(branch), strict=True)
    return catalyst.projected(
        [catalyst.attribute_like(attribute, column) for attribute, column in pairs], branch
    )


def _without_idle(plan: Plan) -> Plan:
    """Return a plan without its antijoins that keep all rows, as what they compare is NULL."""
    children = catalyst.children(plan)
    if not children:
        return plan
    is_anti = name_of(plan) == "Join" and catalyst.join_type(plan) == ANTI
    if is_anti and (_is_false(plan) or _is_never_true(children[1])):
        return _without_idle(children[0])
    new = [_without_idle(child) for child in children]
    return plan if new == [*children] else catalyst.with_children(plan, new)


def _is_never_true(plan: Plan) -> bool:
    """Tell whether a plan has no rows because of what it says, such as NULL > 3."""
    children = catalyst.children(plan)
    name = name_of(plan)
    if not children:
        return catalyst.is_empty(plan)
    if name == "Join" and catalyst.join_type(plan) in {ANTI, EXISTENCE}:
        return _is_never_true(children[0])
    no_left, no_right = _may_miss(plan)
    if no_left or no_right:  # a join of aggregates
        left, right = children
        kept = [*([left] if no_right else []), *([right] if no_left else [])]
        return all(map(_is_never_true, kept))
    if name in {"Filter", "Join"} and _is_false(plan):
        return True
    return any(map(_is_never_true, children))


def _is_false(plan: Plan) -> bool:
    """Tell whether the condition of a ``Filter`` or ``Join`` is FALSE, or NULL, for all rows."""
    is_join = name_of(plan) == "Join"
    condition = catalyst.join_condition(plan) if is_join else catalyst.condition(plan)
    return condition is not None and any(
        tree.name == "Literal" and tree.node.fields.get("value") in {None, "false"}
        for tree in Tree.of(condition).terms("And")
    )
