"""Functions of a region that Spark calls above the joins, as nothing in the eddy asks for them.

What a region's output holds may not be wanted in the end: users of the DataFrame count its rows,
take a column, or look at the first ones. Spark's own rules see that for a function in a node of the
plan, but cannot see through what a block computes. So an eddy calls only functions that its
predicates call as well. An argument of such a function may be a column by a name that is given
inside the region, or the result of another function: then both are computed above.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from eddyline import catalyst
from eddyline.blocks.decline import DeclinedError
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.expressions import Call
from eddyline.planner.claim.join_terms import JoinTerms
from eddyline.planner.read.chains import EvaluationLink, ExpressionId, Link, Tree
from eddyline.planner.read.definitions import Definitions

Needed: TypeAlias = dict[ExpressionId, CatalystExpression]
"""Attributes that a block has to provide, by their identities."""

Expanded: TypeAlias = Callable[[Tree, Needed], CatalystExpression | None]
"""Returns what an attribute is a name for, and notes what that needs; None if it is no name."""


@dataclass(frozen=True)
class ValuesAbove:
    """Functions of one ``node`` by their ``indexes``, and ``names`` for what they are called with.

    The names are named expressions over what is there before the functions are called. ``results``
    are the attributes that the functions give.
    """

    node: Plan
    indexes: tuple[int, ...]
    names: tuple[CatalystExpression, ...]
    results: tuple[ExpressionId, ...]

    def over(self, plan: Plan) -> Plan:
        """Return the functions' results beside the columns of a plan."""
        if self.names:
            plan = catalyst.output_and_more(plan, plan, self.names)
        return catalyst.evaluation_of(self.node, self.indexes, plan)


def values_above(
    links: Sequence[Link],
    needed: Needed,
    asked: frozenset[Call],
    kept: frozenset[ExpressionId],
    definitions: Definitions,
    terms: JoinTerms,
    expanded: Expanded,
) -> tuple[ValuesAbove, ...]:
    """Return the functions of a region to be called above its block, in this order.

    ``links`` are the region's, ``asked`` the calls in its predicates, ``kept`` the results that
    conditions above the block look at. What is ``needed`` of the
    block loses the results of these functions and gains their arguments.
    """
    above: list[ValuesAbove] = []
    for link in reversed(links):  # a function can only need the results of those below it
        if not isinstance(link, EvaluationLink):
            continue
        indexes = [
            index
            for index in link.indexes
            if link.results[index].identity in needed.keys() - kept
            and not _stays(link.results[index].identity, asked, definitions, terms)
        ]
        if not indexes:
            continue
        names: Needed = {}
        for index in indexes:
            del needed[link.results[index].identity]
        for index in indexes:
            _name_arguments(link.functions[index], names, needed, expanded)
        results = tuple(link.results[index].identity for index in indexes)
        above.append(ValuesAbove(link.plan, tuple(indexes), tuple(names.values()), results))
    return tuple(reversed(above))


def _stays(
    result: ExpressionId, asked: frozenset[Call], definitions: Definitions, terms: JoinTerms
) -> bool:
    """Whether a function that gives a result is not to be called above the joins.

    As where a predicate calls it with the same arguments, and where nothing would be remembered of
    it: there it would be called for each joined row. Also where the block cannot call it: the
    reason may be one for which it has to stay below the joins, as for a function that draws random
    values.
    """
    mark = terms.contents.mark()
    try:
        call = terms.evaluable(terms.call(definitions.results[result]))
        if call in asked or not terms.remembers(call):
            return True
    except DeclinedError:
        return True
    terms.back_to(mark)
    return False


def _name_arguments(tree: Tree, names: Needed, needed: Needed, expanded: Expanded) -> None:
    """Note the arguments of a function: columns of the block, and names for what is none."""
    if tree.name == "AttributeReference":
        value = expanded(tree, needed)
        if value is not None:
            names[tree.identity] = catalyst.attribute_like(tree.handle, value)
        return
    for child in tree.children:
        _name_arguments(child, names, needed, expanded)
