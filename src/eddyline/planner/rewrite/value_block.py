"""Functions of one node in one block, where the value of one says whether another is called.

``CASE WHEN cheap(a) THEN costly(a) END`` needs the second only where the first is TRUE. One
function that computes both asks each row about the second when it knows the first; two nodes, one
over the other, would send all rows to Python twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from eddyline import catalyst
from eddyline.blocks.decline import not_understood
from eddyline.blocks.filter_block import FilterBlock, SessionSettings, fused_name, identified
from eddyline.blocks.nests import with_shared_parts
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.engine.filter.filter_eddy import ALL_ROWS
from eddyline.expressions import Call, Case, called_where
from eddyline.planner.claim.term_translation import Terms
from eddyline.planner.read.chains import EvaluationLink
from eddyline.planner.read.definitions import Definitions, FunctionResult
from eddyline.planner.read.needs import Need, conditions_of
from eddyline.planner.rewrite.filter_rewrite import Fuse
from eddyline.quirks import arrow_columns

MOST_STAGES: Final = 3
"""The most nodes made of one whose functions decide on each other: each sends all rows to Python
once more."""


def decided_by_others(link: EvaluationLink, needs: Callable[[int], Need]) -> frozenset[int]:
    """Return the functions of a node that decide on others, and these others."""
    made = {link.results[index].identity: index for index in link.indexes}
    indexes: set[int] = set()
    for index in link.indexes:
        looked_at = {identity for c in conditions_of(needs(index)) for identity in c.attributes}
        deciding = {made[identity] for identity in looked_at if identity in made}
        if deciding:
            indexes |= {index, *deciding}
    return frozenset(indexes)


@dataclass(frozen=True, slots=True)
class ValueBlock:
    """A block that computes values, its call, and where each value is in what it returns."""

    block: FilterBlock
    call: CatalystExpression
    fields: Mapping[int, int]

    def over(
        self, plan: Plan, *, in_node: bool, stays: bool
    ) -> tuple[Plan, dict[int, CatalystExpression]]:
        """Return the value of each function, and a plan over which these can be computed.

        They are ``in_node`` to be evaluated in a node of their own, where a filter is to find
        them; else in the projection that they are put into, or, where the call ``stays``, in one
        that Spark does not push below a limit.
        """
        struct = self.call
        if stays:
            struct = catalyst.new_attribute("eddy", struct)
            named = catalyst.attribute_like(struct, catalyst.staying(self.call))
            plan = catalyst.output_and_more(plan, plan, [named])
        elif in_node:
            struct = catalyst.new_attribute("eddy", struct)
            kind = arrow_columns.BY_TASK
            plan = catalyst.arrow_evaluation(self.call, struct, kind, plan)
        fields = {n: catalyst.struct_field(struct, place) for n, place in self.fields.items()}
        return plan, fields


def value_block(
    link: EvaluationLink,
    indexes: Sequence[int],
    needs: Callable[[int], Need],
    settings: SessionSettings,
    fuse: Fuse,
    *,
    spared: bool,
    repeats: bool,
) -> ValueBlock:
    """Return the block of some functions of a node; plain Spark calls ``spared`` ones more often.

    Rows of one that ``repeats`` come of a join, below which plain Spark calls them.

    Raises :class:`DeclinedError` where one of them, or what is needed of it, cannot be evaluated.
    """
    definitions = Definitions({})
    definitions.define(replace(link, indexes=tuple(indexes)), guarded=False)
    terms = Terms(definitions, settings)
    outputs: dict[Call | Case, None] = {}
    fields: dict[int, int] = {}
    for index in indexes:
        call = terms.evaluable(terms.call(FunctionResult(link.functions[index], guarded=True)))
        needed = terms.needed(needs(index), guarded=False)
        output = call if needed is None else called_where(needed, call)
        outputs.setdefault(output)
        fields[index] = 1 + list(outputs).index(output)
    contents = terms.contents
    if any(map(catalyst.holds_subquery, contents.arguments)):
        raise not_understood("a subquery as an argument")
    names = tuple(map(catalyst.pretty, contents.arguments))
    block = identified(
        FilterBlock(
            "",
            ALL_ROWS,
            (),
            with_shared_parts(contents.functions),
            tuple(outputs),
            settings,
            names,
            spared=spared,
            repeats=repeats,
        )
    )
    fused = fuse(block)
    call_of_block = catalyst.python_call(
        name=fused_name(function.name for function in contents.functions),
        command=fused.command,
        like=contents.environments,
        return_type=fused.return_type,
        arguments=contents.arguments or (catalyst.literal_true(),),
        kind=arrow_columns.BY_TASK,
    )
    return ValueBlock(block, call_of_block, fields)


def stages_of(link: EvaluationLink, needs: Callable[[int], Need]) -> list[tuple[int, ...]]:
    """Return the functions of a node in an order in which what decides on others comes first.

    What a need looks at and is not computed by then counts as unknown.
    """
    stages: list[tuple[int, ...]] = []
    left = list(link.indexes)
    while left:
        pending = {link.results[index].identity for index in left}
        ready = [
            index
            for index in left
            if all(c.attributes.isdisjoint(pending) for c in conditions_of(needs(index)))
        ]
        last = not ready or len(stages) == MOST_STAGES - 1
        stages.append(tuple(left if last else ready))
        left = [] if last else [index for index in left if index not in ready]
    return stages
