"""Gives a memory to functions that run in no eddy, where they are.

A function of which only the value is wanted, as in a select list or as an argument of an
aggregate, goes back into a projection: there Spark's own rules see to it that it is not called for
rows or columns that nobody asks for in the end. One that a filter is about stays in a node of its
own: filters over two kinds of functions are how users have the first keep rows from the second.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from eddyline import catalyst
from eddyline.blocks.decline import DeclinedError, DeclineReason, LeftToSpark
from eddyline.blocks.filter_block import (
    CALLED_ONCE,
    FUSED_NAME,
    FilterBlock,
    SessionSettings,
    UserFunction,
)
from eddyline.blocks.nests import part_of, with_shared_parts
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.planner.claim.term_translation import Terms
from eddyline.planner.read.chains import EvaluationLink, ExpressionId, ProjectLink, Tree, read_link
from eddyline.planner.read.concurrent_marks import mark_in
from eddyline.planner.read.definitions import Definitions, FunctionResult
from eddyline.planner.read.needed_results import NeededResults
from eddyline.planner.read.needs import (
    ALWAYS,
    NEVER,
    Need,
    NeedOf,
    conditions_of,
    without,
)
from eddyline.planner.rewrite.after_limits import keeps_few, over_kept
from eddyline.planner.rewrite.asked_attributes import (
    NONE,
    UNUSED,
    asked_below,
    used_below,
)
from eddyline.planner.rewrite.computed_below import carrying, paths_from, value_below
from eddyline.planner.rewrite.filter_rewrite import Fuse
from eddyline.planner.rewrite.own_block import OwnBlock, Remember, own_block
from eddyline.planner.rewrite.replaced import replaced
from eddyline.planner.rewrite.value_block import (
    ValueBlock,
    decided_by_others,
    stages_of,
    value_block,
)
from eddyline.quirks import arrow_columns


@dataclass(frozen=True, slots=True)
class WithMemories:
    """A plan in which functions have memories; the one that was given if none has.

    ``left`` are those that would have one if they did not look non-deterministic.
    """

    plan: Plan
    blocks: tuple[FilterBlock, ...]
    left: tuple[LeftToSpark, ...]


def with_memories(
    plan: Plan,
    settings: SessionSettings,
    fuse: Fuse,
    remember: Remember,
    needs: NeededResults,
    values: Collection[int] = (),
    spared: frozenset[ExpressionId] = NONE,
    asked: frozenset[ExpressionId] = NONE,
    above_joins: Collection[ExpressionId] = NONE,
    *,
    all_remember: bool,
) -> WithMemories:
    """Give a memory to all functions of a plan that can have one and are in no block.

    Where few rows need the result of a function, by ``needs``, it is called for these only; unless
    all remember, no other is touched. ``values`` are the numbers of the attributes with the results
    of blocks that only compute values; these, too, go into projections. ``spared`` are results that
    plain Spark computes for more rows, ``asked`` columns that filters are about here or where the
    same side of a join stands once more. ``above_joins`` are results that plain Spark computes
    below a join: these functions remember, whatever that costs.
    """
    # One question instead of a walk.
    others = catalyst.evaluates_others(plan, FUSED_NAME) and (all_remember or needs.any())
    if not others and not values:
        return WithMemories(plan, (), ())
    walk = _Walk(
        settings, fuse, remember, needs.of, values, spared, asked, above_joins, all_remember
    )
    return WithMemories(walk.rewrite(plan, NONE), tuple(walk.blocks), tuple(walk.left))


@dataclass
class _Walk:
    settings: SessionSettings
    fuse: Fuse
    remember: Remember
    needs: NeedOf
    values: Collection[int]
    spared: frozenset[ExpressionId]
    asked: frozenset[ExpressionId]
    above_joins: Collection[ExpressionId]
    all_remember: bool
    blocks: dict[FilterBlock, None] = field(default_factory=dict)
    left: dict[LeftToSpark, None] = field(default_factory=dict)
    passed_on: set[ExpressionId] = field(default_factory=set)
    shared: set[ExpressionId] = field(default_factory=set)  # what not only functions use

    def rewrite(
        self, plan: Plan, asked: frozenset[ExpressionId], used: Mapping[ExpressionId, int] = UNUSED
    ) -> Plan:
        """Return a plan with memories; ``asked`` are attributes that filters above it are about.

        ``used`` says how often attributes are, as far as the chain goes.
        """
        if not catalyst.has_python_function(plan):
            return plan
        link, deterministic = read_link(plan)
        children = catalyst.children(plan)
        used = used_below(link, used)
        if isinstance(link, EvaluationLink) and deterministic:
            known = self._known(link, children[0])
            self.passed_on |= {value.identity for value in known.values()}
            filtered = {
                value.identity
                for index, value in known.items()
                if link.results[index].identity in asked
            }
            given = (identity for function in link.functions for identity in function.attributes())
            self.shared |= {identity for identity in given if used.get(identity, 0) > 1}
            (told_below,) = asked_below(plan, link, asked)
            below = self.rewrite(children[0], told_below | filtered, used)
            done = self._evaluated(link, known, below, asked)
            return replaced(plan, children, [below], self._alone) if done is None else done
        if self.values and link is None and (struct := self._only_values(plan)) is not None:
            below = self.rewrite(children[0], NONE)
            over_limit = keeps_few(below)
            if Tree.of(struct).identity in asked and not over_limit:
                return replaced(plan, children, [below], self._alone)
            call = catalyst.evaluated_function(plan, 0)
            call = catalyst.staying(call) if over_limit else call
            return catalyst.output_and_more(below, below, [self._named(Tree.of(struct), call)])
        if isinstance(link, ProjectLink):
            for item in link.items:
                if item.identity in self.shared:
                    self.shared |= set(item.attributes())
        told = asked_below(plan, link, asked)
        if link is None:
            told = [columns | self.asked for columns in told]
        new = [
            self.rewrite(child, columns, used)
            for child, columns in zip(children, told, strict=True)
        ]
        return replaced(plan, children, new, self._alone)

    def _named(self, result: Tree, call: CatalystExpression) -> CatalystExpression:
        """Return a call under the name of its result, for a projection.

        Where a function above is called with it and there is another use for it, it is marked:
        Spark puts a bare call into each of these places, and makes it in each. And where it is of
        the type of a user's iterators, Spark would run both in one go, on Arrow's columns.
        """
        marked = result.identity in self.shared or arrow_columns.LIKE_USERS
        value = catalyst.known_nullable(call) if marked else call
        return catalyst.attribute_like(result.handle, value)

    def _only_values(self, plan: Plan) -> CatalystExpression | None:
        """Return the attribute of a block that only computes values; None for another node."""
        if not catalyst.class_name(plan).endswith(".ArrowEvalPython"):
            return None
        struct = catalyst.result_attribute(plan, 0)
        return struct if catalyst.identity_number(struct) in self.values else None

    def _alone(self, plan: Plan) -> Plan:
        """Return a plan with memories that no filter stands above."""
        return self.rewrite(plan, NONE)

    def _known(self, link: EvaluationLink, child: Plan) -> dict[int, Tree]:
        """Return the functions of a node whose values are known below it, with what holds these.

        What is called below for some rows only is not known for all.
        """
        paths = paths_from(child)  # read once, however many functions the node has
        values = ((index, value_below(link.functions[index], paths)) for index in link.indexes)
        return {
            index: value
            for index, value in values
            if value is not None and self.needs(value.identity) is ALWAYS
        }

    def _evaluated(
        self,
        link: EvaluationLink,
        known_below: Mapping[int, Tree],
        below: Plan,
        asked: frozenset[ExpressionId],
    ) -> Plan | None:
        """Return what evaluates the functions of a node; None if it is what it was.

        ``below`` is what they are evaluated over, with memories.
        """
        joint = self._joint(link, below)
        need_of = partial(self._need_of, link, below)
        stages = [link.indexes] if joint is not None else stages_of(link, need_of)
        if len(stages) == 1:
            return self._with_memories(link, known_below, below, asked, joint)
        plan = below
        for stage in stages:
            part = replace(link, indexes=stage)
            done = self._with_memories(part, known_below, plan, asked, None)
            plan = catalyst.evaluation_of(link.plan, stage, plan) if done is None else done
        return catalyst.projected_like(link.plan, plan)

    def _with_memories(
        self,
        link: EvaluationLink,
        known_below: Mapping[int, Tree],
        below: Plan,
        asked: frozenset[ExpressionId],
        joint: ValueBlock | None,
    ) -> Plan | None:
        """Return what evaluates those functions of a node that are the link's, likewise.

        ``joint`` is the block of those that decide on each other.
        """
        # Spark would push a projection below a limit, where it is called for all rows again.
        over_limit = keeps_few(below)
        together = () if joint is None else tuple(joint.fields)
        mates = self._mates(link, together)
        alone = {
            index: in_block
            for index in link.indexes
            if index not in together
            and (in_block := self._in_block(link, index, below, mates, stays=over_limit))
            is not None
        }
        if len(alone) > arrow_columns.ALONE_AT_MOST:
            alone = {}
        if not alone and joint is None:
            return None
        plan, calls, known = below, dict[int, CatalystExpression](), list[int]()
        if computed := [own.below for own in alone.values() if own.below is not None]:
            plan = catalyst.output_and_more(plan, plan, computed)
        for index, own in alone.items():
            value = known_below.get(index)
            carried = None if value is None else carrying(value, plan)
            if value is None or carried is None:
                self.blocks[own.block] = None
                calls[index] = own.call
            else:
                plan, calls[index] = carried, value.handle
                known.append(index)
        if rest := [i for i in link.indexes if i not in calls and i not in together]:
            plan = catalyst.evaluation_of(link.plan, rest, plan)
        # In a projection Spark would put back what was computed for it below.
        filtered = [
            index
            for index, own in alone.items()
            if index not in known
            and (
                own.below is not None or (not over_limit and link.results[index].identity in asked)
            )
        ]
        if filtered:
            results = [link.results[index].handle for index in filtered]
            functions = [calls[index] for index in filtered]
            plan = catalyst.arrow_evaluations(functions, results, arrow_columns.BY_BATCH, plan)
        if joint is not None:
            self.blocks[joint.block] = None
            in_node = any(link.results[index].identity in asked for index in together)
            plan, fields = joint.over(plan, in_node=in_node, stays=over_limit)
            calls |= fields
        values = [
            self._named(link.results[index], call)
            for index, call in calls.items()
            if index not in filtered
        ]
        if values:
            plan = catalyst.output_and_more(plan, plan, values)
        in_order = [*rest, *filtered, *(index for index in calls if index not in filtered)]
        in_place = not known and joint is None and not computed and in_order == sorted(in_order)
        some = len(link.indexes) < len(link.results)  # others are still to come
        return plan if in_place or some else catalyst.projected_like(link.plan, plan)

    def _need_of(self, link: EvaluationLink, below: Plan, index: int) -> Need:
        """Return what is needed of a result, by what is there when its function is called.

        What a block has decided is not there any more: its rows have passed.
        """
        need = self.needs(link.results[index].identity)
        if need is ALWAYS or need is NEVER:
            return need
        there = {result.identity[0] for result in map(link.results.__getitem__, link.indexes)}
        there.update(catalyst.output_numbers(below))
        return without(need, lambda c: there.issuperset(number for number, _ in c.attributes))

    def _joint(self, link: EvaluationLink, below: Plan) -> ValueBlock | None:
        """Return the block of functions of a node that decide on each other, if one can be."""

        def need_of(index: int) -> Need:  # what holds a subquery is computed below, in Spark
            own = self._need_of(link, below, index)
            return without(own, lambda c: not catalyst.holds_subquery(c.handle))

        together = [
            index
            for index in decided_by_others(link, need_of)
            if link.functions[index].evaluation_type in CALLED_ONCE
        ]
        if not together:
            return None
        told = self.passed_on | self.spared
        spared = any(link.results[n].identity in told for n in together) or over_kept(below)
        repeats = any(link.results[n].identity in self.above_joins for n in together)
        try:
            return value_block(
                link,
                sorted(together),
                need_of,
                self.settings,
                self.fuse,
                spared=spared,
                repeats=repeats,
            )
        except (DeclinedError, RecursionError):
            return None

    def _mates(
        self, link: EvaluationLink, together: Collection[int]
    ) -> Mapping[UserFunction, tuple[int, ...]]:
        """Return what the functions of a node share, where one is called with what another returns.

        They are told apart by what they are made of, not by names, which depend on who else is
        there. In projections, each in a block of its own, they run in one process. Those
        ``together`` in another block do not.
        """
        apart = [link.functions[index] for index in link.indexes if index not in together]
        if not any(child.name == "PythonUDF" for tree in apart for child in tree.children):
            return {}
        terms = Terms(Definitions({}), self.settings)
        for function in apart:
            mark = terms.contents.mark()
            try:
                terms.call(FunctionResult(function, guarded=False))
            except (DeclinedError, RecursionError):
                terms.back_to(mark)
        marked = with_shared_parts(terms.contents.functions)
        return {part_of(each, len(each.commands)): each.shared for each in marked}

    def _in_block(
        self,
        link: EvaluationLink,
        index: int,
        below: Plan,
        mates: Mapping[UserFunction, tuple[int, ...]],
        *,
        stays: bool,
    ) -> OwnBlock | None:
        """Return a function of a node in a block of its own; None where it stays.

        ``mates`` are those with which it may share what they call.
        """
        function, result = link.functions[index], link.results[index]
        if (
            function.evaluation_type not in CALLED_ONCE
            or not function.children
            or mark_in(function) is not None
        ):
            return None
        made = {link.results[number].identity for number in link.indexes}
        own = self._need_of(link, below, index)
        need = without(own, lambda c: c.attributes.isdisjoint(made))
        # Spark, which calls all functions of a node for the same rows, filters below this one.
        beside = {result.identity for result in link.results}
        fewer = any(not c.attributes.isdisjoint(beside) for c in conditions_of(own))
        told = result.identity in self.passed_on | self.spared
        try:
            return own_block(
                function,
                need,
                self.settings,
                self.remember,
                mates,
                all_remember=self.all_remember,
                spared=fewer or told or over_kept(below),
                repeats=result.identity in self.above_joins,
                stays=stays,
            )
        except DeclinedError as declined:
            if declined.reason is DeclineReason.CALLED_FOR_EVERY_ROW:
                text = Definitions({}).text(function)
                self.left[declined.of(text).left_to_spark()] = None
        except RecursionError:
            pass
        return None
