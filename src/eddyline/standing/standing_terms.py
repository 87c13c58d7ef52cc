"""Translates the calls of functions in standing queries, whose arguments may be parameters."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import types

from eddyline.blocks.column_types import arrow_type
from eddyline.blocks.decline import not_understood
from eddyline.blocks.filter_block import SessionSettings
from eddyline.expressions import Argument, Call, Expression
from eddyline.planner.claim.term_translation import Terms
from eddyline.planner.read.chains import Tree
from eddyline.planner.read.definitions import Definitions, FunctionResult
from eddyline.standing.markers import PARAMETER
from eddyline.standing.parameter_constants import ALONE


class StandingTerms(Terms):
    """Translates, and has an argument of a negative number, -1 for the first, for a parameter."""

    def __init__(
        self,
        definitions: Definitions,
        settings: SessionSettings,
        parameters: Mapping[str, types.DataType],
    ) -> None:
        """Take the types of all parameters by name, in their order."""
        super().__init__(definitions, settings)
        self._parameters = {
            name: Argument(-1 - number, arrow_type(kind.json(), settings.time_zone))
            for number, (name, kind) in enumerate(parameters.items())
        }

    def parameter(self, function: Tree) -> Argument | None:
        """Return the parameter that a function stands for; None where it stands for none."""
        name = _name_of(function)
        if not name.startswith(PARAMETER):
            return None
        return self._parameters[name.removeprefix(PARAMETER)]

    def call(self, result: FunctionResult) -> Call:
        """Translate the result of a function; DeclinedError where it takes parameters alone."""
        if any(map(_takes_parameters, result.function.children)):
            # Spark calls the outer of two functions with what the inner gives, at one go.
            raise not_understood(ALONE)
        return super().call(result)

    def _leaf(self, tree: Tree, *, guarded: bool) -> Expression | None:
        if tree.name == "AttributeReference":
            result = self._definitions.results.get(tree.identity)
            parameter = None if result is None else self.parameter(result.function)
            if parameter is not None:
                return parameter
        return super()._leaf(tree, guarded=guarded)


def _takes_parameters(function: Tree) -> bool:
    """Tell whether a function that another is called with stands for a parameter, or takes one."""
    if function.name != "PythonUDF":
        return False
    return _name_of(function).startswith(PARAMETER) or any(
        map(_takes_parameters, function.children)
    )


def _name_of(function: Tree) -> str:
    return str(function.node.fields["name"])
