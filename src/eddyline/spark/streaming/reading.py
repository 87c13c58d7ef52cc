"""From the plan of a query to a standing query: selections, edges, windows and outputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import types

from eddyline.evaluation import reason_not_to_evaluate, type_of
from eddyline.query.expressions import (
    And,
    Argument,
    Comparison,
    ComparisonOperator,
    Expression,
    with_arguments,
    with_children,
)
from eddyline.sharing.shared_query import Edge, SharedQuery, TimeBound, edge
from eddyline.spark.blocks.column_types import arrow_type
from eddyline.spark.blocks.filter_block import SessionSettings
from eddyline.spark.blocks.standing import OutputColumn, QueryTemplate
from eddyline.spark.claiming.terms import Terms
from eddyline.spark.decline import DeclinedError, not_understood
from eddyline.spark.host import catalyst
from eddyline.spark.host.catalyst import Analyst, CatalystExpression, Plan
from eddyline.spark.plan.chains import ExpressionId, FilterLink, Tree, read_link
from eddyline.spark.plan.definitions import Definitions, FunctionResult
from eddyline.spark.plan.expression_details import ExpressionDetails
from eddyline.spark.plan.translation import CatalystNode, translate
from eddyline.spark.streaming.errors import NotShareableError
from eddyline.spark.streaming.time_bounds import Sides, time_bound

PARAMETER: Final = "eddyline_parameter_"
"""How the functions are called that stand for parameters, before their names."""

MOST_COLUMNS: Final = 1 << 20
"""Columns of one input: arguments are numbered input by input, this far apart."""

_PLAIN: Final = frozenset({"INNER", "CROSS"})


@dataclass(frozen=True)
class ReadQuery:
    """A query that was read: what is kept, and its outputs in the JVM.

    ``columns`` are for each input the attributes of its columns; ``outputs`` named expressions
    over these. They are fetched when they are asked for, which is not when a query is added.
    """

    template: QueryTemplate
    reader: _Reader
    plan: Plan

    @cached_property
    def columns(self) -> tuple[tuple[CatalystExpression, ...], ...]:
        """For each input the attributes of its columns."""
        return tuple(catalyst.outputs(leaf) for leaf in self.reader.leaves)

    @cached_property
    def outputs(self) -> tuple[CatalystExpression, ...]:
        """The named expressions that are put out."""
        return tuple(self.reader.outputs(self.plan))


def read_query(
    analyst: Analyst,
    sql: str,
    schemas: Mapping[str, types.StructType],
    tables: Collection[str],
    parameters: Mapping[str, types.DataType],
    settings: SessionSettings,
    *,
    shown: str,
) -> ReadQuery:
    """Analyze a query over streams and tables, and read what it selects, joins and puts out.

    In ``sql`` each parameter is a call of the function that stands for it; ``shown`` is how its
    user wrote it. Raises PySpark's own
    errors for what is no valid query, and NotShareableError for a valid one that cannot stand.
    """
    plan, schema = analyst.optimized(sql)
    reader = _Reader(analyst, schemas, parameters, settings)
    try:
        reader.take_inputs(plan)
        reader.read(plan)
        used = frozenset(reader.inputs) & frozenset(tables)
        if len(used) == len(set(reader.inputs)):
            raise not_understood("a query that reads no stream")
        return reader.result(shown, plan, schema, used)
    except DeclinedError as declined:
        raise NotShareableError(f"{declined.left_to_spark().why}: {shown}") from declined


@dataclass(slots=True)
class _Reader:
    """Reads one plan, from the bottom up."""

    analyst: Analyst
    schemas: Mapping[str, types.StructType]
    parameters: Mapping[str, types.DataType]
    settings: SessionSettings
    inputs: list[str] = field(default_factory=list)
    leaves: list[Plan] = field(default_factory=list)
    places: dict[ExpressionId, tuple[int, int]] = field(default_factory=dict)
    arguments: dict[ExpressionId, Argument] = field(default_factory=dict)
    conjuncts: list[Tree] = field(default_factory=list)
    definitions: Definitions = field(default_factory=lambda: Definitions({}))
    calls: Terms = field(init=False)

    def __post_init__(self) -> None:
        """Have at hand what knows how functions are called."""
        self.calls = Terms(self.definitions, self.settings)

    def read(self, plan: Plan) -> None:
        """Take in a node and all below it."""
        name = catalyst.class_name(plan).rpartition(".")[2]
        if self.analyst.table_of(plan) is not None:
            return
        if name == "Join":
            self._join(plan)
        else:
            link, deterministic = read_link(plan)
            if link is None:
                raise not_understood(_name_of(name))
            if not deterministic:
                raise not_understood("an expression that is not deterministic")
            self.read(catalyst.children(plan)[0])
            if isinstance(link, FilterLink):
                self.conjuncts += link.conjuncts
            else:
                self.definitions.define(link, guarded=False)

    def result(
        self, sql: str, plan: Plan, schema: types.StructType, tables: frozenset[str]
    ) -> ReadQuery:
        """Return what was read."""
        selections: dict[int, list[Expression]] = {number: [] for number in range(len(self.inputs))}
        edges: set[Edge] = set()
        bounds: list[TimeBound] = []
        constants: dict[Expression, int] = {}
        sides = Sides(self._place, self.definitions.named, self._is_event_time)
        for tree in self.conjuncts:
            bound = time_bound(tree, sides)
            if bound is not None:
                bounds.append(bound)
                continue
            predicate = self._translated(tree)
            if (join := self._edge(predicate)) is not None:
                edges.add(join)
                continue
            number = self._only_input(predicate)
            local = with_arguments(predicate, _within)
            selections[number].append(with_constants(local, constants))
        query = SharedQuery(
            {
                number: And(tuple(terms)) if len(terms) > 1 else terms[0] if terms else None
                for number, terms in selections.items()
            },
            frozenset(edges),
            tuple(bounds),
        )
        try:
            _ = query.shape
        except ValueError as error:
            raise NotShareableError(
                f"the streams of a query are joined by equal columns, all of them: {sql}"
            ) from error
        meanings = [self._described(plan, n) for n in range(len(schema.fields))]
        described = tuple(
            OutputColumn(column.name, column.dataType.json(), meaning)
            for column, (meaning, _) in zip(schema.fields, meanings, strict=True)
        )
        template = QueryTemplate(
            sql,
            tuple(self.inputs),
            query,
            tuple(constants),
            tuple((name, kind.json()) for name, kind in self.parameters.items()),
            described,
            tables,
            self.calls.contents.functions,
            self.settings,
            frozenset(place for _, places in meanings for place in places),
        )
        return ReadQuery(template, self, plan)

    def take_inputs(self, plan: Plan) -> None:
        """Number the inputs, those of one table in the order of their identities.

        Where a query reads a table several times, one of them has the identities that the table
        has in every query, and the lowest; the optimizer may put it anywhere. It is the first here,
        so that what has these identities is the same input for all queries.
        """
        leaves = sorted(self._leaves(plan), key=lambda leaf: catalyst.output_numbers(leaf[1])[0])
        for table, leaf in leaves:
            self._input(table, leaf)

    def _leaves(self, plan: Plan) -> Iterator[tuple[str, Plan]]:
        table = self.analyst.table_of(plan)
        if table is not None:
            yield table, plan
            return
        for child in catalyst.children(plan):
            yield from self._leaves(child)

    def _input(self, table: str, plan: Plan) -> None:
        number = len(self.inputs)
        self.inputs.append(table)
        self.leaves.append(plan)
        identities = [self._identity(each) for each in catalyst.output_numbers(plan)]
        for position, (identity, column) in enumerate(
            zip(identities, self.schemas[table].fields, strict=True)
        ):
            kind = column.dataType.json()
            self.places[identity] = number, position
            index = number * MOST_COLUMNS + position
            try:
                self.arguments[identity] = Argument(
                    index, arrow_type(kind, self.settings.time_zone)
                )
            except (PySparkException, TypeError, ValueError):
                continue  # of a type that cannot travel: no predicate can be about it

    def _join(self, plan: Plan) -> None:
        kind = catalyst.join_type(plan)
        if kind not in _PLAIN:
            raise not_understood(f"a {kind.lower()} join")
        for child in catalyst.children(plan):
            self.read(child)
        condition = catalyst.join_condition(plan)
        if condition is not None:
            self.conjuncts += Tree.of(condition).terms("And")

    def _translated(self, tree: Tree) -> Expression:
        def leaf(_: CatalystNode, path: tuple[int, ...]) -> Expression | None:
            return self._leaf(tree.at(path))

        expression = translate(
            tree.node, leaf, ExpressionDetails(tree), time_zone=self.settings.time_zone
        )
        reason = reason_not_to_evaluate(expression)
        if reason is not None:
            raise not_understood(reason)
        return expression

    def _leaf(self, tree: Tree) -> Expression | None:
        if tree.name != "AttributeReference":
            return None
        known = self.arguments.get(tree.identity)
        if known is not None:
            return known
        result = self.definitions.results.get(tree.identity)
        if result is not None:
            return self._result(result)
        alias = self.definitions.known_alias(tree.identity)
        if alias is None:
            raise not_understood(f"the type of {tree.node.fields['name']}")
        return self._translated(alias)

    def _result(self, result: FunctionResult) -> Expression:
        """Return the call of a function, or the parameter that a function stands for."""
        name = str(result.function.node.fields["name"])
        if name.startswith(PARAMETER):
            parameter = name.removeprefix(PARAMETER)
            kind = arrow_type(self.parameters[parameter].json(), self.settings.time_zone)
            return Argument(-1 - list(self.parameters).index(parameter), kind)
        call = self.calls.call(result)
        if not result.function.pickled.surroundings.endswith("[]"):
            raise not_understood(f"broadcast variables in the Python function {name}")
        if self.calls.contents.functions[call.function].driver is not None:
            raise not_understood(f"the concurrent function {name}")
        handles = self.calls.contents.arguments
        return with_arguments(
            call, lambda argument: self._translated(Tree.of(handles[argument.index]))
        )

    def _place(self, tree: Tree) -> tuple[int, int] | None:
        """Return input and column of an attribute; None for what is none."""
        known = self.arguments.get(tree.identity) if tree.name == "AttributeReference" else None
        return None if known is None else divmod(known.index, MOST_COLUMNS)

    def _is_event_time(self, number: int, column: int) -> bool:
        return event_time(self.schemas[self.inputs[number]]) == column

    def _edge(self, predicate: Expression) -> Edge | None:
        match predicate:
            case Comparison(
                ComparisonOperator.EQUAL, Argument(left, kind), Argument(right, other)
            ) if left >= 0 and right >= 0 and kind == other:
                one, two = divmod(left, MOST_COLUMNS), divmod(right, MOST_COLUMNS)
                return edge(one, two) if one[0] != two[0] else None
        return None

    def _only_input(self, predicate: Expression) -> int:
        """Return the input whose columns a predicate is about; the first for one about none."""
        inputs = {
            node.index // MOST_COLUMNS
            for node in predicate.walk()
            if isinstance(node, Argument) and node.index >= 0
        }
        if len(inputs) > 1:
            raise not_understood(
                "a condition on columns of several streams that is neither an equality of two "
                "columns nor a window between two times"
            )
        return inputs.pop() if inputs else 0

    @staticmethod
    def _identity(number: int) -> ExpressionId:
        return number, catalyst.session_identity()

    def _described(self, plan: Plan, index: int) -> tuple[str, list[tuple[int, int]]]:
        """Return what an output means, and the columns that it is made of.

        Of a column under whatever name that is known without a question to the JVM.
        """
        identity = self._identity(catalyst.output_numbers(plan)[index])
        alias = self.definitions.known_alias(identity)
        if alias is not None and alias.name == "AttributeReference":
            identity = self.definitions.named(alias).identity
        place = self.places.get(identity)
        if place is not None:
            return f"{place[0]}.{place[1]}", [place]
        output = self._output(Tree.of(catalyst.output(plan, index)))
        return self._meaning(output), self._places(output)

    def outputs(self, plan: Plan) -> list[CatalystExpression]:
        """Return the outputs of a plan in terms of the inputs' columns."""
        return [self._output(Tree.of(attribute)) for attribute in catalyst.outputs(plan)]

    def _output(self, tree: Tree) -> CatalystExpression:
        named = self.definitions.named(tree)
        if named.name == "AttributeReference" and named.identity in self.definitions.results:
            name = str(self.definitions.results[named.identity].function.node.fields["name"])
            raise _no_function(name)
        value = self._over_inputs(named)
        return catalyst.attribute_like(tree.handle, value)

    def _over_inputs(self, tree: Tree) -> CatalystExpression:
        for identity in tree.attributes():
            if (result := self.definitions.results.get(identity)) is not None:
                raise _no_function(str(result.function.node.fields["name"]))
        return self.definitions.over_base(tree)

    def _places(self, output: CatalystExpression) -> list[tuple[int, int]]:
        """Return the columns that an output is made of."""
        return [self.places[identity] for identity in Tree.of(output).attributes()]

    def _meaning(self, output: CatalystExpression) -> str:
        """Return a text for an output that does not depend on the session's identities."""
        places = {identity[0]: place for identity, place in self.places.items()}
        value = Tree.of(output).children[0]
        plain = value.name == "AttributeReference"
        # JSON leaves out some of what an expression does, as when it fails.
        return _canonical(value.node, places) + ("" if plain else catalyst.pretty(value.handle))


def event_time(schema: types.StructType) -> int | None:
    """Return the column of a stream that it has a watermark on; None where there is none."""
    for number, column in enumerate(schema.fields):
        if "spark.watermarkDelayMs" in column.metadata:
            return number
    return None


def with_constants(expression: Expression, constants: dict[Expression, int]) -> Expression:
    """Return an expression with what depends on parameters alone replaced by constants' numbers.

    These are taken into ``constants`` as they come.
    """
    indexes = [node.index for node in expression.walk() if isinstance(node, Argument)]
    if indexes and max(indexes) < 0:
        over_parameters = with_arguments(
            expression, lambda argument: Argument(-1 - argument.index, argument.type)
        )
        number = constants.setdefault(over_parameters, len(constants))
        return Argument(-1 - number, type_of(expression))
    if not indexes or min(indexes) >= 0:
        return expression
    return with_children(expression, lambda child: with_constants(child, constants))


def _within(argument: Argument) -> Expression:
    """Return a column by its number in its input; a parameter as it is."""
    if argument.index < 0:
        return argument
    return Argument(argument.index % MOST_COLUMNS, argument.type)


def _canonical(node: CatalystNode, places: Mapping[int, tuple[int, int]]) -> str:
    if node.name == "AttributeReference":
        identity = node.fields["exprId"]
        number = int(identity["id"]) if isinstance(identity, dict) else -1
        place = places.get(number)
        return f"{place[0]}.{place[1]}" if place else str(node.fields["name"])
    fields = {k: v for k, v in node.fields.items() if k not in {"exprId", "qualifier"}}
    inner = ", ".join(_canonical(child, places) for child in node.children)
    return f"{node.name}{sorted(fields.items(), key=str)}({inner})"


def _name_of(node: str) -> str:
    return {
        "Aggregate": "an aggregate",
        "GlobalLimit": "LIMIT",
        "LocalLimit": "LIMIT",
        "Sort": "ORDER BY",
        "Distinct": "DISTINCT",
        "Window": "a window function",
        "Union": "UNION",
        "Generate": "explode",
        "LocalRelation": "a condition that is never true",
        "Expand": "several groupings",
    }.get(node, f"Spark's {node}")


def _no_function(name: str) -> DeclinedError:
    if name.startswith(PARAMETER):
        return not_understood(f"the parameter {name.removeprefix(PARAMETER)} in the SELECT list")
    return not_understood(f"the Python function {name} in the SELECT list")
