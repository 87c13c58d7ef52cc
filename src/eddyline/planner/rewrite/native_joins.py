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
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from eddyline import catalyst
from eddyline.blocks.filter_block import FilterBlock, SessionSettings, identified
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.engine.filter.filter_eddy import ALL_ROWS
from eddyline.expressions import And, Argument, Call, Expression, calls_in, with_children
from eddyline.planner.claim.filter_claim import Claim
from eddyline.planner.claim.join_claim import JoinClaim
from eddyline.planner.claim.native_choice import NativeJoins, names_of
from eddyline.planner.read.chains import EvaluationLink, ExpressionId, Link, ProjectLink, Tree
from eddyline.planner.read.definitions import Definitions
from eddyline.planner.read.regions import Region
from eddyline.planner.rewrite.filter_rewrite import Fuse, block_of, block_over
from eddyline.planner.rewrite.measured_rows import measured_first, stage_name
from eddyline.planner.rewrite.reducing import Reducing


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
    sources = [source if new is old else source.over(new) for source, old, new in triples]
    reducing = Reducing(spark, sources)
    base = reducing.reduced(sources[root].plan, root, choice.reduction.reducers)
    asked, outputs = _claim_of(claim, [call for _, call in choice.results])
    block = block_of(asked, tuple(dict.fromkeys(outputs)), settings)
    waiting = sorted(choice.waiting)
    names = names_of(choice.sources)
    described = replace(
        block,
        hands_on_errors=not choice.reduction.exact,
        joined=choice.described,
        reduced=bool(choice.reduction.reducers),
        measured_for=tuple(names[number] for number in waiting),
    )
    block = identified(described)
    struct, plan = block_over(base, asked, block, fuse)
    first = 1
    error: CatalystExpression | None = None
    provided = []
    if block.hands_on_errors:
        named = catalyst.named(catalyst.struct_field(struct, 1), "error")
        error = catalyst.attribute_of(named)
        provided.append(named)
        first = 2
    results = [attribute for attribute, _ in choice.results]
    for attribute, call in zip(results, outputs, strict=True):
        value = catalyst.struct_field(struct, first + block.outputs.index(call))
        provided.append(catalyst.attribute_like(attribute, value))
    plan = catalyst.output_and_more(base, plan, provided)
    new = {n: reducing.made.get(n, source.plan) for n, source in enumerate(sources)}
    new[root] = plan
    broadcast = frozenset(reducing.made) | choice.broadcast
    above = {Tree.of(attribute).identity for attribute, _ in claim.results}
    carried = [*results, *([] if error is None else [error])]
    stages = {number: stage_name(block, place) for place, number in enumerate(waiting)}
    measured = _Measured(spark, root, stages)
    joins = _Joins(
        region, new, broadcast, measured, choice.edges.definitions, above, carried, error
    )
    return JoinedNatively(joins.rebuilt(), block)


def _claim_of(claim: JoinClaim, results: Sequence[Call]) -> tuple[Claim, list[Call]]:
    """Return the predicates with functions, which look at one input, as a chain's over it.

    And the calls whose results the block is to provide.
    """
    pairs = zip(claim.predicates, claim.texts, strict=True)
    asking = [(predicate, text) for predicate, text in pairs if calls_in(predicate)]
    nodes = [
        node for expression in (*(p for p, _ in asking), *results) for node in expression.walk()
    ]
    own = sorted({node.index for node in nodes if isinstance(node, Argument)})
    place = {n: position for position, n in enumerate(own)}
    called = sorted({node.function for node in nodes if isinstance(node, Call)})

    def placed(expression: Expression) -> Expression:
        if isinstance(expression, Argument):
            return Argument(place[expression.index], expression.type)
        over = with_children(expression, placed)
        if isinstance(over, Call):
            return replace(over, function=called.index(over.function))
        return over

    terms = tuple(placed(predicate) for predicate, _ in asking)
    predicate = And(terms) if len(terms) > 1 else next(iter(terms), ALL_ROWS)
    made = Claim(
        predicate,
        tuple(text for _, text in asking),
        tuple(claim.functions[number] for number in called),
        claim.environments,
        tuple(claim.columns[n].handle for n in own),
        (),
        frozenset(),
        {},
    )
    return made, [call for result in results if isinstance(call := placed(result), Call)]


@dataclass(frozen=True)
class _Measured:
    """The input whose rows are measured on their way up, and for each that waits the stage."""

    spark: SparkSession
    root: int
    stages: Mapping[int, str]


class _Joins:
    """The nodes of a region over other inputs, without its functions."""

    def __init__(
        self,
        region: Region,
        inputs: Mapping[int, Plan],
        broadcast: frozenset[int],
        measured: _Measured,
        definitions: Definitions,
        wanted: AbstractSet[ExpressionId],
        carried: Sequence[CatalystExpression],
        error: CatalystExpression | None,
    ) -> None:
        """``wanted`` are results that the top needs; the block provides what is ``carried``."""
        self._region = region
        self._inputs = {id(plan): number for number, plan in enumerate(region.inputs)}
        self._new = inputs
        self._broadcast = broadcast
        self._measured = measured
        self._links: dict[int, Link] = {id(link.plan): link for link in region.links}
        self._definitions = definitions
        self._error = error
        self._wanted = wanted
        self._carried = carried
        self._called_above = wanted - {Tree.of(attribute).identity for attribute in carried}

    def rebuilt(self) -> Plan:
        """Return the region; errors that the block has handed on are raised above its joins."""
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
            stay = [i for i in link.indexes if link.results[i].identity in self._called_above]
            return catalyst.evaluation_of(link.plan, stay, new[0]) if stay else new[0]
        if isinstance(link, ProjectLink):
            return self._projected(link, new[0])
        kept_trees = [
            conjunct for conjunct in link.conjuncts if not self._definitions.is_dependent(conjunct)
        ]
        kept = [conjunct.handle for conjunct in kept_trees]
        if len(new) == 1:
            return catalyst.filtered(catalyst.conjunction(kept), new[0]) if kept else new[0]
        if len(kept) < len(link.conjuncts):
            plan = catalyst.joined_on(plan, catalyst.conjunction(kept) if kept else None)
        sides = self._read_when_measured(children, new, kept_trees)
        return catalyst.joined_over(plan, sides, [self._is_broadcast(child) for child in children])

    def _read_when_measured(
        self, children: Sequence[Plan], new: Sequence[Plan], conditions: Sequence[Tree]
    ) -> Sequence[Plan]:
        """Return the sides of a join, of which a large input waits for the rows of the other."""
        measured = self._measured
        for side, child in enumerate(children):
            stage = measured.stages.get(-1 if (number := self._input_of(child)) is None else number)
            if stage is not None and self._has_root(children[1 - side]):
                context = measured.spark.sparkContext
                sides = measured_first(context, stage, new[1 - side], new[side], conditions)
                return new if sides is None else sides[:: 1 if side else -1]
        return new

    def _has_root(self, plan: Plan) -> bool:
        number = self._inputs.get(id(plan))
        if number is not None:
            return number == self._measured.root
        return any(map(self._has_root, catalyst.children(plan)))

    def _projected(self, link: ProjectLink, child: Plan) -> Plan:
        results_in = self._definitions.results_in
        items = [item for item in link.items if results_in(item) <= self._wanted]
        passed = {item.identity for item in items}
        numbers = catalyst.output_numbers(child)
        more = [
            attribute
            for attribute in self._carried
            if catalyst.identity_number(attribute) in numbers
            and Tree.of(attribute).identity not in passed
        ]
        return catalyst.projected([*(item.handle for item in items), *more], child)

    def _is_broadcast(self, plan: Plan) -> bool:
        return self._input_of(plan) in self._broadcast

    def _input_of(self, plan: Plan) -> int | None:
        """Return the only input below a node; None where there are several."""
        while (number := self._inputs.get(id(plan))) is None:
            link = self._links.get(id(plan))
            if link is None or len(catalyst.children(plan)) > 1:
                return None
            (plan,) = catalyst.children(plan)
        return number
