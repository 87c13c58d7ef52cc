"""Predicates as trees of terms that an eddy may reorder.

:func:`decide` takes them in the written order instead: the eddy's answer, without an eddy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from eddyline.expressions.choice import Case, Coalesce
from eddyline.expressions.evaluation import evaluate
from eddyline.expressions.expression import Expression
from eddyline.expressions.leaves import Call, Literal, calls_in
from eddyline.expressions.logic import And, Not, Or
from eddyline.expressions.vector import Scope, hides


@dataclass(frozen=True, slots=True)
class Leaf:
    """A predicate that is evaluated as a whole."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class Conjunction:
    """Terms that must all be TRUE; none of them is a conjunction."""

    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Disjunction:
    """Terms one of which must be TRUE; none of them is a disjunction."""

    terms: tuple[Term, ...]


Term: TypeAlias = "Leaf | Conjunction | Disjunction"


def terms_of(predicate: Expression) -> Term:
    """Return a predicate as nested conjunctions and disjunctions, NOT moved to the leaves.

    A filter keeps a row where the predicate is TRUE. De Morgan's laws hold in
    Kleene's logic, so NOT can be moved down; and once it stands at the leaves
    only, "is TRUE" distributes over AND and OR: NULL and FALSE need not be told
    apart above a leaf. A term that stands twice among the terms of one AND or OR
    is kept once.

    >>> import pyarrow as pa
    >>> from eddyline.expressions import Argument
    >>> a, b = Argument(0, pa.bool_()), Argument(1, pa.bool_())
    >>> terms_of(Not(And((a, b)))) == Disjunction((Leaf(Not(a)), Leaf(Not(b))))
    True
    """
    return _term(predicate, negated=False)


def conjuncts_of(predicate: Expression) -> tuple[Term, ...]:
    """Return the terms that must all be TRUE; one where the predicate is no conjunction."""
    term = terms_of(predicate)
    return term.terms if isinstance(term, Conjunction) else (term,)


def expression_of(term: Term) -> Expression:
    """Return a term as an expression again."""
    if isinstance(term, Leaf):
        return term.expression
    terms = tuple(map(expression_of, term.terms))
    return And(terms) if isinstance(term, Conjunction) else Or(terms)


def _term(predicate: Expression, *, negated: bool) -> Term:
    if isinstance(predicate, Not):
        return _term(predicate.operand, negated=not negated)
    if not isinstance(predicate, And | Or):
        return Leaf(Not(predicate) if negated else predicate)
    kind = Conjunction if isinstance(predicate, And) is not negated else Disjunction
    terms: dict[Term, None] = {}
    for part in predicate.terms:
        term = _term(part, negated=negated)
        for inner in term.terms if isinstance(term, kind) else (term,):
            terms.setdefault(inner)
    return kind(tuple(terms)) if len(terms) > 1 else next(iter(terms))


def decide(term: Term, scope: Scope) -> tuple[npt.NDArray[np.bool_], dict[int, Exception]]:
    """Return for which rows a term is TRUE, and the error of each row for which that is unknown.

    A row decided by one term of an AND or OR is not shown to the next; an error
    counts where no other term decides the row, the first such error in the written order
    (or, of several rows, one that may go away when its row is tried alone).
    """
    rows = len(scope)
    if isinstance(term, Leaf):
        vector = evaluate(term.expression, scope)
        true = vector.values.fill_null(fill_value=False).to_numpy(zero_copy_only=False)
        return true, dict(vector.errors)
    conjunction = isinstance(term, Conjunction)
    errors: dict[int, Exception] = {}
    open_ = np.arange(rows, dtype=np.int64)
    for part in term.terms:
        true, failed = decide(part, scope.narrow(open_))
        stays = true.copy() if conjunction else ~true
        for position, error in failed.items():
            stays[position] = True
            row = int(open_[position])
            if row not in errors or (rows > 1 and hides(errors[row], error)):
                errors[row] = error
        open_ = open_[stays]
        if not len(open_):
            break
    undecided = np.zeros(rows, dtype=np.bool_)
    undecided[open_] = True
    errors = {row: error for row, error in errors.items() if undecided[row]}
    result = undecided if conjunction else ~undecided
    result[list(errors)] = False
    return result, errors


MINIMUM_TERMS: Final = 2
"""Below that there is no order to choose."""


def worth_routing(conjuncts: Iterable[Expression]) -> bool:
    """Whether conjuncts have terms that differ in the calls that they need.

    Else there is no order to choose.
    """
    terms = [term for whole in conjuncts for term in _spared_parts(whole)]
    needs = [frozenset(calls_in(term)) for term in terms if not isinstance(term, Literal)]
    return len(set(needs)) >= MINIMUM_TERMS


def _spared_parts(expression: Expression) -> list[Expression]:
    """Return the parts of a condition that some rows may be spared."""
    if isinstance(expression, And | Or | Case | Coalesce):
        return [term for child in expression.children for term in _spared_parts(child)]
    chosen = [child for child in expression.children if _has_choice(child)]
    if isinstance(expression, Call) or not chosen:
        return [expression]
    return [term for child in expression.children for term in _spared_parts(child)]


def _has_choice(expression: Expression) -> bool:
    """Whether there are parts of an expression that are computed for some rows only."""
    return any(isinstance(node, And | Or | Case | Coalesce) for node in expression.walk())
