"""What of a chain runs in an eddy, and why the rest does not.

The chain is read from the bottom up. Each conjunct of a filter is one of five:

* *native*, over columns of the base only: it goes below the block, where Spark
  runs it first (it mostly is there already);
* *claimed*, over results of Python functions, and wholly understood;
* *left*, over results of Python functions, for a :class:`DeclineReason`;
* *guarded*: native, but it may raise an error and stands above a filter that
  depends on Python, so it must not move;
* *unsure*: native, it may raise an error, and stands beside or below what is claimed.
  Spark would run it first, and fail for a row that a function rejects. So only rows for
  which it is TRUE or would raise go into the block, and Spark runs it above.

A left or guarded conjunct is a barrier: users rely on a filter to keep rows
from the functions above it, so no function that is evaluated above a barrier is
claimed together with what is below it. It can be part of a second block.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from eddyline.blocks.decline import DeclinedError, DeclineReason, LeftToSpark
from eddyline.blocks.filter_block import SessionSettings, UserFunction
from eddyline.blocks.nests import is_inside
from eddyline.catalyst import CatalystExpression, PickledFunction
from eddyline.engine.filter.filter_eddy import ALL_ROWS
from eddyline.expressions import (
    And,
    Call,
    Case,
    Expression,
    called_where,
    calls_in,
)
from eddyline.expressions.terms import Term, conjuncts_of, worth_routing
from eddyline.planner.claim.term_translation import Terms
from eddyline.planner.read.attempts import true_or_failed
from eddyline.planner.read.chains import (
    Chain,
    EvaluationLink,
    ExpressionId,
    FilterLink,
    ProjectLink,
    Tree,
)
from eddyline.planner.read.concurrent_marks import mark_in
from eddyline.planner.read.definitions import Definitions, FunctionResult
from eddyline.planner.read.needs import NeedOf, unknown, without
from eddyline.planner.read.throwing import may_throw


@dataclass(frozen=True)
class Claim:
    """A part of a chain that becomes a filter block.

    ``arguments`` are expressions over the base. ``taken`` are positions (link,
    conjunct) that the block or the filter ``below`` answers. ``calls`` says
    which attributes the block can provide, and as which call, ``needed`` for which rows, where
    it is not for all. ``environments`` are the functions with whose settings the block must run.
    ``waits`` and ``after`` are those of the block. ``above`` are conditions over the base that may
    raise, for the rows that the block keeps.
    """

    predicate: Expression
    texts: tuple[str, ...]
    functions: tuple[UserFunction, ...]
    environments: tuple[PickledFunction, ...]
    arguments: tuple[CatalystExpression, ...]
    below: tuple[CatalystExpression, ...]
    taken: frozenset[tuple[int, int]]
    calls: Mapping[ExpressionId, Call]
    waits: tuple[int, ...] = ()
    after: tuple[tuple[Call, int], ...] = ()
    above: tuple[CatalystExpression, ...] = ()
    needed: Mapping[ExpressionId, Expression] = field(default_factory=dict)

    def value(self, result: ExpressionId) -> Call | Case:
        """Return what the block computes for an attribute that it provides."""
        call, needed = self.calls[result], self.needed.get(result)
        return call if needed is None else called_where(needed, call)


@dataclass(frozen=True)
class Verdict:
    """What was decided about the chain up to its first barrier.

    ``barrier`` is the position of the link that stops the claim; what is above
    it can be looked at on its own. ``left`` tells what was declined up to there.
    """

    claim: Claim | None
    left: tuple[LeftToSpark, ...]
    barrier: int | None


def judge(
    chain: Chain, settings: SessionSettings, needs: NeedOf = unknown, *, shares: bool = False
) -> Verdict:
    """Decide about a chain, from its lowest link to its first barrier.

    ``needs`` says for which rows the results of functions are needed above these. ``shares`` is
    whether functions may share what they are made of.
    """
    return _Judgement(chain, settings, needs, shares=shares).verdict()


def with_filters_below(chain: Chain) -> Chain:
    """Return a chain with the filters right below it in which something may raise.

    Spark runs native conditions first, wherever they were written: what a function of the chain
    guards against stands there. A chain that filters nothing guards nothing.
    """
    if not any(isinstance(link, FilterLink) for link in chain.links):
        return chain
    for position, link in enumerate(chain.lower):
        if isinstance(link, FilterLink):
            unsure = filter(may_throw, link.conjuncts)
            if any(true_or_failed(conjunct) is not None for conjunct in unsure):
                return chain.from_lower(position)
    return chain


def left_to_chance(breaker: FilterLink, lower: Chain) -> tuple[LeftToSpark, ...]:
    """Return what stays in a filter that asks for random values, over the chain ``lower``."""
    definitions = Definitions(lower.unstable)
    for link in lower.links:
        definitions.define(link, guarded=False)
    reason, detail = DeclineReason.NON_DETERMINISTIC, "its filter asks for random values"
    dependent = (conjunct for conjunct in breaker.conjuncts if definitions.is_dependent(conjunct))
    return tuple(LeftToSpark(definitions.text(conjunct), reason, detail) for conjunct in dependent)


class _Judgement:
    def __init__(
        self, chain: Chain, settings: SessionSettings, needs: NeedOf, *, shares: bool
    ) -> None:
        self._chain = chain
        self._shares = shares
        self._needs = needs
        self._definitions = Definitions(chain.unstable)
        self._terms = Terms(self._definitions, settings)
        self._claimed: dict[Expression, str] = {}
        self._taken: set[tuple[int, int]] = set()
        self._below: list[CatalystExpression] = []
        self._unsure: list[tuple[CatalystExpression, CatalystExpression]] = []
        self._left: list[LeftToSpark] = []
        self._guarded = False  # a filter over functions was passed
        self._later: dict[ExpressionId, Call] = {}  # of concurrent functions
        self._below_of: dict[ExpressionId, int] = {}  # claimed terms below a function, by result

    def verdict(self) -> Verdict:
        barrier = self._barrier()
        # What is above one is for fewer rows than the block has.
        self._shares = self._shares and barrier is None
        guards = self._claimed and self._unsure
        pays = self._later or guards or worth_routing(self._claimed) or self._parts_are_used()
        if not pays:
            few = DeclineReason.FEWER_THAN_TWO_TERMS
            known = self._terms.contents.functions
            for term, text in self._claimed.items():
                asked = frozenset(known[call.function].commands for call in calls_in(term))
                self._left.append(LeftToSpark(text, few, functions=asked))
            return Verdict(None, tuple(self._left), barrier)
        return Verdict(self._claim(), tuple(self._left), barrier)

    def _parts_are_used(self) -> bool:
        """Whether a claimed term computes, on the way, what is used above it."""
        if not self._shares or not self._nests(self._claimed):
            return False
        for link in self._chain.links:
            self._definitions.define_more(link, guarded=self._guarded)
        before = self._terms.contents.mark()
        provided = self._provided(self._claimed)
        self._terms.back_to(before)
        asked = {call for term in self._claimed for call in calls_in(term)}
        inside = {identity for identity, call in provided.items() if call not in asked}
        used = self._used_above()
        return bool(inside if used is None else inside & used)

    def _barrier(self) -> int | None:
        """Take in links up to the first barrier; return its position, None where there is none."""
        for position, link in enumerate(self._chain.links):
            if isinstance(link, EvaluationLink) and not self._takes_later(link):
                return position - 1
            if self._stops(position):
                return position
        return None

    def _takes_later(self, link: EvaluationLink) -> bool:
        """Take in concurrent functions, whose values the block provides, be they asked for or not.

        False if an argument may raise, which a filter below guards against: then they are for a
        block above that filter.
        """
        for index in link.indexes:
            function = link.functions[index]
            if mark_in(function) is None:
                continue
            before = self._terms.contents.mark()
            try:
                call = self._terms.call(FunctionResult(function, self._guarded))
                self._later[link.results[index].identity] = self._terms.evaluable(call)
            except DeclinedError as declined:
                self._terms.back_to(before)
                if declined.reason is DeclineReason.MAY_THROW and self._guarded:
                    return False
                text = self._definitions.text(function)
                self._left.append(LeftToSpark(text, declined.reason, declined.detail))
        return True

    def _stops(self, position: int) -> bool:
        """Take in a link; whether it is a barrier."""
        link = self._chain.links[position]
        if not isinstance(link, FilterLink):
            self._definitions.define(link, guarded=self._guarded)
            if isinstance(link, EvaluationLink):
                results = (link.results[index].identity for index in link.indexes)
                self._below_of |= dict.fromkeys(results, len(self._claimed))
            return False
        passed = [
            self._take(conjunct, (position, index)) for index, conjunct in enumerate(link.conjuncts)
        ]
        self._guarded |= any(map(self._definitions.is_dependent, link.conjuncts))
        return not all(passed)

    def _take(self, conjunct: Tree, place: tuple[int, int]) -> bool:
        """Take in a conjunct; False if it stays where it is."""
        if self._definitions.is_dependent(conjunct):
            return self._take_dependent(conjunct, place)
        if functions := self._definitions.unstable_functions(conjunct):
            text = self._definitions.text(conjunct)
            self._left.append(LeftToSpark(text, DeclineReason.NON_DETERMINISTIC, functions))
        if not self._definitions.may_throw(conjunct):
            self._below.append(self._definitions.over_base(conjunct))
        elif self._guarded:
            return False
        else:
            over_base = self._definitions.tree_over_base(conjunct)
            passing = true_or_failed(over_base)
            self._unsure.append((over_base.handle, passing or over_base.handle))
        self._taken.add(place)
        return True

    def _take_dependent(self, conjunct: Tree, place: tuple[int, int]) -> bool:
        text = self._definitions.text(conjunct)
        before = self._terms.contents.mark()
        try:
            # Other conjuncts of the filter may shield this one, so it counts as guarded.
            expression = self._terms.evaluable(self._terms.expression(conjunct, guarded=True))
        except DeclinedError as declined:
            self._terms.back_to(before)
            self._left.append(LeftToSpark(text, declined.reason, declined.detail))
            return False
        self._claimed.setdefault(expression, text)
        self._taken.add(place)
        return True

    def _claim(self) -> Claim:
        terms = tuple(self._claimed)
        predicate = And(terms) if len(terms) > 1 else next(iter(terms), ALL_ROWS)
        for link in self._chain.links:  # above a barrier nothing is defined yet
            self._definitions.define_more(link, guarded=self._guarded)
        needed, provided = self._values_with(predicate)
        contents = self._terms.contents
        unsure = [condition for condition, _ in self._unsure]
        below = [passing for _, passing in self._unsure] if terms else unsure
        above = [
            condition for condition, passing in self._unsure if terms and condition is not passing
        ]
        return Claim(
            predicate,
            tuple(self._claimed.values()),
            contents.functions,
            contents.environments,
            contents.arguments,
            (*self._below, *below),
            frozenset(self._taken),
            provided,
            *self._waits(),
            tuple(above),
            needed,
        )

    def _values_with(
        self, predicate: Expression
    ) -> tuple[dict[ExpressionId, Expression], dict[ExpressionId, Call]]:
        """Return what the block computes beside its predicate: for which rows, and as which call.

        Calls that tell which rows need a value are calls that the block makes, too.
        """
        needed = self._needed(self._later)
        used = self._used_above()
        asked = set(self._later)
        while True:
            provided = self._provided([predicate, *needed.values()])
            others = provided.keys() if used is None else provided.keys() & used
            others -= asked
            if not others:
                return needed, provided
            asked |= others
            needed |= self._needed(others)

    def _waits(self) -> tuple[tuple[int, ...], tuple[tuple[Call, int], ...]]:
        """Return for each conjunct of the block how many of the first ones it has to wait for.

        And the calls for which they wait, each with that number.

        Where two kinds of functions meet, or one is called with what another returns, Spark
        filters between them: it makes no calls for rows that are gone by then. Spark itself cannot
        call concurrent functions, and nothing waits for them.
        """
        free = self._before_concurrent()
        below_of = {identity: min(below, free) for identity, below in self._below_of.items()}
        if not any(below_of.values()):
            return (), ()
        first: dict[Call, int] = {}
        for identity, below in below_of.items():
            if (call := self._call(self._definitions.results[identity])) is not None:
                first[call] = min(below, first.get(call, below))
        places: dict[Term, None] = {}
        ends, waits = [0], list[int]()
        for claimed in self._claimed:
            below = max((first.get(call, 0) for call in calls_in(claimed)), default=0)
            for term in conjuncts_of(claimed):
                if term not in places:
                    places[term] = None
                    waits.append(ends[below])
            ends.append(len(waits))
        after = tuple((call, ends[below]) for call, below in first.items() if ends[below])
        return (tuple(waits), after) if any(waits) else ((), ())

    def _before_concurrent(self) -> int:
        """Return how many of the first conjuncts call no concurrent function."""
        functions = self._terms.contents.functions
        return next(
            (
                place
                for place, term in enumerate(self._claimed)
                if any(functions[call.function].driver is not None for call in calls_in(term))
            ),
            len(self._claimed),
        )

    def _call(self, result: FunctionResult) -> Call | None:
        """Return the call of a result without taking it in; None for one that is not understood."""
        before = self._terms.contents.mark()
        try:
            # An argument that may raise is no obstacle if the block has it already.
            return self._terms.call(FunctionResult(result.function, guarded=False))
        except DeclinedError:
            return None
        finally:
            self._terms.back_to(before)

    def _used_above(self) -> frozenset[ExpressionId] | None:
        """Return the attributes used outside the conjuncts that were taken in; None for all.

        Only for these is it worked out which rows need them: each of a filter's 120 functions
        stands after all before it, and reading these conditions took 10,000 calls into the JVM.
        """
        if not isinstance(self._chain.links[-1], ProjectLink):
            return None
        used: set[ExpressionId] = set()
        for position, link in enumerate(self._chain.links):
            if isinstance(link, FilterLink):
                trees = [
                    conjunct
                    for index, conjunct in enumerate(link.conjuncts)
                    if (position, index) not in self._taken
                ]
            elif isinstance(link, EvaluationLink):
                trees = [link.functions[index] for index in link.indexes]
            else:
                trees = list(link.items)
            used.update(identity for tree in trees for identity in tree.attributes())
        return frozenset(used)

    def _needed(self, results: Iterable[ExpressionId]) -> dict[ExpressionId, Expression]:
        """Return for which rows results are needed, as far as the block can tell."""
        conditions: dict[ExpressionId, Expression] = {}
        for identity in results:
            result = self._definitions.results.get(identity)
            guarded = self._guarded if result is None else result.guarded
            # What may raise is not asked beforehand: a function may guard it.
            need = without(self._needs(identity), lambda c: c.sure)
            native = without(need, lambda c: not any(map(self._definitions.depends, c.attributes)))
            for candidate in dict.fromkeys((need, native)):
                mark = self._terms.contents.mark()
                try:
                    if (needed := self._terms.needed(candidate, guarded=guarded)) is not None:
                        conditions[identity] = needed
                    break
                except DeclinedError:
                    self._terms.back_to(mark)
        return conditions

    def _provided(self, wanted_by: Iterable[Expression]) -> dict[ExpressionId, Call]:
        """Return the results anywhere in the chain that are calls in these expressions.

        And those of the functions that such a call gets its arguments from: they are called anyway.
        """
        wanted = frozenset(call for expression in wanted_by for call in calls_in(expression))
        nests = self._nests(wanted) if self._shares else {}
        provided = dict(self._later)
        for identity, result in self._definitions.results.items():
            call = self._call(result)
            if call is not None and call in wanted:
                provided[identity] = call
            elif nests and (part := self._part(result, nests)) is not None:
                provided[identity] = part
        return provided

    def _nests(self, expressions: Iterable[Expression]) -> dict[Call, UserFunction]:
        """Return the calls in expressions that make other calls on the way, with their functions.

        Not those of functions whose results may differ for the same arguments.
        """
        functions = self._terms.contents.functions
        calls = {call for expression in expressions for call in calls_in(expression)}
        return {
            call: functions[call.function]
            for call in calls
            if len(functions[call.function].commands) > 1 and self._terms.remembers(call)
        }

    def _part(self, result: FunctionResult, nests: Mapping[Call, UserFunction]) -> Call | None:
        """Take in a result that one of these calls computes on the way; None for another."""
        before = self._terms.contents.mark()
        try:
            call = self._terms.call(FunctionResult(result.function, guarded=False))
            function = self._terms.contents.functions[call.function]
            for nest, whole in nests.items():
                if call.arguments == nest.arguments and is_inside(function, whole):
                    return self._terms.evaluable(call)
        except DeclinedError:
            pass
        self._terms.back_to(before)
        return None


def is_made_on_the_way(call: Call, nest: Call, functions: Sequence[UserFunction]) -> bool:
    """Return whether one call computes another; both are of ``functions``, by their numbers."""
    return call.arguments == nest.arguments and is_inside(
        functions[call.function], functions[nest.function]
    )
