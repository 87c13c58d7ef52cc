"""What queries ask of one text by patterns, in conjunctive normal form."""

from __future__ import annotations

import itertools
from typing import NamedTuple, TypeAlias

from eddyline.expressions import Expression, Not, cannot_fail
from eddyline.expressions.strings import TextTest
from eddyline.expressions.terms import Conjunction, Leaf, Term
from eddyline.standing.engine.ranges import EVERY, MOST_BOXES, Box


class PatternClause(NamedTuple):
    """Tests of one text, one at least: one of ``positive`` passes, or one of ``negated`` does not.

    For NULL neither is true.
    """

    positive: tuple[TextTest, ...]
    negated: tuple[TextTest, ...] = ()

    @property
    def operand(self) -> Expression:
        """The text."""
        return (*self.positive, *self.negated)[0].children[0]


PatternClauses: TypeAlias = "tuple[PatternClause, ...]"
"""Clauses that must all hold."""


def clauses_of(term: Term) -> PatternClauses | None:
    """Return clauses that hold exactly where a term is TRUE.

    None for a term that is about anything but patterns of a single text that cannot fail, for one
    that would have more than :data:`~eddyline.standing.engine.ranges.MOST_BOXES` clauses, and for
    one that is about prefixes alone, which are ranges.
    """
    leaves = list(_leaves(term))
    tests = [leaf.operand if isinstance(leaf, Not) else leaf for leaf in leaves]
    texts = [test for test in tests if isinstance(test, TextTest)]
    if len(texts) < len(tests) or all(test.prefix is not None for test in texts):
        return None
    operand = texts[0].children[0]
    if any(test.children[0] != operand for test in texts) or not cannot_fail(operand):
        return None
    literals = _clauses(term)
    if literals is None:
        return None
    return tuple(
        PatternClause(
            tuple(test for test, negated in clause if not negated),
            tuple(test for test, negated in clause if negated),
        )
        for clause in literals
    )


def without_implied(box: Box, clauses: PatternClauses) -> Box:
    """Return a box without "IS NOT NULL" for texts that clauses are about.

    Spark adds it to each filter, and no clause holds for NULL.
    """
    texts = {clause.operand for clause in clauses}
    implied = texts and any(box.get(text) == EVERY for text in texts)
    if not implied:
        return box
    return {a: range_ for a, range_ in box.items() if a not in texts or range_ != EVERY}


_Literals: TypeAlias = "dict[tuple[TextTest, bool], None]"
"""The tests of a clause, each with whether it is negated, in their order."""


def _leaves(term: Term) -> list[Expression]:
    if isinstance(term, Leaf):
        return [term.expression]
    return [leaf for part in term.terms for leaf in _leaves(part)]


def _clauses(term: Term) -> list[_Literals] | None:
    if isinstance(term, Leaf):
        negated = isinstance(term.expression, Not)
        test = term.expression.operand if isinstance(term.expression, Not) else term.expression
        return [{(test, negated): None}] if isinstance(test, TextTest) else None
    clauses: list[_Literals] = [] if isinstance(term, Conjunction) else [{}]
    for part in term.terms:
        further = _clauses(part)
        if further is None:
            return None
        if isinstance(term, Conjunction):
            clauses += further
        elif len(clauses) * len(further) > MOST_BOXES:
            return None
        else:
            clauses = [one | other for one, other in itertools.product(clauses, further)]
    return clauses if len(clauses) <= MOST_BOXES else None
