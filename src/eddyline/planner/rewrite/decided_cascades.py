"""Puts what decides a cascade in its place: the verdict of its proxy, and its oracle for the rest.

``cascade(x)`` becomes ``coalesce(verdict, oracle(x))``, wherever it stands, so that the oracle is
called for rows alone of which the proxy says nothing. Where it is a conjunct of a filter,
``coalesce(verdict, TRUE)`` takes its place, and the oracle moves above all filters that stand next
to it: a row that they drop is not asked about. So proxy and oracle are two access methods of one
predicate (Raman, Deshpande and Hellerstein, 2003).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from eddyline import catalyst
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.planner.read.cascade_marks import cascade_in
from eddyline.planner.read.chains import (
    EvaluationLink,
    ExpressionId,
    FilterLink,
    ProjectLink,
    Tree,
    read_link,
)
from eddyline.planner.read.concurrent_marks import mark_in
from eddyline.planner.rewrite.replaced import replaced
from eddyline.tasks.not_adapted import CascadeMark


@dataclass(frozen=True, slots=True)
class CascadeCalls:
    """The UDFs that decide a cascade; ``score`` is that of a proxy whose values are a column.

    Then the verdict is called with the score before the arguments.
    """

    verdict: Any
    oracle: Any
    score: Any = None


Decide: TypeAlias = Callable[[CascadeMark, Tree, Plan], CascadeCalls]
"""Returns what decides a cascade, a function, for the rows of a plan: those that no other predicate
next to it drops."""


def with_cascades_decided(plan: Plan, decide: Decide) -> Plan:
    """Return a plan that calls proxies and oracles in place of cascades; the same if none."""
    return _Walk(decide).whole(plan)


@dataclass(frozen=True, slots=True)
class _Pending:
    """A cascade whose verdict is a column already, and whose oracle is still to be called.

    ``value`` is what the cascade says, ``answer`` the column that ``oracle`` will give for it, of
    this evaluation type.
    """

    result: Tree
    verdict: CatalystExpression
    oracle: CatalystExpression
    kind: int
    answer: CatalystExpression

    @property
    def value(self) -> CatalystExpression:
        """The value of the cascade, over the verdict and the answer."""
        return catalyst.coalesced([self.verdict, self.answer])


@dataclass(frozen=True, slots=True)
class _Decided:
    """A plan without cascades, and those of which the oracle is to be called above it, by result.

    ``late`` are the conjuncts that wait for oracles, ``asked`` the cascades that these are about.
    It is ``loose`` where it has other columns than it had, or in another order.
    """

    plan: Plan
    pending: dict[ExpressionId, _Pending] = field(default_factory=dict)
    late: tuple[CatalystExpression, ...] = ()
    asked: frozenset[ExpressionId] = frozenset()
    loose: bool = False

    def called(self, needed: _Needed) -> _Decided:
        """Return a plan in which no oracle is still to be called, nor any conjunct waits."""
        if not self.pending:
            return self
        plan = _called([self.pending[identity] for identity in self.asked], self.plan)
        if self.late:
            plan = catalyst.filtered(catalyst.conjunction(self.late), plan)
        others = [one for name, one in self.pending.items() if name not in self.asked]
        plan = _called(others, plan)
        values = [
            catalyst.attribute_like(cascade.result.handle, cascade.value)
            for identity, cascade in self.pending.items()
            if needed is None or identity in needed
        ]
        if values:
            plan = catalyst.output_and_more(plan, plan, values)
        return _Decided(plan, loose=True)


_Needed: TypeAlias = frozenset[ExpressionId] | None
"""The attributes that are asked for above a node; None for all of them."""

_Above: TypeAlias = tuple[FilterLink | EvaluationLink, ...]


@dataclass(frozen=True, slots=True)
class _Walk:
    decide: Decide

    def whole(self, plan: Plan) -> Plan:
        """Return a plan with the very columns that it had."""
        decided = self.rewrite(plan, None, ()).called(None)
        return catalyst.projected_like(plan, decided.plan) if decided.loose else decided.plan

    def rewrite(self, plan: Plan, needed: _Needed, above: _Above) -> _Decided:
        """Return a plan whose columns may be more than they were.

        ``above`` are the filters and functions right above it, the nearest first.
        """
        if not catalyst.has_python_function(plan):
            return _Decided(plan)
        link, deterministic = read_link(plan)
        children = catalyst.children(plan)
        if link is None:
            new = [self.whole(child) for child in children]
            return _Decided(replaced(plan, children, new, self.whole))
        asked = _asked_below(link, needed)
        if isinstance(link, ProjectLink):
            below = self.rewrite(children[0], asked, ()).called(asked)
            return _Decided(replaced(plan, children, [below.plan], self.whole))
        if isinstance(link, FilterLink):
            below = self.rewrite(children[0], asked, (link, *above) if deterministic else ())
            if not deterministic:
                below = below.called(asked)
            return self._filtered(link, below)
        below = self.rewrite(children[0], asked, (link, *above) if deterministic else ())
        # What no filter is about is for the rows that the cascade has kept.
        filters = deterministic and _filters(link, above)
        if not _used(link).isdisjoint(below.pending) or (below.late and not filters):
            below = below.called(asked)
        marks = {index: cascade_in(link.functions[index]) for index in link.indexes}
        cascades = {index: mark for index, mark in marks.items() if mark is not None}
        if cascades:
            return self._evaluated(link, cascades, below, above)
        return replace(below, plan=replaced(plan, children, [below.plan], self.whole))

    def _evaluated(
        self,
        link: EvaluationLink,
        cascades: dict[int, CascadeMark],
        below: _Decided,
        above: _Above,
    ) -> _Decided:
        """Return the verdicts about the cascades of a node, over what evaluates its others."""
        others = [index for index in link.indexes if index not in cascades]
        plan = below.plan
        if others:
            plan = catalyst.evaluation_of(link.plan, others, plan)
        results = {link.results[index].identity for index in cascades}
        here = replace(link, indexes=tuple(others))
        kept = _kept_by_others(below.plan, here, above, results | below.pending.keys())
        pending = dict(below.pending)
        for index, mark in cascades.items():
            function, result = link.functions[index], link.results[index]
            calls = self.decide(mark, function, kept)
            plan, verdict = _judged(calls, function, plan)
            oracle = catalyst.udf_call(calls.oracle, [child.handle for child in function.children])
            answer = catalyst.new_attribute("answer", oracle)
            kind = calls.oracle.evalType
            pending[result.identity] = _Pending(result, verdict, oracle, kind, answer)
        return replace(below, plan=plan, pending=pending, loose=True)

    def _filtered(self, link: FilterLink, below: _Decided) -> _Decided:
        """Return a filter without what has to wait for oracles, but for their verdicts.

        An eddy calls functions after the filters that stand below them.
        """
        asked = {
            identity
            for conjunct in link.conjuncts
            for identity in conjunct.attributes()
            if identity in below.pending
        }
        if not asked:
            changed = replaced(link.plan, catalyst.children(link.plan), [below.plan], self.whole)
            return replace(below, plan=changed)
        early: list[CatalystExpression] = []
        late = list(below.late)
        means = [(one.result.handle, one.value) for one in map(below.pending.__getitem__, asked)]
        for conjunct in link.conjuncts:
            if asked.isdisjoint(conjunct.attributes()):
                early.append(conjunct.handle)
            elif _is_bare(conjunct):
                cascade = below.pending[conjunct.identity]
                early.insert(0, catalyst.coalesced([cascade.verdict, catalyst.literal_true()]))
                late.append(cascade.value)
            else:
                late.append(catalyst.in_terms_of(conjunct.handle, means))
        plan = catalyst.filtered(catalyst.conjunction(early), below.plan) if early else below.plan
        return replace(below, plan=plan, late=tuple(late), asked=below.asked | asked, loose=True)


def _filters(link: EvaluationLink, above: _Above) -> bool:
    """Whether all that a node evaluates is for filters right above it."""
    filters = (other for other in above if isinstance(other, FilterLink))
    about = {name for other in filters for one in other.conjuncts for name in one.attributes()}
    return about.issuperset(result.identity for result in link.results)


def _used(link: EvaluationLink) -> set[ExpressionId]:
    """Return the attributes that the functions of a node are called with."""
    return {name for function in link.functions for name in function.attributes()}


def _kept_by_others(
    plan: Plan, here: EvaluationLink, above: _Above, unknown: set[ExpressionId]
) -> Plan:
    """Return the rows of a plan that the filters above it keep, as far as no cascade decides.

    ``here`` are the functions that stand beside a cascade, ``above`` what is above these, and
    ``unknown`` the results of cascades. Conjuncts over concurrent functions are left out, too:
    their calls may cost as much as the oracle's.
    """
    for position, link in enumerate((here, *above)):
        if isinstance(link, FilterLink):
            known = [one for one in link.conjuncts if unknown.isdisjoint(one.attributes())]
            if known:
                plan = catalyst.filtered(catalyst.conjunction([one.handle for one in known]), plan)
            continue
        if position and not _filters(link, above[position:]):
            break  # what follows is for rows that the cascade has kept
        known_calls = [
            index
            for index in link.indexes
            if not _stands_in(link.functions[index])
            and unknown.isdisjoint(link.functions[index].attributes())
        ]
        results = {result.identity for result in link.results}
        unknown |= results - {link.results[index].identity for index in known_calls}
        if known_calls:
            plan = catalyst.evaluation_of(link.plan, known_calls, plan)
    return plan


def _stands_in(function: Tree) -> bool:
    """Whether a function is a cascade or a concurrent one."""
    return cascade_in(function) is not None or mark_in(function) is not None


def argument_values(function: Tree) -> list[tuple[str | None, Tree]]:
    """Return the arguments of a function, each with the name that it is passed under."""
    return [
        (str(child.node.fields["key"]), child.children[0])
        if child.name == "NamedArgumentExpression"
        else (None, child)
        for child in function.children
    ]


def _is_bare(tree: Tree) -> bool:
    return tree.name == "AttributeReference"


def _asked_below(link: FilterLink | ProjectLink | EvaluationLink, needed: _Needed) -> _Needed:
    """Return what is asked for below a link; a conjunct that is a column does not count."""
    if isinstance(link, ProjectLink):
        return frozenset(name for item in link.items for name in item.attributes())
    if needed is None:
        return None
    if isinstance(link, FilterLink):
        trees = tuple(conjunct for conjunct in link.conjuncts if not _is_bare(conjunct))
    else:
        trees = link.functions
    return needed | {name for tree in trees for name in tree.attributes()}


def _judged(calls: CascadeCalls, function: Tree, plan: Plan) -> tuple[Plan, CatalystExpression]:
    """Return a plan with the verdict about a cascade, and the column of that."""
    given = [child.handle for child in function.children]
    if calls.score is not None:
        score = catalyst.udf_call(calls.score, given)
        value = catalyst.new_attribute("score", score)
        plan = catalyst.row_evaluation(score, value, calls.score.evalType, plan)
        given = [value, *(argument.handle for _, argument in argument_values(function))]
    call = catalyst.udf_call(calls.verdict, given)
    verdict = catalyst.new_attribute("verdict", call)
    return catalyst.row_evaluation(call, verdict, calls.verdict.evalType, plan), verdict


def _called(cascades: Iterable[_Pending], plan: Plan) -> Plan:
    """Return a plan with the answers of oracles."""
    for cascade in cascades:
        plan = catalyst.row_evaluation(cascade.oracle, cascade.answer, cascade.kind, plan)
    return plan
