"""Whether a row of tables fits an event: IN, EXISTS and their opposites, with tables alone inside.

And the rows of an outer join with tables that meet none of theirs.

Spark makes semi and anti joins of them. Here they are a derived column of the stream, TRUE or
FALSE, that Spark computes with a join of its own: see
``docs/decisions/0083-rows-of-tables-that-exist.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from eddyline import catalyst
from eddyline.blocks.decline import not_understood
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.planner.read.chains import EvaluationLink, FilterLink, Tree, read_link
from eddyline.planner.read.throwing import may_throw
from eddyline.standing.described_outputs import canonical, unsaid

SEMI: Final = "LEFT SEMI"
ANTI: Final = "LEFT ANTI"
EXISTENCE: Final = "EXISTENCE"

ONE_SIDED: Final = frozenset({SEMI, ANTI, EXISTENCE})
"""Joins whose right side has no columns in the result."""

_READY: Final = "give the rows that are meant in tables= as a table of their own"


@dataclass(frozen=True)
class Existence:
    """Rows of tables, as a plan over their columns alone, and what makes one of them fit.

    ``leaves`` are the nodes that stand for tables, with their names.
    """

    rows: Plan
    condition: CatalystExpression
    leaves: tuple[tuple[Plan, str], ...]


class TableSide:
    """Reads the right side of such a join: what it says, and which tables it is about."""

    def __init__(self, table_of: Callable[[Plan], str | None]) -> None:
        self._table_of = table_of
        self.names: dict[int, str] = {}
        """Names for its attributes that are the same in every session, by their numbers."""
        self.leaves: list[tuple[Plan, str]] = []
        self.functions: set[str] = set()
        """The Python functions in it, which stand for parameters where they are called so."""

    def text(self, plan: Plan) -> str:
        """Return a text that says all of a plan; DeclinedError for what is not known.

        Its expressions are computed for all rows, so they must not raise errors.
        """
        table = self._table_of(plan)
        if table is not None:
            turn = len(self.leaves)
            self.leaves.append((plan, table))
            for place, number in enumerate(catalyst.output_numbers(plan)):
                self.names[number] = f"t{turn}.{place}"
            return table
        below = " ".join(map(self.text, catalyst.children(plan)))
        name = catalyst.class_name(plan).rpartition(".")[2]
        if name == "Join":
            condition = catalyst.join_condition(plan)
            said = "" if condition is None else self.said(Tree.of(condition))
            return f"{catalyst.join_type(plan)}({below} ON {said})"
        if name == "Aggregate":
            groups = [self.said(Tree.of(group)) for group in catalyst.grouping(plan)]
            values = [self._item(Tree.of(value)) for value in catalyst.aggregated(plan)]
            return f"{name}({below} BY {groups}: {values})"
        link, deterministic = read_link(plan)
        if isinstance(link, EvaluationLink):
            self.functions |= {str(function.node.fields["name"]) for function in link.functions}
            return below
        if link is None or not deterministic:
            raise not_understood(f"{name} inside of EXISTS, IN or an outer join: {_READY}")
        if isinstance(link, FilterLink):
            return f"{name}({below} WHERE {[self.said(c) for c in link.conjuncts]})"
        return f"{name}({below}: {[self._item(item) for item in link.items]})"

    def said(self, tree: Tree) -> str:
        """Return the text of an expression."""
        if may_throw(tree):
            raise not_understood(
                f"{catalyst.pretty(tree.handle)} inside of EXISTS, IN or an outer join may raise "
                "an error: write it with try_cast, try_divide or the like"
            )
        if not catalyst.is_deterministic(tree.handle):
            raise not_understood(
                f"{catalyst.pretty(tree.handle)} inside of EXISTS, IN or an outer join: {_READY}"
            )
        return f"{canonical(tree.node, self.names)} {unsaid(tree)}"

    def _item(self, item: Tree) -> str:
        if item.name != "Alias":
            return self.said(item)
        said = self.said(item.children[0])
        self.names[item.identity[0]] = f"n{len(self.names)}"
        return said


def over_rows(
    rows: Plan, leaves: Iterable[tuple[Plan, str]], rows_of: Callable[[str], Plan]
) -> Plan:
    """Return a plan over the rows that tables have, for which ``rows_of`` gives a plan.

    ``leaves`` are the nodes that stand for tables, with their names.
    """
    by_output = {catalyst.output_numbers(leaf): (leaf, table) for leaf, table in leaves}

    def replaced(plan: Plan) -> Plan:
        known = by_output.get(catalyst.output_numbers(plan))
        children = catalyst.children(plan)
        if known is not None and not children:
            there = rows_of(known[1])
            columns = zip(catalyst.outputs(known[0]), catalyst.outputs(there), strict=True)
            return catalyst.projected(
                [catalyst.attribute_like(meant, column) for meant, column in columns], there
            )
        return catalyst.with_children(plan, [replaced(child) for child in children])

    return replaced(rows)
