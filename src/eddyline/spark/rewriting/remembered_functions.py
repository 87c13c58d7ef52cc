"""Gives functions a memory that run in no eddy, where they are.

A function that the value of is wanted only, as in a select list or as an argument of an
aggregate, goes back into a projection: there Spark's own rules see to it that it is not called for
rows or columns that nobody asks for in the end. One that a filter is about stays in a node of its
own: filters over two kinds of functions are how users have the first keep rows from the second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from eddyline.engine.filter.filter_eddy import ALL_ROWS
from eddyline.spark.blocks.filter_block import FilterBlock, FunctionKind, SessionSettings
from eddyline.spark.claiming.remembering import may_remember
from eddyline.spark.claiming.terms import Terms
from eddyline.spark.decline import DeclinedError, DeclineReason, LeftToSpark
from eddyline.spark.host import catalyst
from eddyline.spark.host.catalyst import CatalystExpression, Plan
from eddyline.spark.plan.chains import (
    FUSED_NAME,
    EvaluationLink,
    ExpressionId,
    FilterLink,
    Link,
    ProjectLink,
    Tree,
    fused_name,
    read_link,
)
from eddyline.spark.plan.concurrent_marks import mark_in
from eddyline.spark.plan.definitions import Definitions, FunctionResult
from eddyline.spark.rewriting.after_limits import is_limit
from eddyline.spark.rewriting.computed_below import carrying, links_from, value_below
from eddyline.spark.rewriting.filter_rewrite import identified
from eddyline.spark.rewriting.replaced import replaced

Remember: TypeAlias = Callable[[FilterBlock], bytes]
"""Makes the function, pickled, of a block that computes one value."""

_CALLED_ONCE: Final = frozenset(
    {
        FunctionKind.PICKLED,
        FunctionKind.ARROW_BATCHED,
        FunctionKind.PANDAS,
        FunctionKind.ARROW,
    }
)
"""Kinds whose calls stand for themselves; an iterator has to be told when there is no more."""

_NONE: Final[frozenset[ExpressionId]] = frozenset()

_UNUSED: Final[Mapping[ExpressionId, int]] = Counter()


@dataclass(frozen=True, slots=True)
class WithMemories:
    """A plan in which functions have memories; the one that was given if none has.

    ``left`` are those that would have one if they did not look non-deterministic.
    """

    plan: Plan
    blocks: tuple[FilterBlock, ...]
    left: tuple[LeftToSpark, ...]


def with_memories(plan: Plan, settings: SessionSettings, remember: Remember) -> WithMemories:
    """Give all functions of a plan a memory that can have one and are in no block."""
    if not catalyst.evaluates_others(plan, FUSED_NAME):  # one question instead of a walk
        return WithMemories(plan, (), ())
    walk = _Walk(settings, remember)
    return WithMemories(walk.rewrite(plan, _NONE), tuple(walk.blocks), tuple(walk.left))


@dataclass
class _Walk:
    settings: SessionSettings
    remember: Remember
    blocks: dict[FilterBlock, None] = field(default_factory=dict)
    left: dict[LeftToSpark, None] = field(default_factory=dict)
    passed_on: set[ExpressionId] = field(default_factory=set)

    def rewrite(
        self, plan: Plan, asked: frozenset[ExpressionId], used: Mapping[ExpressionId, int] = _UNUSED
    ) -> Plan:
        """Return a plan with memories; ``asked`` are attributes that filters above it are about.

        So are those that a function above is called with, where there is another use for them:
        in a projection Spark would call what makes them in each of these places. ``used`` says how
        often attributes are, as far as the chain goes.
        """
        if not catalyst.has_python_function(plan):
            return plan
        link, deterministic = read_link(plan)
        children = catalyst.children(plan)
        used = _used_below(link, used)
        if isinstance(link, EvaluationLink) and deterministic:
            known = self._known(link, children[0])
            self.passed_on |= {value.identity for value in known.values()}
            filtered = {
                value.identity
                for index, value in known.items()
                if link.results[index].identity in asked
            }
            given = (each for function in link.functions for each in function.attributes())
            filtered |= {each for each in given if used.get(each, 0) > 1}
            below = self.rewrite(children[0], asked | _of_functions(link, asked) | filtered, used)
            done = self._with_memories(link, known, below, asked)
            return replaced(plan, children, [below], self._alone) if done is None else done
        if isinstance(link, FilterLink):
            asked |= {each for term in link.conjuncts for each in term.attributes()}
        elif isinstance(link, ProjectLink):
            asked |= {
                each
                for item in link.items
                if item.name == "Alias" and item.identity in asked
                for each in item.attributes()
            }
        else:
            asked = _filtered_by(plan)
        new = [self.rewrite(child, asked, used) for child in children]
        return replaced(plan, children, new, self._alone)

    def _alone(self, plan: Plan) -> Plan:
        """Return a plan with memories that no filter stands above."""
        return self.rewrite(plan, _NONE)

    @staticmethod
    def _known(link: EvaluationLink, child: Plan) -> dict[int, Tree]:
        """Return the functions of a node whose values are known below it, with what holds these."""
        links = tuple(links_from(child))  # read once, however many functions the node has
        values = ((index, value_below(link.functions[index], links)) for index in link.indexes)
        return {index: value for index, value in values if value is not None}

    def _with_memories(
        self,
        link: EvaluationLink,
        known_below: Mapping[int, Tree],
        below: Plan,
        asked: frozenset[ExpressionId],
    ) -> Plan | None:
        """Return what evaluates the functions of a node, some with memories; None if none has.

        ``below`` is what they are evaluated over, with memories.
        """
        # Spark would push a projection below a limit, where it is called for all rows again.
        over_limit = is_limit(below)
        remembering = {
            index: found
            for index in link.indexes
            if (found := self._remembering(link, index, stays=over_limit)) is not None
        }
        if not remembering:
            return None
        plan, calls, known = below, dict[int, CatalystExpression](), list[int]()
        for index, (block, call) in remembering.items():
            value = known_below.get(index)
            carried = None if value is None else carrying(value, plan)
            if value is None or carried is None:
                self.blocks[block] = None
                calls[index] = call
            else:
                plan, calls[index] = carried, value.handle
                known.append(index)
        if rest := [index for index in link.indexes if index not in calls]:
            plan = catalyst.evaluation_of(link.plan, rest, plan)
        filtered = [
            index
            for index in calls
            if index not in known and not over_limit and link.results[index].identity in asked
        ]
        if filtered:
            results = [link.results[index].handle for index in filtered]
            functions = [calls[index] for index in filtered]
            plan = catalyst.arrow_evaluations(functions, results, FunctionKind.ARROW, plan)
        values = [
            catalyst.attribute_like(link.results[index].handle, call)
            for index, call in calls.items()
            if index not in filtered
        ]
        if values:
            plan = catalyst.output_and_more(plan, plan, values)
        in_order = [*rest, *filtered, *(index for index in calls if index not in filtered)]
        if not known and in_order == sorted(in_order):
            return plan
        return catalyst.projected_like(link.plan, plan)

    def _remembering(
        self, link: EvaluationLink, index: int, *, stays: bool
    ) -> tuple[FilterBlock, CatalystExpression] | None:
        """Return a function with a memory, and its call; None where it cannot have one."""
        function = link.functions[index]
        kind = int(str(function.node.fields["evalType"]))
        if kind not in _CALLED_ONCE or not function.children or mark_in(function) is not None:
            return None
        definitions = Definitions({})
        terms = Terms(definitions, self.settings)
        try:
            if not may_remember(terms.commands(function)):
                return None
            value = terms.evaluable(terms.call(FunctionResult(function, guarded=False)))
        except DeclinedError as declined:
            if declined.reason is DeclineReason.CALLED_FOR_EVERY_ROW:
                self.left[declined.of(definitions.text(function)).left_to_spark()] = None
            return None
        except RecursionError:
            return None
        contents = terms.contents
        if not contents.arguments or any(map(catalyst.holds_subquery, contents.arguments)):
            return None
        names = tuple(map(catalyst.pretty, contents.arguments))
        spared = stays or link.results[index].identity in self.passed_on
        block = identified(
            FilterBlock(
                "",
                ALL_ROWS,
                (),
                contents.functions,
                (value,),
                self.settings,
                names,
                spared=spared,
            )
        )
        call = catalyst.python_call(
            name=fused_name([contents.functions[0].name]),
            command=self.remember(block),
            like=contents.environments,
            return_type=contents.functions[0].return_type,
            arguments=contents.arguments,
            kind=FunctionKind.ARROW,
            deterministic=not stays,
        )
        return block, call


def _filtered_by(plan: Plan) -> frozenset[ExpressionId]:
    """Return the attributes that Spark derives filters from, for what is below a node.

    A key of a join is not NULL, and an array that is exploded is not empty. Pushed through a
    projection, such a filter would call the function in the place of its result, and the
    projection would call it again.
    """
    name = catalyst.class_name(plan).rpartition(".")[2]
    if name == "Join":
        told = catalyst.join_condition(plan)
    else:
        told = catalyst.generator(plan) if name == "Generate" else None
    return _NONE if told is None else frozenset(Tree.of(told).attributes())


def _used_below(link: Link | None, used: Mapping[ExpressionId, int]) -> Mapping[ExpressionId, int]:
    """Return how often attributes are used by a link and above it.

    Nobody knows how often what stands above a chain uses one: once, if it may be at all.
    """
    found: Counter[ExpressionId] = Counter()
    if isinstance(link, ProjectLink):
        for item in link.items:
            times = max(used.get(item.identity, 0), 1)
            for each in item.attributes():
                found[each] += times
        return found
    if isinstance(link, FilterLink):
        found.update(each for conjunct in link.conjuncts for each in conjunct.attributes())
    elif isinstance(link, EvaluationLink):
        found.update(each for function in link.functions for each in function.attributes())
    else:
        return _UNUSED
    for each in found if used is _UNUSED else used:
        found[each] += used.get(each, 1)
    return found


def _of_functions(link: EvaluationLink, asked: frozenset[ExpressionId]) -> frozenset[ExpressionId]:
    """Return what those functions of a node are called for that filters above it are about."""
    return frozenset(
        each
        for index in link.indexes
        if link.results[index].identity in asked
        for each in link.functions[index].attributes()
    )
