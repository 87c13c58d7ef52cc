"""Native expressions that can raise, made such that they cannot: they are tried.

``CAST(t AS INT) > 5`` is tried as ``TRY(CAST(t AS INT)) > 5``, and has failed where the cast gives
NULL for a value that is none. That is known only of operators that are NULL for NULL alone
(those whose :class:`~eddyline.expressions.catalyst_classes.CatalystClass` has a condition), and
only where all that stands above them needs their value for every row: what a CASE or a COALESCE
computes for some rows only is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eddyline import catalyst
from eddyline.catalyst import CatalystExpression
from eddyline.expressions import catalyst_class
from eddyline.planner.read.chains import Tree
from eddyline.planner.read.throwing import TreeOperator, may_throw, top_may_throw


@dataclass(frozen=True, slots=True)
class Attempt:
    """An expression that cannot raise: NULL where the original one would.

    ``failed`` says where that is so, and is never NULL. ``condition`` is what Spark calls such an
    error of the first operator that can raise one.
    """

    value: CatalystExpression
    failed: CatalystExpression
    condition: str


def attempt(tree: Tree) -> Attempt | None:
    """Return how an expression that may raise is tried; None where no way is known."""
    tried = _tried(tree)
    if tried is None or not tried[1]:
        return None
    return Attempt(tried[0], catalyst.disjunction(tried[1]), next(_conditions(tree)))


def true_or_failed(tree: Tree) -> CatalystExpression | None:
    """Return a condition that is TRUE where another one is, or would raise, and cannot raise.

    An error stands between FALSE and TRUE, as everywhere: an AND has failed where no term of it is
    FALSE or NULL. None where no way is known to try a part of it.
    """
    if tree.name in {"And", "Or"}:
        terms = [true_or_failed(term) for term in tree.children]
        known = [term for term in terms if term is not None]
        if len(known) < len(terms):
            return None
        return (catalyst.conjunction if tree.name == "And" else catalyst.disjunction)(known)
    if not may_throw(tree):
        return tree.handle
    tried = attempt(tree)
    return None if tried is None else catalyst.disjunction([tried.value, tried.failed])


def _tried(tree: Tree) -> tuple[CatalystExpression, Sequence[CatalystExpression]] | None:
    """Return an expression as it is tried, and where a part of it has failed."""
    if not may_throw(tree):
        return tree.handle, ()
    known_class = catalyst_class(tree.name)
    if not known_class.is_strict(TreeOperator(tree)):
        return None
    parts = [_tried(operand) for operand in tree.children]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    value = catalyst.with_operands(tree.handle, [part for part, _ in known])
    failed = [test for _, several in known for test in several]
    if top_may_throw(tree):
        if known_class.condition is None or not _gives_a_scalar(tree):
            return None
        value = catalyst.tried(value)
        given = [
            catalyst.is_not_null(part)
            for (part, _), operand in zip(known, tree.children, strict=True)
            if operand.name != "Literal"
        ]
        failed.append(catalyst.conjunction([catalyst.is_null(value), *given]))
    return value, failed


def _conditions(tree: Tree) -> Iterator[str]:
    """Yield Spark's names of what can go wrong, by the operators that are evaluated first."""
    for child in tree.children:
        yield from _conditions(child)
    condition = catalyst_class(tree.name).condition
    if condition is not None and top_may_throw(tree):
        yield condition(TreeOperator(tree))


def _gives_a_scalar(tree: Tree) -> bool:
    """Whether a value has no parts, which a cast may make NULL one by one."""
    return '"type":' not in catalyst.data_type(tree.handle)
