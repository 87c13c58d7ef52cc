"""Rebuilds a region whose joins are Spark's, around a filter block over the input asked about.

From the bottom up: the input that functions look at, with its native conditions; what reduces
it; the block; and then the region's own joins, filters and projections without what the block
has answered. The inputs that reduce it exactly are joined above as the very plans that they
reduce by, so that Spark computes and broadcasts each of them once (``ReusedExchange``).

Where the rows that are left are not just those that are part of joined rows, the block hands
errors on: a row for which a predicate failed is kept with its error as text, and only above the
joins, where all else has accepted it, it is raised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from eddyline.query.expressions import And, Argument, Expression, calls_in, with_arguments
from eddyline.spark.blocks.filter_block import FilterBlock, SessionSettings
from eddyline.spark.claiming.filter_claim import Claim
from eddyline.spark.claiming.join_claim import JoinClaim
from eddyline.spark.claiming.native_choice import NativeJoins
from eddyline.spark.host import catalyst
from eddyline.spark.host.catalyst import CatalystExpression, Plan
from eddyline.spark.plan.chains import EvaluationLink, Link, ProjectLink
from eddyline.spark.plan.definitions import Definitions
from eddyline.spark.plan.regions import Region
from eddyline.spark.rewriting.filter_rewrite import Fuse, block_of, block_over, identified
from eddyline.spark.rewriting.reducing import Reducing


@dataclass(frozen=True)
class JoinedNatively:
    """A region's new plan, and the block in it."""

    plan: Plan
    block: FilterBlock


def joined_natively(
    spark: SparkSession,
    choice: NativeJoins,
    region: Region,
    claim: JoinClaim,
    inputs: Sequence[Plan],
    settings: SessionSettings,
    fuse: Fuse,
) -> JoinedNatively:
    """Return a region with Spark's joins over a filter block; see the module's text.

    ``inputs`` are those of the region, rewritten before it.
    """
    root = choice.reduction.root
    triples = zip(choice.sources, region.inputs, inputs, strict=True)
    sources = [each if new is old else each.over(new) for each, old, new in triples]
    reducing = Reducing(spark, sources)
    base = reducing.reduced(sources[root].plan, root, choice.reduction.reducers)
    asked = _claim_of(claim)
    block = block_of(asked, (), settings)
    described = replace(block, hands_on_errors=not choice.reduction.exact, joined=choice.described)
    block = identified(described)
    struct, plan = block_over(base, asked, block, fuse)
    error: CatalystExpression | None = None
    if block.hands_on_errors:
        named = catalyst.named(catalyst.struct_field(struct, 1), "error")
        error = catalyst.attribute_of(named)
        plan = catalyst.output_and_more(base, plan, [named])
    else:
        plan = catalyst.projected_like(base, plan)
    new = {n: reducing.made.get(n, source.plan) for n, source in enumerate(sources)}
    new[root] = plan
    broadcast = frozenset(reducing.made) | choice.broadcast
    joins = _Joins(region, new, broadcast, choice.edges.definitions, error)
    return JoinedNatively(joins.rebuilt(), block)


def _claim_of(claim: JoinClaim) -> Claim:
    """Return the predicates with functions, which look at one input, as a chain's over it."""
    pairs = zip(claim.predicates, claim.texts, strict=True)
    asking = [(predicate, text) for predicate, text in pairs if calls_in(predicate)]
    nodes = (node for predicate, _ in asking for node in predicate.walk())
    own = sorted({node.index for node in nodes if isinstance(node, Argument)})
    place = {n: position for position, n in enumerate(own)}

    def placed(expression: Expression) -> Expression:
        return with_arguments(expression, lambda a: Argument(place[a.index], a.type))

    terms = tuple(placed(predicate) for predicate, _ in asking)
    return Claim(
        And(terms) if len(terms) > 1 else terms[0],
        tuple(text for _, text in asking),
        claim.functions,
        claim.environments,
        tuple(claim.columns[n].handle for n in own),
        (),
        frozenset(),
        {},
    )


class _Joins:
    """The nodes of a region over other inputs, without its functions."""

    def __init__(
        self,
        region: Region,
        inputs: Mapping[int, Plan],
        broadcast: frozenset[int],
        definitions: Definitions,
        error: CatalystExpression | None,
    ) -> None:
        self._region = region
        self._inputs = {id(plan): number for number, plan in enumerate(region.inputs)}
        self._new = inputs
        self._broadcast = broadcast
        self._links: dict[int, Link] = {id(link.plan): link for link in region.links}
        self._definitions = definitions
        self._error = error

    def rebuilt(self) -> Plan:
        """Return the region; above its joins errors are raised that the block has handed on."""
        plan = self._over(self._region.top)
        if self._error is not None:
            plan = catalyst.filtered(catalyst.no_error(self._error), plan)
        return catalyst.projected_like(self._region.top, plan)

    def _over(self, plan: Plan) -> Plan:
        number = self._inputs.get(id(plan))
        if number is not None:
            return self._new[number]
        link = self._links.get(id(plan))
        children = catalyst.children(plan)
        new = [self._over(child) for child in children]
        if link is None:  # its condition is TRUE, or it has none
            return catalyst.with_children(plan, new)
        if isinstance(link, EvaluationLink):
            return new[0]
        if isinstance(link, ProjectLink):
            return self._projected(link, new[0])
        kept = [each.handle for each in link.conjuncts if not self._definitions.is_dependent(each)]
        if len(new) == 1:
            return catalyst.filtered(catalyst.conjunction(kept), new[0]) if kept else new[0]
        if len(kept) < len(link.conjuncts):
            plan = catalyst.joined_on(plan, catalyst.conjunction(kept) if kept else None)
        return catalyst.joined_over(plan, new, [self._is_broadcast(each) for each in children])

    def _projected(self, link: ProjectLink, child: Plan) -> Plan:
        items = [each.handle for each in link.items if not self._definitions.is_dependent(each)]
        if self._error is not None:
            numbers = catalyst.output_numbers(child)
            if catalyst.identity_number(self._error) in numbers:
                items.append(self._error)
        return catalyst.projected(items, child)

    def _is_broadcast(self, plan: Plan) -> bool:
        """Whether a side of a join is an input that is to be broadcast."""
        while (number := self._inputs.get(id(plan))) is None:
            link = self._links.get(id(plan))
            if link is None or len(catalyst.children(plan)) > 1:
                return False
            (plan,) = catalyst.children(plan)
        return number in self._broadcast
