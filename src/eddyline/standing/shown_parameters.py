"""Parameters in the SELECT list of a template: their values come back with each result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql import types

from eddyline.blocks.column_types import can_travel
from eddyline.blocks.decline import not_understood
from eddyline.catalyst import CatalystExpression
from eddyline.planner.read.chains import ExpressionId, Tree
from eddyline.standing.query_template import ShownParameter


class ShownParameters:
    """The parameters that the outputs of a query show, in the order in which they come.

    Those of one type are numbered, so that templates that show as many have the same columns.
    """

    def __init__(self, parameters: Mapping[str, types.DataType]) -> None:
        """Take the types of all parameters by name, in their order."""
        self._parameters = parameters
        self._shown: dict[str, ShownParameter] = {}
        self.attributes: dict[ExpressionId, tuple[CatalystExpression, ShownParameter]] = {}
        """The attributes that stand for them in the outputs."""

    @property
    def shown(self) -> tuple[ShownParameter, ...]:
        """Those that are shown, each once."""
        return tuple(self._shown.values())

    @property
    def columns(self) -> tuple[tuple[CatalystExpression, str], ...]:
        """The attributes that stand for them, with the columns that their values travel in."""
        return tuple((attribute, shown.column) for attribute, shown in self.attributes.values())

    def take(self, attribute: Tree, name: str) -> None:
        """Take an attribute that stands for a parameter; DeclinedError where it cannot travel."""
        parameter = self._shown.get(name)
        if parameter is None:
            kind = self._parameters[name]
            if not can_travel(kind.json()):
                raise not_understood(
                    f"the parameter {name} of the type {kind.simpleString()} in the SELECT list"
                )
            number = sum(shown.type == kind.json() for shown in self._shown.values())
            place = list(self._parameters).index(name)
            parameter = self._shown[name] = ShownParameter(place, kind.json(), number)
        self.attributes[attribute.identity] = attribute.handle, parameter

    def names(self) -> dict[int, str]:
        """Return for each attribute, by the number in its identity, what stands for it in texts."""
        return {identity[0]: shown.column for identity, (_, shown) in self.attributes.items()}


def attributes_in(tree: Tree) -> Iterator[Tree]:
    """Return the attributes that an expression refers to."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if node.name == "AttributeReference":
            yield node
        pending.extend(node.children)
