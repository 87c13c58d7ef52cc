"""Runs of filters, and how the conditions over Python functions in one become a block.

Filters right above each other are one run: Spark makes one of them, too. The block's function takes
the place of its conditions in the topmost filter, where all that it is given is still at hand; the
native conditions stay where they are, and every relation keeps its number. Spark runs what is
native first, wherever it was written, as it does without eddies.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar

from eddyline.blocks.decline import DeclinedError, DeclineReason, LeftToSpark
from eddyline.blocks.filter_block import FilterBlock, SessionSettings, identified
from eddyline.blocks.nests import with_shared_parts
from eddyline.connect.conditions import ConditionReader, asked_about
from eddyline.connect.messages import (
    Expression,
    Relation,
    conjunction,
    conjuncts,
    copied,
    everything,
    has_ours,
    has_python,
    key_of,
    operands,
    python_function,
    python_functions,
    text_of,
)
from eddyline.connect.sent_functions import PythonCall, calls_at, python_call
from eddyline.expressions import And, Call, calls_in, render
from eddyline.expressions import Expression as Predicate
from eddyline.expressions.terms import conjuncts_of, expression_of, worth_routing


@dataclass(frozen=True, slots=True)
class FilterConjunct:
    """A conjunct of a filter of a run; ``level`` counts filters from the lowest.

    Spark may compute the arguments of functions in a ``guarded`` one for fewer rows than a block.
    """

    level: int
    expression: Expression
    guarded: bool = False

    @property
    def dependent(self) -> bool:
        """Whether it depends on a Python function of the user's."""
        return has_python(self.expression) and not self.ours

    @property
    def ours(self) -> bool:
        """Whether it is what a block decides that is there already."""
        return has_ours(self.expression)


@dataclass(frozen=True, slots=True)
class FilterRun:
    """Filters right above each other, the topmost first, and the conditions from the lowest on."""

    nodes: tuple[Relation, ...]
    conditions: tuple[FilterConjunct, ...]

    @property
    def below(self) -> Relation:
        """What the filters are over."""
        return self.nodes[-1].filter.input

    @property
    def dependent(self) -> tuple[FilterConjunct, ...]:
        """The conditions over Python functions."""
        return tuple(condition for condition in self.conditions if condition.dependent)

    @property
    def native(self) -> tuple[FilterConjunct, ...]:
        """The others."""
        return tuple(one for one in self.conditions if not (one.dependent or one.ours))

    def rewrite(self, taken: Sequence[FilterConjunct], decided: Sequence[Expression]) -> None:
        """Put what blocks decide into the topmost filter, in the place of the conditions taken.

        What is left over Python functions comes after it there, wherever it stood: Spark calls
        functions of several kinds one kind after the other, and filters between them.
        """
        before = [one.expression for one in self.conditions if one.ours]
        decided_now = set(map(id, taken))
        left = [one.expression for one in self.dependent if id(one) not in decided_now]
        native: dict[int, list[Expression]] = {}
        for one in self.native:
            native.setdefault(one.level, []).append(one.expression)
        for level, node in enumerate(reversed(self.nodes)):
            kept = native.get(level, [])
            if level == len(self.nodes) - 1:
                kept += [*before, *decided, *left]
            node.filter.condition.CopyFrom(conjunction(kept))


def run_at(node: Relation, longest: int = sys.maxsize) -> FilterRun:
    """Return the run of filters of which a relation is the topmost.

    A filter over a function that is not deterministic is a run of its own, as it is to Spark.
    """
    nodes = [node]
    while len(nodes) < longest and nodes[-1].filter.input.HasField("filter"):
        below = nodes[-1].filter.input
        if not all(map(_is_deterministic, (nodes[-1], below))):
            break
        nodes.append(below)
    conditions = [
        FilterConjunct(level, copied(one))  # what is in a filter ends when that is written anew
        for level, filtered in enumerate(reversed(nodes))
        for one in conjuncts(filtered.filter.condition)
    ]
    return FilterRun(tuple(nodes), tuple(conditions))


def _is_deterministic(node: Relation) -> bool:
    functions = python_functions(node.filter.condition)
    return all(function.deterministic for function in functions)


@dataclass
class FilterClaim:
    """What of a run is claimed: its block, the block's arguments, and the conditions it decides.

    ``outputs`` are the fields in which it hands on the values of calls, by what these say. Where
    all conditions are understood and there is nothing to reorder, their functions are better off
    ``each_alone``, with a memory.
    """

    block: FilterBlock | None = None
    arguments: list[Expression] = field(default_factory=list)
    taken: list[FilterConjunct] = field(default_factory=list)
    outputs: dict[bytes, str] = field(default_factory=dict)
    left: list[LeftToSpark] = field(default_factory=list)
    each_alone: bool = False


def questions(run: FilterRun) -> tuple[dict[bytes, Expression], list[Expression]]:
    """Return what the server is asked about a run: expressions with types, and others."""
    asked: dict[bytes, Expression] = {}
    for condition in run.dependent:
        asked |= asked_about(condition.expression)
    return asked, [condition.expression for condition in run.native]


def claimed(
    run: FilterRun,
    types: dict[bytes, str],
    settings: SessionSettings,
    *,
    ansi: bool,
    wanted: Sequence[Expression] = (),
) -> FilterClaim:
    """Return what of a run becomes a block, given the types that the server has told.

    The block hands on the values of those of the ``wanted`` calls that it makes anyway.
    """
    steps = _steps(run.dependent)
    guarded = any(steps)
    claim = FilterClaim()
    conditions, found = _translated(run.dependent, types, settings, claim, ansi, guarded)
    dependent, there = run.dependent, _among(found)
    kept = _without_company(dependent, steps, there, claim)
    if len(kept) < len(there):
        conditions, found = _translated(kept, types, settings, FilterClaim(), ansi, guarded)
    if not found:
        return claim
    asked = any(function.driver is not None for function in conditions.functions)
    functions = list(conditions.functions)
    outputs = _handed_on(wanted, found, conditions, claim)
    if not asked and not outputs and not worth_routing(found):
        claim.each_alone = not claim.left
        few = DeclineReason.FEWER_THAN_TWO_TERMS
        for one in (one for same in found.values() for one in same):
            asked_by = frozenset(call.commands for _, call in calls_at(one.expression))
            claim.left.append(LeftToSpark(text_of(one.expression), few, functions=asked_by))
        return claim
    kinds = [NO_KIND if one.driver is not None else one.kind for one in functions]
    stages = _stages(found, kinds)
    ordered = sorted(found, key=lambda predicate: _stage_of(predicate, stages))
    claim.taken = [one for predicate in ordered for one in found[predicate]]
    claim.arguments = conditions.arguments
    claim.block = _block(ordered, outputs, stages, conditions, settings)
    return claim


def _without_company(
    dependent: Sequence[FilterConjunct], steps: Sequence[int], there: set[int], claim: FilterClaim
) -> list[FilterConjunct]:
    """Return the conditions that may be asked apart from those that are left to Spark.

    What Spark asks after one of these is asked after it here, too. And what asks the same function
    with the same arguments stays with it: Spark calls that once for both; but for conditions whose
    functions only Eddyline can call.
    """
    calls = [frozenset(key_of(one) for one, _ in calls_at(c.expression)) for c in dependent]
    ours = [any(call.concurrent for _, call in calls_at(c.expression)) for c in dependent]
    kept = [n for n, one in enumerate(dependent) if id(one) in there]
    while len(kept) < len(dependent):
        left = [n for n in range(len(dependent)) if n not in kept]
        last, asked = min(steps[n] for n in left), frozenset().union(*(calls[n] for n in left))
        going = {n: _AFTER for n in kept if steps[n] > last}
        going |= {n: _TOGETHER for n in kept if not ours[n] and not asked.isdisjoint(calls[n])}
        if not going:
            break
        for n, why in going.items():
            text = text_of(dependent[n].expression)
            claim.left.append(LeftToSpark(text, DeclineReason.UNTRANSLATABLE, why))
        kept = [n for n in kept if n not in going]
    return [dependent[n] for n in kept]


_AFTER: Final = "Spark asks something before it that is left to it"

_TOGETHER: Final = "Spark calls its functions once for it and for what is left to it"


def _handed_on(
    wanted: Sequence[Expression],
    found: _Found,
    conditions: ConditionReader,
    claim: FilterClaim,
) -> tuple[Call, ...]:
    """Return those of the ``wanted`` calls that conditions make; the ``claim`` gets fields."""
    made = {
        key_of(call)
        for same in found.values()
        for one in same
        for call in _all_calls(one.expression)
    }
    outputs: list[Call] = []
    for one in wanted:
        if (key := key_of(one)) in made:
            with contextlib.suppress(DeclinedError):  # then it is called again
                outputs.append(conditions.value(one))
                claim.outputs[key] = f"v{len(outputs) - 1}"
    return tuple(outputs)


def _all_calls(expression: Expression) -> Iterator[Expression]:
    """Yield all calls of Python functions in an expression, also those inside of nests."""
    return (
        one
        for one in everything(expression)
        if isinstance(one, Expression) and python_function(one) is not None
    )


_Found: TypeAlias = dict[Predicate, list[FilterConjunct]]
"""Conditions by what they are translated to."""


def _translated(
    dependent: Sequence[FilterConjunct],
    types: dict[bytes, str],
    settings: SessionSettings,
    claim: FilterClaim,
    ansi: bool,  # noqa: FBT001 - as the session has it
    guarded: bool,  # noqa: FBT001 - likewise
) -> tuple[ConditionReader, _Found]:
    """Return conditions translated; the ``claim`` gets what is left."""
    conditions = ConditionReader(types, settings, ansi=ansi, guarded=guarded)
    found: _Found = {}
    for condition in dependent:
        try:
            predicate = conditions.condition(condition.expression, guarded=condition.guarded)
        except DeclinedError as declined:
            claim.left.append(declined.left_to_spark())
            continue
        found.setdefault(predicate, []).append(condition)
    return conditions, found


def _among(found: _Found) -> set[int]:
    """Return which conditions were found, by their identity."""
    return {id(one) for same in found.values() for one in same}


def _block(
    predicates: Sequence[Predicate],
    outputs: tuple[Call, ...],
    stages: dict[Call, int],
    conditions: ConditionReader,
    settings: SessionSettings,
) -> FilterBlock:
    functions = with_shared_parts(conditions.functions)
    names = tuple(map(text_of, conditions.arguments))
    function_names = [function.name for function in functions]
    whole = And(tuple(predicates)) if len(predicates) > 1 else predicates[0]
    terms = map(expression_of, conjuncts_of(whole))
    waits, after = _waiting(predicates, stages)
    return identified(
        FilterBlock(
            "",
            whole,
            tuple(render(term, function_names, names) for term in terms),
            functions,
            outputs,
            settings,
            names,
            waits=waits,
            after=after,
        )
    )


# ---------------------------------------------------------------- filters between functions


CallT = TypeVar("CallT", bound=Hashable)

NO_KIND: Final = 0
"""Stands for the kind of concurrent functions: Spark has no turn for them."""


def _in_steps(
    calls: Iterable[CallT],
    needs: Callable[[CallT], Iterable[CallT]],
    kind_of: Callable[[CallT], int],
) -> dict[CallT, int]:
    """Return in which of Spark's steps calls are made, which come in the order of the query.

    A step makes all calls of one kind, that of the first one whose arguments are there, and Spark
    filters before the next. What is of :data:`NO_KIND` Spark calls never: it belongs to the step
    of its arguments. O(steps x calls).
    """
    waiting = list(dict.fromkeys(calls))
    steps: dict[CallT, int] = {}
    step = 0
    while waiting:
        ready = [call for call in waiting if all(inner in steps for inner in needs(call))]
        free = [call for call in ready if kind_of(call) == NO_KIND]
        for call in free:
            steps[call] = max((steps[inner] for inner in needs(call)), default=0)
        if not free:
            made = [call for call in ready if kind_of(call) == kind_of(ready[0])]
            steps |= dict.fromkeys(made, step)
            step += 1
        waiting = [call for call in waiting if call not in steps]
    return steps


def _steps(dependent: Sequence[FilterConjunct]) -> list[int]:
    """Return in which step each condition over Python functions is decided."""
    known: dict[bytes, PythonCall] = {}

    def keys(expressions: Iterable[Expression]) -> list[bytes]:
        found = []
        pending = list(expressions)[::-1]
        while pending:
            one = pending.pop()
            call = python_call(one)
            if call is None:
                pending.extend(reversed(list(operands(one))))
                continue
            key = key_of(one)
            known[key] = call
            found += [key, *keys(call.values)]
        return found

    of_each = [keys([condition.expression]) for condition in dependent]
    steps = _in_steps(
        [key for of_one in of_each for key in of_one],
        lambda key: keys(known[key].values),
        lambda key: NO_KIND if known[key].concurrent else known[key].kind,
    )
    return [max((steps[key] for key in of_one), default=0) for of_one in of_each]


def _stages(predicates: Iterable[Predicate], kinds: Sequence[int]) -> dict[Call, int]:
    """Return in which step each call of predicates is made."""
    return _in_steps(
        (call for predicate in predicates for call in calls_in(predicate)),
        lambda call: [inner for value in call.arguments for inner in calls_in(value)],
        lambda call: kinds[call.function],
    )


def _stage_of(predicate: Predicate, stages: dict[Call, int]) -> int:
    return max((stages[call] for call in calls_in(predicate)), default=0)


def _waiting(
    predicates: Sequence[Predicate], stages: dict[Call, int]
) -> tuple[tuple[int, ...], tuple[tuple[Call, int], ...]]:
    """Return the ``waits`` and the ``after`` of a block whose predicates stand in Spark's order."""
    if not any(stages.values()):
        return (), ()
    terms = [
        (term, _stage_of(predicate, stages))
        for predicate in predicates
        for term in conjuncts_of(predicate)
    ]
    steps = [step for _, step in dict(terms).items()]
    before = [sum(other < step for other in steps) for step in range(max(stages.values()) + 1)]
    waits = tuple(before[step] for step in steps)
    after = tuple((call, before[step]) for call, step in stages.items() if before[step])
    return (waits, after) if any(waits) else ((), ())
