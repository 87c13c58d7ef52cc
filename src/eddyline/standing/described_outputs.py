"""What queries put out, as texts that are the same in every session."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from pyspark.sql import types

from eddyline import catalyst
from eddyline.catalyst import CatalystExpression
from eddyline.planner.read.chains import Tree
from eddyline.planner.read.throwing import top_may_throw
from eddyline.planner.read.translation import CatalystNode
from eddyline.standing.markers import PARAMETER
from eddyline.standing.query_template import OutputColumn


def described(schema: types.StructType, meanings: Iterable[str]) -> tuple[OutputColumn, ...]:
    """Describe outputs that have these columns."""
    return tuple(
        OutputColumn(shown_name(column.name), column.dataType.json(), meaning)
        for column, meaning in zip(schema.fields, meanings, strict=True)
    )


def meaning(output: CatalystExpression, places: Mapping[int, str]) -> str:
    """Return a text for an output that does not depend on the session's identities.

    ``places`` name the columns that it is made of, by the numbers in their identities.
    """
    value = Tree.of(output).children[0]
    plain = value.name == "AttributeReference"
    # JSON leaves out some of what an expression does.
    return canonical(value.node, places) + ("" if plain else unsaid(value))


def unsaid(tree: Tree) -> str:
    """Return what :func:`canonical` leaves out: Spark's text, and which operators may raise.

    ``a / b`` and ``try_divide(a, b)`` are one operator, whose text is the same, too.
    """
    return f"{catalyst.pretty(tree.handle)} {''.join(_raising(tree))}"


def is_column(meaning: str) -> bool:
    """Whether an output that means this is a column of an input as it is.

    >>> is_column("0.3"), is_column("Add[](0.3, 0.4)(a + b)")
    (True, False)
    """
    return re.fullmatch(r"\d+\.\d+", meaning) is not None


def _raising(tree: Tree) -> Iterator[str]:
    """Yield a mark for each node that may raise, and another for each that does not."""
    yield "!" if top_may_throw(tree) else "."
    for child in tree.children:
        yield from _raising(child)


def shown_name(column: str) -> str:
    """Return the name of a column as its user would write it.

    >>> shown_name("(price - eddyline_parameter_least())")
    '(price - :least)'
    """
    return re.sub(rf"{PARAMETER}(\w+)\(\)", r":\1", column)


_UNSTABLE: Final = frozenset({"exprId", "qualifier"})
"""Fields that differ from reading to reading."""


def canonical(
    node: CatalystNode, places: Mapping[int, str], without: Collection[str] = _UNSTABLE
) -> str:
    """Return an expression as text, with what ``places`` says in place of attributes.

    Fields named in ``without`` are left out.
    """
    if node.name == "AttributeReference":
        identity = node.fields["exprId"]
        number = int(identity["id"]) if isinstance(identity, dict) else -1
        return places.get(number) or str(node.fields["name"])
    fields = {k: v for k, v in node.fields.items() if k not in without}
    inner = ", ".join(canonical(child, places, without) for child in node.children)
    return f"{node.name}{sorted(fields.items(), key=str)}({inner})"
