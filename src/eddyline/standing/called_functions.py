"""Python functions in the SELECT list of a query: what they return comes with each result."""

from __future__ import annotations

from eddyline import catalyst
from eddyline.blocks.column_types import can_travel
from eddyline.blocks.decline import not_understood
from eddyline.catalyst import CatalystExpression
from eddyline.expressions import Expression
from eddyline.planner.read.chains import ExpressionId, Tree
from eddyline.standing.query_template import CalledOutput


class CalledFunctions:
    """The calls that the outputs of a query are made of, in the order in which they come.

    Those of one type are numbered, so that templates with as many have the same columns.
    """

    def __init__(self) -> None:
        """Begin without any."""
        self._called: dict[Expression, CalledOutput] = {}
        self.attributes: dict[ExpressionId, tuple[CatalystExpression, CalledOutput]] = {}
        """The attributes that stand for them in the outputs."""

    @property
    def called(self) -> tuple[CalledOutput, ...]:
        """Those that are made, each once."""
        return tuple(self._called.values())

    @property
    def columns(self) -> tuple[tuple[CatalystExpression, str], ...]:
        """The attributes that stand for them, with the columns that their values travel in."""
        return tuple((attribute, called.column) for attribute, called in self.attributes.values())

    def take(self, attribute: Tree, name: str, expression: Expression) -> None:
        """Take an attribute that stands for a call of the function ``name``.

        DeclinedError where what it returns cannot travel.
        """
        output = self._called.get(expression)
        if output is None:
            kind = catalyst.data_type(attribute.handle)
            if not can_travel(kind):
                raise not_understood(
                    f"the Python function {name} of type {kind.strip(chr(34))} in the SELECT list"
                )
            number = sum(one.type == kind for one in self._called.values())
            output = self._called[expression] = CalledOutput(expression, kind, number)
        self.attributes[attribute.identity] = attribute.handle, output

    def names(self) -> dict[int, str]:
        """Return for each attribute, by the number in its identity, what stands for it in texts."""
        return {identity[0]: called.column for identity, (_, called) in self.attributes.items()}
