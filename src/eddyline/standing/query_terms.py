"""What a standing query is made of, over its inputs: expressions, calls, and what it puts out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import types

from eddyline import catalyst
from eddyline.blocks.decline import DeclinedError, not_understood
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.expressions import Argument, Expression, reason_not_to_evaluate, with_arguments
from eddyline.planner.read.chains import ExpressionId, Tree
from eddyline.planner.read.definitions import Definitions, FunctionResult
from eddyline.planner.read.expression_details import ExpressionDetails
from eddyline.planner.read.translation import CatalystNode, translate
from eddyline.standing.called_functions import CalledFunctions
from eddyline.standing.derivation import Derivation, DerivedColumns
from eddyline.standing.described_outputs import meaning, shown_name
from eddyline.standing.markers import PARAMETER
from eddyline.standing.parameter_constants import with_constants
from eddyline.standing.query_inputs import QueryInputs, identity_of
from eddyline.standing.shown_parameters import ShownParameters, attributes_in
from eddyline.standing.standing_terms import StandingTerms


@dataclass(slots=True, kw_only=True)
class QueryTerms(QueryInputs):
    """Reads expressions of a plan over its inputs' columns, and what the plan puts out of them."""

    parameters: Mapping[str, types.DataType]
    derived: DerivedColumns
    existences: dict[ExpressionId, Expression] = field(default_factory=dict)
    """What attributes are that say whether a row of tables fits."""
    absent: int | None = None
    """The input of which no row must fit, of an anti-join, or some row, of a semi-join."""
    definitions: Definitions = field(default_factory=lambda: Definitions({}))
    calls: StandingTerms = field(init=False)
    shown: ShownParameters = field(init=False)
    called: CalledFunctions = field(default_factory=CalledFunctions)
    constants: dict[Expression, int] = field(default_factory=dict)
    """What is computed of parameters alone, by number."""
    aggregates: bool = False
    derivation: Derivation = field(init=False)

    def __post_init__(self) -> None:
        """Have at hand what knows how functions are called, and which parameters are shown."""
        self.derivation = Derivation(self.derived, self, self.settings.time_zone)
        self.shown = ShownParameters(self.parameters)
        self.calls = StandingTerms(self.definitions, self.settings, self.parameters)

    def translated(self, tree: Tree) -> Expression:
        """Return an expression over the inputs' columns; DeclinedError where it cannot be."""

        def leaf(_: CatalystNode, path: tuple[int, ...]) -> Expression | None:
            return self._leaf(tree.at(path))

        def instead(_: CatalystNode, path: tuple[int, ...]) -> Expression | None:
            return self.derivation.derived(tree.at(path))

        refusals = self.derivation.refusals
        refusals.clear()
        self.derivation.inside.clear()
        try:
            expression = translate(
                tree.node,
                leaf,
                ExpressionDetails(tree),
                time_zone=self.settings.time_zone,
                instead=instead,
            )
        except DeclinedError as declined:
            if not refusals:
                raise
            raise not_understood(refusals[0]) from declined
        reason = reason_not_to_evaluate(expression)
        if reason is None:
            return expression
        other = self.derivation.derived(tree)
        if other is None:
            raise not_understood(reason)
        return other

    def in_struct(self, trees: Sequence[Tree], *, together: bool) -> Expression:
        """Return a struct of expressions, which Spark makes; DeclinedError where it cannot.

        ``together`` says whether one that is NULL makes it NULL.
        """
        handles = [tree.handle for tree in trees]
        struct = catalyst.struct_of(handles)
        if together:
            known = catalyst.conjunction([catalyst.is_not_null(value) for value in handles])
            struct = catalyst.where_needed(known, struct)
        self.derivation.refusals.clear()
        self.derivation.inside.clear()
        text = ", ".join(shown_name(catalyst.pretty(handle)) for handle in handles)
        expression = self.derivation.derived(Tree.of(struct), f"({text})")
        if expression is None:
            raise not_understood(
                self.derivation.refusals[0]
                if self.derivation.refusals
                else "a Python function in an aggregate: make what it returns a column of the "
                "stream's own DataFrame"
            )
        return expression

    def _leaf(self, tree: Tree) -> Expression | None:
        if tree.name != "AttributeReference":
            return None
        known = self.arguments.get(tree.identity) or self.existences.get(tree.identity)
        if known is not None:
            return known
        result = self.definitions.results.get(tree.identity)
        if result is not None:
            return self.result_of(result)
        alias = self.definitions.known_alias(tree.identity)
        if alias is None:
            raise not_understood(f"the type of {tree.node.fields['name']}")
        return self.translated(alias)

    def result_of(self, result: FunctionResult) -> Expression:
        """Return the call of a function, or the parameter that a function stands for."""
        parameter = self.calls.parameter(result.function)
        if parameter is not None:
            return parameter
        name = result.function.node.fields["name"]
        call = self.calls.call(result)
        if not result.function.pickled.surroundings.endswith("[]"):
            raise not_understood(f"broadcast variables in the Python function {name}")
        if self.calls.contents.functions[call.function].driver is not None:
            raise not_understood(f"the concurrent function {name}")
        handles = self.calls.contents.arguments

        def over_inputs(argument: Argument) -> Expression:
            if argument.index < 0:
                return argument
            return self.translated(Tree.of(handles[argument.index]))

        return with_arguments(call, over_inputs)

    def _is_native(self, tree: Tree) -> bool:
        """Tell whether Spark can decide a condition on results: on joined rows, or on a table's.

        On a single stream it decides before, if at all.
        """
        results = map(self.definitions.results.__getitem__, self.definitions.results_in(tree))
        names = [str(result.function.node.fields["name"]) for result in results]
        if not all(name.startswith(PARAMETER) for name in names):
            return False
        base = self.definitions.tree_over_base(tree)
        attributes = [a.identity for a in attributes_in(base)]
        shown = self.definitions.results.keys()
        if any(one not in self.places and one not in shown for one in attributes):
            return False
        inputs = {self.places[one][0] for one in attributes if one in self.places}
        of_table = any(self.inputs[number] in self.tables for number in inputs)
        return (
            (len(inputs) > 1 or of_table)
            and self.absent not in inputs
            and catalyst.is_deterministic(base.handle)
        )

    def _native(self, tree: Tree) -> CatalystExpression:
        """Return a condition as a named expression over the inputs' columns."""
        value = self.definitions.over_base(tree)
        for attribute in attributes_in(Tree.of(value)):
            result = self.definitions.results.get(attribute.identity)
            if result is not None:
                self.show(attribute, result)
        return catalyst.named(value, "condition")

    def _described(self, plan: Plan, outputs: int) -> list[tuple[str, list[tuple[int, int]]]]:
        """Return what each output means, and the inputs' columns that it is made of.

        For a column, under whatever name, this is known without asking the JVM.
        """
        names = {i[0]: f"{number}.{column}" for i, (number, column) in self.places.items()}
        descriptions = []
        for index, number in zip(range(outputs), catalyst.output_numbers(plan), strict=True):
            identity = identity_of(number)
            alias = self.definitions.known_alias(identity)
            base = None if alias is None else self.definitions.named(alias)
            if base is not None and base.name == "AttributeReference":
                identity = base.identity
            place = self.places.get(identity)
            if place is not None:
                descriptions.append((names[identity[0]], [place]))
            else:
                output = self._output(Tree.of(catalyst.output(plan, index)))
                descriptions.append((meaning(output, names | self._names()), self._places(output)))
        return descriptions

    def _outputs(self, plan: Plan) -> tuple[CatalystExpression, ...]:
        """Return the outputs of a plan in terms of the inputs' columns."""
        return tuple(self._output(Tree.of(attribute)) for attribute in catalyst.outputs(plan))

    def _output(self, tree: Tree) -> CatalystExpression:
        value = self.definitions.over_base(self.definitions.named(tree))
        for attribute in attributes_in(Tree.of(value)):
            if attribute.identity in self.existences:
                raise not_understood(
                    "EXISTS or IN of a table in the SELECT list: join the table, or put it into "
                    "the WHERE clause"
                )
            result = self.definitions.results.get(attribute.identity)
            if result is not None:
                self.show(attribute, result)
        return catalyst.attribute_like(tree.handle, value)

    def show(self, attribute: Tree, result: FunctionResult) -> None:
        """Take an attribute that an output is made of: it stands for a parameter, or a call."""
        name = str(result.function.node.fields["name"])
        if name.startswith(PARAMETER):
            self.shown.take(attribute, name.removeprefix(PARAMETER))
            return
        if self.aggregates:
            raise not_understood(
                f"the Python function {name} of what is aggregated: call it in the sink"
            )
        expression = with_constants(self.result_of(result), self.constants)
        self.called.take(attribute, name, expression)

    def _names(self) -> dict[int, str]:
        """Return what stands in texts for parameters and calls, by the numbers of attributes."""
        return self.shown.names() | self.called.names()

    def _places(self, output: CatalystExpression) -> list[tuple[int, int]]:
        """Return the columns that an output is made of."""
        identities = Tree.of(output).attributes()
        return [
            self.places[identity]
            for identity in identities
            if identity not in self.shown.attributes and identity not in self.called.attributes
        ]
