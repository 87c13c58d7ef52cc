"""For which rows the value of something is needed, as conditions that Spark can compute.

An expression does not look at all of its parts in each row: of a CASE one branch, of COALESCE
what comes before the first that is not NULL and that one, of AND nothing once it is FALSE. Such a
need is put together from the conditions that decide; made a native expression, it tells for which
rows a function has to be called.

A condition that cannot be computed where the need is wanted counts as unknown: then both ways are
taken, and more rows are needed than would have to be, never fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from eddyline import catalyst
from eddyline.catalyst import CatalystExpression
from eddyline.planner.read.chains import ExpressionId, Tree
from eddyline.planner.read.throwing import may_throw

MOST_CONDITIONS: Final = 32
"""Terms of an AND, OR or COALESCE that are asked before another one is; with hundreds of a
function each, all would be asked for each of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """A boolean expression, and the attributes that it looks at.

    ``sure`` says that it can be computed for any row, also for those that Spark would have
    dropped before it came to this: it raises nothing.
    """

    handle: CatalystExpression
    attributes: frozenset[ExpressionId]
    sure: bool


class Need:
    """Base of all needs."""


@dataclass(frozen=True, slots=True)
class _Whole(Need):
    """The need of all rows, or of none."""

    all: bool


ALWAYS: Final[Need] = _Whole(all=True)
NEVER: Final[Need] = _Whole(all=False)


NeedOf: TypeAlias = Callable[[ExpressionId], Need]
"""Tells for which rows the result of a function is needed above the node that evaluates it."""


def unknown(_result: ExpressionId) -> Need:
    """Return what is known where nobody has looked: all rows count."""
    return ALWAYS


@dataclass(frozen=True, slots=True, eq=False)
class Branches(Need):
    """What is needed where the first of some conditions is TRUE, else ``otherwise``."""

    branches: tuple[tuple[Condition, Need], ...]
    otherwise: Need


@dataclass(frozen=True, slots=True, eq=False)
class AnyOf(Need):
    """What one of several needs asks for."""

    needs: tuple[Need, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Within(Need):
    """What the ``inner`` need asks for, of the rows of an ``outer`` one."""

    outer: Need
    inner: Need


def any_of(needs: Iterable[Need]) -> Need:
    """Return what one of some needs asks for.

    >>> any_of([NEVER, ALWAYS]) is ALWAYS, any_of([]) is NEVER
    (True, True)
    """
    alternatives: list[Need] = []
    for need in needs:
        if need is ALWAYS:
            return ALWAYS
        if need is not NEVER:
            alternatives += need.needs if isinstance(need, AnyOf) else (need,)
    if len(alternatives) < 2:  # noqa: PLR2004 - a pair is one of several
        return alternatives[0] if alternatives else NEVER
    return AnyOf(tuple(alternatives))


def within(outer: Need, inner: Need) -> Need:
    """Return what ``inner`` asks for of the rows of ``outer``; it is looked at in these only."""
    if outer is NEVER or inner is NEVER:
        return NEVER
    if outer is ALWAYS or inner is ALWAYS:
        return inner if outer is ALWAYS else outer
    return Within(outer, inner)


def branching(branches: Sequence[tuple[Condition, Need]], otherwise: Need) -> Need:
    """Return what is needed of a choice among branches."""
    if all(need is otherwise for _, need in branches):
        return otherwise
    return Branches(tuple(branches), otherwise)


def conditions_of(need: Need) -> Iterator[Condition]:
    """Yield the conditions in a need."""
    match need:
        case Branches():
            for condition, inner in need.branches:
                yield condition
                yield from conditions_of(inner)
            yield from conditions_of(need.otherwise)
        case AnyOf():
            for alternative in need.needs:
                yield from conditions_of(alternative)
        case Within():
            yield from conditions_of(need.outer)
            yield from conditions_of(need.inner)


def without(need: Need, is_known: Callable[[Condition], bool]) -> Need:
    """Return a need in which nothing depends on conditions that are not known."""
    match need:
        case Branches():
            branches: list[tuple[Condition, Need]] = []
            for position, (condition, inner) in enumerate(need.branches):
                if not is_known(condition):
                    rest = branching(need.branches[position + 1 :], need.otherwise)
                    either = any_of([without(inner, is_known), without(rest, is_known)])
                    return branching(branches, either)
                branches.append((condition, without(inner, is_known)))
            return branching(branches, without(need.otherwise, is_known))
        case AnyOf():
            return any_of(without(alternative, is_known) for alternative in need.needs)
        case Within():
            return within(without(need.outer, is_known), without(need.inner, is_known))
    return need


def renamed(need: Need, definitions: Mapping[ExpressionId, Tree]) -> Need:
    """Return a need in terms of what is below a projection; ``definitions`` are its aliases."""
    match need:
        case Branches():
            branches = [
                (_renamed(condition, definitions), renamed(inner, definitions))
                for condition, inner in need.branches
            ]
            return Branches(tuple(branches), renamed(need.otherwise, definitions))
        case AnyOf():
            return AnyOf(tuple(renamed(alternative, definitions) for alternative in need.needs))
        case Within():
            return Within(renamed(need.outer, definitions), renamed(need.inner, definitions))
    return need


def _renamed(condition: Condition, definitions: Mapping[ExpressionId, Tree]) -> Condition:
    meant = {
        identity: definitions[identity]
        for identity in condition.attributes
        if identity in definitions
    }
    if not meant:
        return condition
    pairs = [
        (catalyst.attribute_of(alias.handle), alias.children[0].handle) for alias in meant.values()
    ]
    below = {identity for alias in meant.values() for identity in alias.children[0].attributes()}
    return Condition(
        catalyst.in_terms_of(condition.handle, pairs),
        (condition.attributes - meant.keys()) | below,
        condition.sure and not any(may_throw(alias.children[0]) for alias in meant.values()),
    )


def as_expression(need: Need) -> CatalystExpression:
    """Return a need as a boolean expression, which is never NULL; of all rows it is TRUE."""
    match need:
        case Branches():
            parts = [
                part
                for condition, inner in need.branches
                for part in (condition.handle, as_expression(inner))
            ]
            return catalyst.case_when(parts, as_expression(need.otherwise))
        case AnyOf():
            return catalyst.disjunction([as_expression(alternative) for alternative in need.needs])
        case Within():
            inner = as_expression(need.inner)
            return catalyst.case_when([as_expression(need.outer), inner], as_expression(NEVER))
    return catalyst.literal_true() if need is ALWAYS else catalyst.literal_false()


def needed_in(tree: Tree, wanted: ExpressionId) -> Need:
    """Return for which rows the value of an expression depends on an attribute.

    O(nodes) for one attribute; a part of it that stands under several conditions has all of these
    in its need, but for those that depend on the attribute themselves.
    """
    return without(_needed(tree, wanted), lambda condition: wanted not in condition.attributes)


def _needed(tree: Tree, wanted: ExpressionId) -> Need:
    if tree.name == "AttributeReference":
        return ALWAYS if tree.identity == wanted else NEVER
    if not any(identity == wanted for identity in tree.attributes()):
        return NEVER
    lazily = _LAZY.get(tree.name)
    if lazily is not None:
        return lazily(tree, wanted)
    return any_of(_needed(child, wanted) for child in tree.children)


def _of_case(tree: Tree, wanted: ExpressionId) -> Need:
    parts = tree.children
    otherwise = _needed(parts[-1], wanted) if len(parts) % 2 else NEVER
    return _of_branches(list(zip(parts[:-1:2], parts[1::2], strict=False)), otherwise, wanted)


def _of_if(tree: Tree, wanted: ExpressionId) -> Need:
    condition, value, otherwise = tree.children
    return _of_branches([(condition, value)], _needed(otherwise, wanted), wanted)


def _of_branches(
    branches: Sequence[tuple[Tree, Tree]], otherwise: Need, wanted: ExpressionId
) -> Need:
    """Return what branches need, and their conditions, each looked at where none before is TRUE."""
    needs = [(_holds(condition), _needed(value, wanted)) for condition, value in branches]
    asked = [_needed(condition, wanted) for condition, _ in branches]
    if asked[0] is ALWAYS:
        return ALWAYS
    alternatives = [branching(needs, otherwise), asked[0]]
    for position in range(1, len(asked)):
        if asked[position] is not NEVER:
            before = [(condition, NEVER) for condition, _ in needs[:position]]
            alternatives.append(branching(before, asked[position]))
    return any_of(alternatives)


def _of_coalesce(tree: Tree, wanted: ExpressionId) -> Need:
    return _of_first(tree.children, wanted, catalyst.is_not_null)


def _of_nanvl(tree: Tree, wanted: ExpressionId) -> Need:
    return _of_first(tree.children, wanted, lambda h: catalyst.negation(catalyst.is_nan(h)))


def _of_first(
    parts: Sequence[Tree],
    wanted: ExpressionId,
    ends: Callable[[CatalystExpression], CatalystExpression],
) -> Need:
    """Return what some parts need, each of which is looked at where none before it ends that.

    No more than the first of many are asked beforehand: with fewer asked, more rows are needed,
    and nothing else changes.
    """
    alternatives: list[Need] = []
    for position, part in enumerate(parts):
        own = _needed(part, wanted)
        if own is not NEVER:
            before = parts[: min(position, MOST_CONDITIONS)]
            alternatives.append(
                branching([(_condition(p, ends(p.handle)), NEVER) for p in before], own)
            )
    return any_of(alternatives)


def _of_and(tree: Tree, wanted: ExpressionId) -> Need:
    return _of_first(tuple(tree.terms("And")), wanted, catalyst.negation)


def _of_or(tree: Tree, wanted: ExpressionId) -> Need:
    return _of_first(tuple(tree.terms("Or")), wanted, lambda handle: handle)


def _of_aggregate(tree: Tree, wanted: ExpressionId) -> Need:
    """Return what an aggregate function needs: of the rows that its FILTER keeps, if it has one."""
    function, *condition = tree.children
    needed = _needed(function, wanted)
    if not condition:
        return needed
    kept = branching([(_holds(condition[0]), needed)], NEVER)
    return any_of([_needed(condition[0], wanted), kept])


def _of_lambda(_tree: Tree, _wanted: ExpressionId) -> Need:
    """Return the need of a function of elements: its conditions may look at these."""
    return ALWAYS


def _holds(tree: Tree) -> Condition:
    return _condition(tree, tree.handle)


def _condition(tree: Tree, handle: CatalystExpression) -> Condition:
    return Condition(handle, frozenset(tree.attributes()), not may_throw(tree))


_LAZY: Final[Mapping[str, Callable[[Tree, ExpressionId], Need]]] = {
    "AggregateExpression": _of_aggregate,
    "And": _of_and,
    "CaseWhen": _of_case,
    "Coalesce": _of_coalesce,
    "If": _of_if,
    "LambdaFunction": _of_lambda,
    "NaNvl": _of_nanvl,
    "Or": _of_or,
}
"""What does not look at all of its parts, by Catalyst's name; all others do."""
