"""The walk over a plan that claims its blocks and puts them back, subqueries included.

The plan is walked from the top. A region of inner joins that is claimed becomes a join
block over its inputs (see :mod:`eddyline.planner.rewrite.join_rewrite`). Elsewhere each
maximal chain (see :mod:`eddyline.planner.read.chains`) is judged and rewritten over its child,
which was rewritten before it; a chain with a barrier in it can give several blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Final, TypeAlias

from eddyline import catalyst
from eddyline.blocks.decline import DeclinedError, DeclineReason, LeftToSpark
from eddyline.blocks.filter_block import FilterBlock, SessionSettings
from eddyline.blocks.lookup_table import LookupTable
from eddyline.catalyst import Plan
from eddyline.checked_values import Joins
from eddyline.errors import UnboundLookupError
from eddyline.planner.claim.bindings import called_too_early
from eddyline.planner.claim.filter_claim import Verdict, judge, left_to_chance, with_filters_below
from eddyline.planner.claim.join_choice import pays
from eddyline.planner.claim.join_claim import JoinClaim
from eddyline.planner.claim.join_judgement import claim_matches, claim_region
from eddyline.planner.claim.native_choice import Choice, Joiner, choose_joiner
from eddyline.planner.read.chains import Chain, EvaluationLink, ExpressionId, read_chain
from eddyline.planner.read.concurrent_marks import marks_of
from eddyline.planner.read.lookup_leaves import lookup_leaves
from eddyline.planner.read.needs import NeedOf
from eddyline.planner.read.regions import (
    Path,
    Region,
    read_one_sided,
    read_region,
)
from eddyline.planner.read.twins import Twins
from eddyline.planner.rewrite.filter_rewrite import Fuse, rebuild
from eddyline.planner.rewrite.join_rewrite import JoinBlockContext, rebuilt
from eddyline.planner.rewrite.kept_rows import rebuilt_keeping
from eddyline.planner.rewrite.native_joins import joined_natively
from eddyline.planner.rewrite.reducing import reduced_inputs
from eddyline.planner.rewrite.replaced import replaced

TableOf: TypeAlias = Callable[[Plan], LookupTable | None]
"""Tells which lookup table a node is; None where it is none."""


@dataclass(frozen=True, slots=True)
class JoinRules:
    """What is to be done with regions of inner joins, and what their blocks are made with.

    A plan is ``final`` where it runs as it is: nothing that it computes goes unused.
    """

    context: JoinBlockContext
    joins: Joins
    table_of: TableOf | None = None  # None where there are no lookup tables
    final: bool = False


_TOO_DEEP: Final = LeftToSpark(
    "a predicate", DeclineReason.UNTRANSLATABLE, "expressions are nested too deeply"
)


@dataclass
class Judged:
    """What was read at a node and judged: a chain can give several claims, a region one."""

    read: Chain | Region
    claims: list[Verdict | JoinClaim] = field(default_factory=list)


@dataclass
class BlockWalk:
    """A walk over one plan, and what it has found: the blocks, and what is left to Spark."""

    twins: Twins
    settings: SessionSettings
    fuse: Fuse
    rules: JoinRules | None
    needs: NeedOf
    looks_up: bool = False  # whether there is a lookup table anywhere
    shares: bool = False  # whether functions remember, and share what they are made of
    above_joins: set[ExpressionId] = field(default_factory=set)  # results of functions put there
    blocks: list[FilterBlock] = field(default_factory=list)
    left: list[LeftToSpark] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)
    values: set[int] = field(default_factory=set)  # attributes of blocks that only compute these
    spared: frozenset[ExpressionId] = frozenset()  # results that Spark computes for more rows
    limit: int = 0  # rows that are wanted of the node that is rewritten next

    def rewrite(self, plan: Plan, spared: frozenset[Path] = frozenset()) -> Plan:
        """Return the plan with its blocks rewritten; the same handle if there are none.

        ``spared`` are the nodes, by their paths from here, of a region of joins that stays
        Spark's as a whole: part of it would only lack the joins that the rest spares it.
        """
        limit, self.limit = self.limit, 0
        python = catalyst.has_python_function(plan)
        always = self.rules is not None and self.rules.joins is Joins.ALWAYS
        if not python and not (always and catalyst.has_join(plan)):
            return plan
        if () not in spared:
            if self.looks_up and (kept := self._kept(plan, limit)) is not None:
                return kept
            joined, spared = self._joined(plan, limit)
            if joined is not None:
                return joined
        if not python:
            return self._over_rewritten(plan, spared, limit)
        chain = read_chain(plan)
        if not chain.run:
            if chain.breaker is not None:
                lower = read_chain(catalyst.children(plan)[0])
                self.left.extend(left_to_chance(chain.breaker, lower))
            return self._over_rewritten(plan, spared, limit)
        self.limit = _wanted_below(chain, limit)
        try:
            below = self.rewrite(chain.below, _under(spared, (0,) * len(chain.run)))
        except UnboundLookupError as error:
            called = self._called_too_early(chain)
            if called is None:
                raise
            raise called from error
        rebuilt = self._over(chain, below)
        return self._judged(chain if rebuilt is plan else read_chain(rebuilt))

    def _called_too_early(self, chain: Chain) -> UnboundLookupError | None:
        """Return the error for a chain whose functions keep what binds lookups above them.

        Spark calls functions below joins where it can, and a condition on one side of an equality
        on its other side as well. Native ones and plain functions are taken into the region of the
        joins; concurrent functions are not.
        """
        links = (link for link in chain.links if isinstance(link, EvaluationLink))
        names = dict.fromkeys(mark.name for link in links for mark in marks_of(link))
        if not names or self.rules is None:
            return None
        region = read_region(chain.below, looks_up=True)
        tables = self._tables_in(region, self.rules)
        if len(tables) < len(region.inputs):  # what could give values is below as well
            return None
        return called_too_early([table.name for table in tables.values()], list(names))

    def _joined(self, plan: Plan, limit: int) -> tuple[Plan | None, frozenset[Path]]:
        """Rewrite the region of joins at a node; ``limit`` rows of it are wanted of each task.

        None where nothing is claimed, with the nodes of a region that could be but does not pay.
        """
        rules = self.rules
        if rules is None:
            return None, frozenset()
        may = rules.joins is not Joins.NEVER and catalyst.has_join(plan)
        if not may and not self.looks_up:
            return None, frozenset()
        claimed = self._claimed(plan, rules)
        if claimed is None:
            return None, frozenset()
        region, claim = claimed
        judged = Judged(region)
        self.judged.append(judged)
        spark = rules.context.spark
        chosen = Choice(Joiner.EDDY, "") if claim.looked_up else self._joiner(region, claim, rules)
        if chosen.joiner is Joiner.SPARK:
            return None, frozenset(region.paths)
        inputs = [
            source if number in claim.looked_up else self.rewrite(source)
            for number, source in enumerate(region.inputs)
        ]
        if chosen.natively is None:
            may_repeat = not rules.final and self.shares
            if rules.joins is Joins.AUTO and may_repeat and claim.only_values:
                tables = claim.looked_up
                claim = claim_region(region, self.settings, tables, self.needs, values=False)
            reduced, notes = reduced_inputs(spark, region, claim, inputs)
            why = (chosen.why,) if chosen.why else ()
            claim = replace(claim, notes=(*why, *notes), reduced=bool(notes), limit=limit)
            judged.claims.append(claim)
            self.above_joins.update(result for values in claim.later for result in values.results)
            return rebuilt(rules.context, claim, reduced), frozenset()
        judged.claims.append(claim)
        native = joined_natively(
            spark, chosen.natively, region, claim, inputs, self.settings, self.fuse
        )
        self.blocks.append(native.block)
        return native.plan, frozenset()

    def _joiner(self, region: Region, claim: JoinClaim, rules: JoinRules) -> Choice:
        """Choose who joins a region without lookups; say so where nothing runs in an eddy."""
        if not self.twins.joins.isdisjoint(link.plan for link in region.links):
            alike = DeclineReason.SIDES_ALIKE
            self.left.extend(LeftToSpark(text, alike) for text in claim.asking)
            return Choice(Joiner.SPARK, alike)
        if rules.joins is not Joins.AUTO:
            return Choice(Joiner.EDDY, "")
        spark = rules.context.spark
        chosen = choose_joiner(spark, region, claim)
        if chosen.joiner is Joiner.EDDY and not pays(spark, claim, region.inputs):
            chosen = Choice(Joiner.SPARK, DeclineReason.MUCH_TO_MOVE)
            self.left.extend(LeftToSpark(text, DeclineReason.MUCH_TO_MOVE) for text in claim.asking)
        return chosen

    def _kept(self, plan: Plan, limit: int) -> Plan | None:
        """Rewrite a join that keeps the rows of one side, if these are to bind lookups.

        None for all others, also where the lookups on the other side have all they need there.
        """
        join = read_one_sided(plan, looks_up=True)
        if join is None or self.rules is None:
            return None
        region = join.region
        tables = self._tables_in(region, self.rules)
        if not tables or self._all_bound(join.matched):
            return None
        try:
            claim = claim_matches(join, self.settings, tables)
        except (DeclinedError, RecursionError) as error:
            why = error.left_to_spark() if isinstance(error, DeclinedError) else _TOO_DEEP
            names = " and ".join(table.name for table in tables.values())
            raise UnboundLookupError(
                f"{names} cannot be looked up in a {join.kept.value} join with this condition: "
                f"{why}"
            ) from None
        self.judged.append(Judged(region, [claim]))
        inputs = [
            source if number in tables else self.rewrite(source)
            for number, source in enumerate(region.inputs)
        ]
        return rebuilt_keeping(
            self.rules.context, plan, join.kept, replace(claim, limit=limit), inputs
        )

    def _all_bound(self, plan: Plan) -> bool:
        """Tell whether all lookups of a plan have what they need there."""
        left, judged = list(self.left), list(self.judged)
        try:
            rewritten = self.rewrite(plan)
        except UnboundLookupError:
            return False
        finally:
            self.left[:], self.judged[:] = left, judged
        return next(lookup_leaves(rewritten), None) is None

    def _claimed(self, plan: Plan, rules: JoinRules) -> tuple[Region, JoinClaim] | None:
        """Claim as much of the region at a node as is understood."""
        boundaries: frozenset[Path] = frozenset()
        declined: list[LeftToSpark] = []
        while True:
            region = read_region(plan, boundaries, looks_up=self.looks_up)
            tables = self._tables_in(region, rules)
            if not tables and (not region.joins or rules.joins is Joins.NEVER):
                break
            try:
                # In `auto` these say who joins. Without memories they would be computed above for
                # each joined row.
                values = rules.final or rules.joins is Joins.AUTO or not self.shares
                claim = claim_region(region, self.settings, tables, self.needs, values=values)
            except DeclinedError as error:
                declined.extend(error.left)
                if error.path in boundaries:
                    return None
                boundaries |= {error.path}
            except RecursionError:
                self.left.append(_TOO_DEEP)
                return None
            else:
                native = rules.joins is Joins.AUTO and not claim.calls and not tables
                if native and not claim.results:
                    return None
                if not native:
                    self.left.extend(declined)
                return region, claim
        # Joins that nobody wanted in an eddy need no excuse.
        if rules.joins is Joins.ALWAYS or catalyst.has_python_function(plan):
            self.left.extend(declined)
        return None

    def _tables_in(self, region: Region, rules: JoinRules) -> dict[int, LookupTable]:
        if not self.looks_up or rules.table_of is None:
            return {}
        table_of = rules.table_of
        tables = ((number, table_of(source)) for number, source in enumerate(region.inputs))
        return {number: table for number, table in tables if table is not None}

    def _over_rewritten(self, plan: Plan, spared: frozenset[Path], limit: int) -> Plan:
        """Rewrite below a node that is in no chain."""
        children = catalyst.children(plan)
        wanted = catalyst.rows_wanted(plan, limit) if self.looks_up else 0
        new = []
        for n, child in enumerate(children):
            self.limit = wanted
            new.append(self.rewrite(child, _under(spared, (n,))))
        return replaced(plan, children, new, self.rewrite)

    def _over(self, chain: Chain, below: Plan) -> Plan:
        """Return a chain's nodes over a new child, with the subqueries in them rewritten."""
        child, new = chain.below, below
        for plan in reversed(chain.run):
            child, new = plan, replaced(plan, [child], [new], self.rewrite)
        return new

    def _judged(self, chain: Chain) -> Plan:
        """Rewrite a chain: its blocks from the bottom up, each ending at a barrier."""
        rest = with_filters_below(chain)
        judged = Judged(chain)
        if chain.links:
            self.judged.append(judged)
        while rest.links:
            try:
                verdict = judge(rest, self.settings, self.needs, shares=self.shares)
            except RecursionError:
                self.left.append(_TOO_DEEP)
                break
            self.left.extend(verdict.left)
            if verdict.claim is not None:
                rewritten = rebuild(rest, verdict.claim, self.settings, self.fuse)
                judged.claims.append(verdict)
                self.blocks += rewritten.blocks
                self.values.update(rewritten.values)
                self.spared |= rewritten.spared
                if verdict.barrier is None:
                    return rewritten.plan
                # The block now ends the chain, so only what is above it is left to judge.
                rest = chain = read_chain(rewritten.plan)
            elif verdict.barrier is None:
                break
            else:
                rest = rest.above(verdict.barrier + 1)
        return chain.top


def _wanted_below(chain: Chain, limit: int) -> int:
    """Return how many rows are wanted from below a chain, where ``limit`` are wanted of it."""
    return reduce(lambda n, node: catalyst.rows_wanted(node, n), chain.run if limit else (), limit)


def _under(paths: frozenset[Path], node: Path) -> frozenset[Path]:
    """Return the paths of those nodes that are at ``node`` or below it, from there."""
    depth = len(node)
    return frozenset(path[depth:] for path in paths if path[:depth] == node)
