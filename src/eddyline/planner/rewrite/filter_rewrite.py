"""Rebuilds a chain around its filter block.

From the bottom up: the base, the native conjuncts, the block as *one* Python
function whose result is a struct, a filter on the struct's first field, a
projection that gives the needed values the identities that they had, and then
the links of the chain without what the block has answered. Every attribute
above keeps its identity, so what stands on the chain need not change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from eddyline import catalyst
from eddyline.blocks.filter_block import FilterBlock, SessionSettings, fused_name, identified
from eddyline.blocks.nests import with_shared_parts
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.engine.filter.filter_eddy import ALL_ROWS
from eddyline.expressions import Argument, Call, Case, Expression, calls_in, with_children
from eddyline.planner.claim.filter_claim import Claim, is_made_on_the_way
from eddyline.planner.read.chains import (
    Chain,
    EvaluationLink,
    ExpressionId,
    FilterLink,
    Link,
    ProjectLink,
    Tree,
)
from eddyline.quirks import arrow_columns

Fuse: TypeAlias = Callable[[FilterBlock], "FusedFunction"]
"""Makes the function of a block; equal blocks must get equal functions."""


@dataclass(frozen=True, slots=True)
class FusedFunction:
    """A block's function: its pickle, and the Spark type of its result as JSON.

    The result is a struct: whether the row is kept, then the block's outputs.
    """

    command: bytes
    return_type: str


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A chain's new plan, and the blocks in it.

    ``values`` are the numbers of the attributes with the results of blocks that only compute
    values.
    ``spared`` are results that plain Spark computes below a filter which is now below them.
    """

    plan: Plan
    blocks: tuple[FilterBlock, ...]
    values: tuple[int, ...]
    spared: frozenset[ExpressionId]


def rebuild(chain: Chain, claim: Claim, settings: SessionSettings, fuse: Fuse) -> Rewritten:
    """Return the chain with the claimed part as one function; see the module's text."""
    links = [_rest(link, position, claim) for position, link in enumerate(chain.links)]
    needs = _needs(chain, links, claim)
    attributes = {
        identity: link.results[index].handle
        for link in chain.links
        if isinstance(link, EvaluationLink)
        for index in link.indexes
        if (identity := link.results[index].identity) in needs[0]
    }
    plan, blocks, only_values = chain.base, list[FilterBlock](), list[int]()
    spared = _below_filters(chain, claim)
    for part, provided in _parts(claim, list(attributes)):
        outputs = tuple(dict.fromkeys(map(part.value, provided)))
        block = block_of(part, outputs, settings)
        if part.above:
            shown = map(catalyst.pretty, part.above)
            later = tuple(f"and {text} after these: it could raise" for text in shown)
            block = identified(replace(block, joined=later))
        if blocks and not spared.isdisjoint(provided):
            block = identified(replace(block, spared=True))
        struct, evaluated = block_over(plan, part, block, fuse)
        if part.above:  # as what is not deterministic, or Spark would move it below the block again
            last = catalyst.in_any_row(catalyst.conjunction(part.above))
            evaluated = catalyst.filtered(last, evaluated)
        fields = {value: catalyst.struct_field(struct, 1 + i) for i, value in enumerate(outputs)}
        values = [
            catalyst.attribute_like(attributes[result], fields[part.value(result)])
            for result in provided
        ]
        plan = catalyst.output_and_more(plan, evaluated, values)
        blocks.append(block)
        # In a projection Spark would put a subquery back where it is an argument.
        if part.predicate == ALL_ROWS and not any(map(catalyst.holds_subquery, part.arguments)):
            only_values.append(catalyst.identity_number(struct))
    for link, needed in zip(links, needs[1:], strict=True):
        passing = {
            identity: attribute for identity, attribute in attributes.items() if identity in needed
        }
        plan = _relink(link, plan, passing)
    if not isinstance(chain.links[-1], ProjectLink):
        plan = catalyst.projected_like(chain.top, plan)
    return Rewritten(plan, tuple(blocks), tuple(only_values), spared)


def _below_filters(chain: Chain, claim: Claim) -> frozenset[ExpressionId]:
    """Return the results of a chain that are computed below a filter which the block takes in."""
    last = max((position for position, _ in claim.taken), default=0)
    return frozenset(
        link.results[index].identity
        for link in chain.links[:last]
        if isinstance(link, EvaluationLink)
        for index in link.indexes
    )


def _parts(
    claim: Claim, provided: Sequence[ExpressionId]
) -> list[tuple[Claim, list[ExpressionId]]]:
    """Return the blocks of a claim from the bottom up, each with what it is to provide.

    What has nothing to do with the predicate is computed by a block above it: there Spark can see
    whether it is used, and how many rows are wanted. What the predicate computes on the way has.
    """
    asked = set(calls_in(claim.predicate))
    with_it: list[ExpressionId] = []
    apart = list(provided)

    def belongs(result: ExpressionId) -> bool:
        return any(
            call in asked or any(is_made_on_the_way(call, nest, claim.functions) for nest in asked)
            for call in calls_in(claim.value(result))
        )

    while more := list(filter(belongs, apart)):
        with_it += more
        apart = [result for result in apart if result not in more]
        asked.update(
            *(calls_in(claim.value(result)) for result in more)
        )  # it decides who needs them
    if claim.predicate == ALL_ROWS or not apart:
        return [(claim, list(provided))]
    above = replace(claim, predicate=ALL_ROWS, texts=(), below=(), waits=(), after=(), above=())
    return [(_only(claim, with_it), with_it), (_only(above, apart), apart)]


def _only(claim: Claim, provided: Sequence[ExpressionId]) -> Claim:
    """Return a claim without arguments and functions that it has no use for."""
    values = [claim.value(result) for result in provided]
    nodes = [node for expression in (claim.predicate, *values) for node in expression.walk()]
    arguments = sorted({node.index for node in nodes if isinstance(node, Argument)})
    functions = sorted({node.function for node in nodes if isinstance(node, Call)})

    def placed(expression: Expression) -> Expression:
        if isinstance(expression, Argument):
            return replace(expression, index=arguments.index(expression.index))
        over = with_children(expression, placed)
        if isinstance(over, Call):
            return replace(over, function=functions.index(over.function))
        return over

    return replace(
        claim,
        predicate=placed(claim.predicate),
        functions=tuple(claim.functions[number] for number in functions),
        arguments=tuple(claim.arguments[number] for number in arguments),
        after=tuple((cast("Call", placed(call)), n) for call, n in claim.after if call in nodes),
        calls={result: cast("Call", placed(claim.calls[result])) for result in provided},
        needed={
            result: placed(claim.needed[result]) for result in provided if result in claim.needed
        },
    )


def block_of(
    claim: Claim, outputs: tuple[Call | Case, ...], settings: SessionSettings
) -> FilterBlock:
    """Describe a claim as plain data."""
    names = tuple(map(catalyst.pretty, claim.arguments))
    block = FilterBlock(
        "",
        claim.predicate,
        claim.texts,
        with_shared_parts(claim.functions),
        outputs,
        settings,
        names,
        waits=claim.waits,
        after=claim.after,
        spared=len(claim.calls) > len(set(claim.calls.values())),
    )
    return identified(block)


def block_over(
    base: Plan, claim: Claim, block: FilterBlock, fuse: Fuse
) -> tuple[CatalystExpression, Plan]:
    """Return the struct attribute, and the filter on it over the block's evaluation.

    There is no filter over a block that only computes values.
    """
    if claim.below:
        base = catalyst.filtered(catalyst.conjunction(claim.below), base)
    base, arguments = _without_subqueries(base, claim.arguments)
    fused = fuse(block)
    call = catalyst.python_call(
        name=fused_name(block.texts or [function.name for function in block.functions]),
        command=fused.command,
        like=claim.environments,
        return_type=fused.return_type,
        # A function without arguments gets no rows from Spark, so give it one.
        arguments=arguments or (catalyst.literal_true(),),
        kind=arrow_columns.BY_TASK,
    )
    struct = catalyst.new_attribute("eddy", call)
    plan = catalyst.arrow_evaluation(call, struct, arrow_columns.BY_TASK, base)
    if block.predicate == ALL_ROWS:
        return struct, plan
    return struct, catalyst.filtered(catalyst.struct_field(struct, 0), plan)


def _without_subqueries(
    base: Plan, arguments: Sequence[CatalystExpression]
) -> tuple[Plan, Sequence[CatalystExpression]]:
    """Return the arguments with columns for those that hold a subquery, and what computes these.

    Where a Python evaluation has several arguments, Spark's tasks compare them, and then the plan
    of a subquery lacks its session: over a range or a cache that raises a NullPointerException.
    """
    held = [n for n, argument in enumerate(arguments) if catalyst.holds_subquery(argument)]
    if not held:
        return base, arguments
    computed = [catalyst.named(arguments[n], f"subquery{n}") for n in held]
    attributes = dict(zip(held, map(catalyst.attribute_of, computed), strict=True))
    taken = [attributes.get(n, argument) for n, argument in enumerate(arguments)]
    return catalyst.output_and_more(base, base, computed), taken


def _rest(link: Link, position: int, claim: Claim) -> Link:
    """Return the link without what the block answers."""
    if isinstance(link, FilterLink):
        rest = (
            conjunct
            for index, conjunct in enumerate(link.conjuncts)
            if (position, index) not in claim.taken
        )
        return replace(link, conjuncts=tuple(rest))
    if isinstance(link, EvaluationLink):
        rest_of_functions = (
            index for index in link.indexes if link.results[index].identity not in claim.calls
        )
        return replace(link, indexes=tuple(rest_of_functions))
    return link


def _needs(chain: Chain, links: Sequence[Link], claim: Claim) -> list[frozenset[ExpressionId]]:
    """Return which of the block's values are needed: by anything, then above each link."""
    above: frozenset[ExpressionId] = frozenset()
    if not isinstance(links[-1], ProjectLink):
        shown = frozenset(catalyst.output_numbers(chain.top))
        above = frozenset(
            identity
            for link in chain.links
            if isinstance(link, EvaluationLink)
            for index in link.indexes
            if (identity := link.results[index].identity) in claim.calls and identity[0] in shown
        )
    needs = [above]
    for link in reversed(links):
        used = (identity for tree in _trees(link) for identity in tree.attributes())
        above = above | {identity for identity in used if identity in claim.calls}
        needs.append(above)
    return needs[::-1]


def _trees(link: Link) -> Sequence[Tree]:
    if isinstance(link, FilterLink):
        return link.conjuncts
    if isinstance(link, ProjectLink):
        return link.items
    return [link.functions[index] for index in link.indexes]


def _relink(link: Link, child: Plan, needed: Mapping[ExpressionId, CatalystExpression]) -> Plan:
    """Return the link over a new child; a projection passes on what is ``needed`` above it."""
    if isinstance(link, FilterLink):
        if not link.conjuncts:
            return child
        kept = catalyst.conjunction([conjunct.handle for conjunct in link.conjuncts])
        return catalyst.filtered(kept, child)
    if isinstance(link, EvaluationLink):
        return catalyst.evaluation_of(link.plan, link.indexes, child) if link.indexes else child
    passed = {item.identity for item in link.items if item.name == "AttributeReference"}
    more = [attribute for identity, attribute in needed.items() if identity not in passed]
    return catalyst.project_over(link.plan, child, more)
