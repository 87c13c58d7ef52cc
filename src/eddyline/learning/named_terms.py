"""What a block asks, told by what it does: the same in every block, query and application.

A predicate is known by its functions' pickles and its text over the names of its columns. So
another block over the same functions and columns asks the same, whatever else it asks; a function
that was edited is another one, and so is a predicate with another constant. Columns of one name in
two tables are taken for the same: what tasks see of them tells them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eddyline.blocks.filter_block import FilterBlock, UserFunction
from eddyline.blocks.join_block import JoinBlock
from eddyline.digest import digest
from eddyline.engine.filter.filter_eddy import ALL_ROWS
from eddyline.expressions import Argument, Expression, calls_in, render
from eddyline.expressions.terms import Leaf, Term, conjuncts_of, expression_of, terms_of


@dataclass(frozen=True, slots=True)
class NamedTerm:
    """A term under the name that it has everywhere; an empty one where it calls no function."""

    name: str
    nested: tuple[NamedTerm, ...] = ()


@dataclass(frozen=True, slots=True)
class NamedParts:
    """The predicates of a block, in the order of its records, and its functions, by such names."""

    predicates: tuple[NamedTerm, ...]
    functions: tuple[str, ...]


def named_parts(block: FilterBlock | JoinBlock) -> NamedParts:
    """Return what a block asks; O(its terms, and the bytes of its functions)."""
    functions = tuple(map(_function_name, block.functions))
    if isinstance(block, JoinBlock):
        names = block.query.column_names
        terms = tuple(map(terms_of, block.graph.predicates))
    else:
        names = block.argument_names
        terms = () if block.predicate == ALL_ROWS else conjuncts_of(block.predicate)
    return NamedParts(tuple(_named(term, functions, names) for term in terms), functions)


def _named(term: Term, functions: Sequence[str], names: Sequence[str]) -> NamedTerm:
    nested = () if isinstance(term, Leaf) else term.terms
    of_terms = tuple(_named(part, functions, names) for part in nested)
    expression = expression_of(term)
    if not calls_in(expression):
        return NamedTerm("", of_terms)
    text = render(expression, functions, _all_names(expression, names))
    return NamedTerm(digest(text.encode("utf-8", "backslashreplace")).hex()[:32], of_terms)


def _all_names(expression: Expression, names: Sequence[str]) -> Sequence[str]:
    """Return the names of columns, with a number for each that has none."""
    numbers = [node.index for node in expression.walk() if isinstance(node, Argument)]
    missing = range(len(names), max(numbers, default=-1) + 1)
    return (*names, *(f"#{number}" for number in missing))


def _function_name(function: UserFunction) -> str:
    """Return the name of a function: equal for the same code with the same closure."""
    called = repr((function.kind, function.keywords, function.argument_types, function.driver))
    parts = (called.encode(), *map(digest, function.commands))
    return digest(b"".join(parts)).hex()[:32]
