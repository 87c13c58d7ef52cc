"""From the plan of a query to a standing query: selections, edges, windows and outputs.

Over 450 lines: all four are read by one reader, with the same names, inputs and functions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import types

from eddyline import catalyst
from eddyline.blocks.column_types import arrow_type
from eddyline.blocks.decline import DeclinedError, not_understood
from eddyline.blocks.filter_block import SessionSettings
from eddyline.catalyst import Analyst, CatalystExpression, Plan
from eddyline.errors import NotShareableError
from eddyline.expressions import (
    And,
    Argument,
    Comparison,
    ComparisonOperator,
    Expression,
    reason_not_to_evaluate,
    with_arguments,
)
from eddyline.planner.read.chains import ExpressionId, FilterLink, Tree, read_link
from eddyline.planner.read.definitions import Definitions, FunctionResult
from eddyline.planner.read.expression_details import ExpressionDetails
from eddyline.planner.read.throwing import may_throw
from eddyline.planner.read.translation import CatalystNode, translate
from eddyline.standing.aggregate_nodes import (
    AggregateNodes,
    aggregate_in,
    is_in_window,
    sliding_windows,
)
from eddyline.standing.aggregate_reading import AggregateReader
from eddyline.standing.called_functions import CalledFunctions
from eddyline.standing.derivation import Derivation, DerivedColumns
from eddyline.standing.described_outputs import described, is_column, meaning, shown_name
from eddyline.standing.engine.join_conditions import MOST_COLUMNS, streams_in
from eddyline.standing.engine.shared_query import Edge, SharedQuery, TimeBound, edge
from eddyline.standing.existences import ANTI, EXISTENCE, ONE_SIDED, SEMI
from eddyline.standing.markers import PARAMETER
from eddyline.standing.parameter_constants import with_constants
from eddyline.standing.query_template import QueryTemplate
from eddyline.standing.shown_parameters import ShownParameters, attributes_in
from eddyline.standing.standing_terms import StandingTerms
from eddyline.standing.time_bounds import (
    Sides,
    absence_of,
    event_time,
    no_farther_apart,
    time_bound,
)
from eddyline.standing.written_parameters import ParameterInsideError

_PLAIN: Final = frozenset({"INNER", "CROSS"})

_WAITING: Final = frozenset({ANTI, SEMI})
"""Joins that are known when nothing can come any more on their right side."""

_OTHER_JOINS: Final = {
    EXISTENCE: "EXISTS or IN about events, inside of OR or CASE: add a query for each side of OR, "
    "or join the stream",
    "LEFT OUTER": "a LEFT JOIN: write JOIN for what has a match, and NOT EXISTS (SELECT … WHERE … "
    "AND b.time BETWEEN …) or NOT FOLLOWED BY for what has none",
    "RIGHT OUTER": "a RIGHT JOIN: write JOIN for what has a match, and NOT EXISTS or NOT FOLLOWED "
    "BY for what has none",
    "FULL OUTER": "a FULL JOIN: write JOIN for what has a match, and NOT EXISTS or NOT FOLLOWED BY "
    "for what has none",
}
"""What to write in the place of further kinds of joins."""


@dataclass(frozen=True)
class ReadQuery:
    """A query that was read: what is kept, and its outputs in the JVM.

    These are fetched when a batch asks for them: for a query that is added among others that put
    out the same they never are, which saves two thirds of the calls into the JVM.
    """

    template: QueryTemplate
    fetch_columns: Callable[[], tuple[tuple[CatalystExpression, ...], ...]]
    fetch_outputs: Callable[[], tuple[CatalystExpression, ...]]
    native: tuple[CatalystExpression, ...] = ()
    """Conditions on what is put out that Spark decides: named expressions like outputs."""
    shown: tuple[tuple[CatalystExpression, str], ...] = ()
    """The attributes of parameters that are shown, and of calls, by the column that their values
    travel in."""

    @cached_property
    def columns(self) -> tuple[tuple[CatalystExpression, ...], ...]:
        """For each input the attributes of its columns."""
        return self.fetch_columns()

    @cached_property
    def outputs(self) -> tuple[CatalystExpression, ...]:
        """What is put out: named expressions over ``columns`` and ``shown``."""
        return self.fetch_outputs()

    @cached_property
    def raising(self) -> tuple[bool, ...]:
        """Whether computing each output may raise an error."""
        return tuple(
            not is_column(put_out.meaning) and may_throw(Tree.of(output))
            for put_out, output in zip(self.template.outputs, self.outputs, strict=True)
        )


_NOW: Final = (
    "the current time and date would be those when the query was added, for all events; let the "
    "stream have them, as in events.withColumn('now', F.current_timestamp()), which is the time of "
    "each micro-batch"
)


def read_query(
    analyst: Analyst,
    sql: str,
    schemas: Mapping[str, types.StructType],
    tables: Collection[str],
    parameters: Mapping[str, types.DataType],
    settings: SessionSettings,
    derived: DerivedColumns,
    *,
    shown: str,
    keep: int | None,
) -> ReadQuery:
    """Analyze a query over streams and tables, and read what it selects, joins and puts out.

    In ``sql`` each parameter is a call of the function that stands for it; ``shown`` is how its
    user wrote it, and ``keep`` what the query has beside. What Spark has to compute goes into
    ``derived``. Raises PySpark's own errors for what is no valid query, and NotShareableError for
    a valid one that cannot stand.
    """
    plan, schema, asks_for_now = analyst.optimized(sql)
    if asks_for_now:
        raise NotShareableError(f"{_NOW}: {shown}")
    reader = _Reader(analyst, schemas, parameters, settings, derived, keep, frozenset(tables))
    try:
        reader.take_inputs(plan)
        nodes = aggregate_in(plan)
        reader.read(plan if nodes is None else nodes.below)
        used = frozenset(reader.inputs) & reader.tables
        if len(used) == len(set(reader.inputs)):
            raise not_understood("a query that reads no stream")
        return reader.result(shown, plan, nodes, schema, used)
    except DeclinedError as declined:
        left = declined.left_to_spark()
        message = f"cannot stand: {left.detail or left.why}: {shown}"
        if reader.derivation.refusals and reader.derivation.inside:
            inside = frozenset(reader.derivation.inside)
            raise ParameterInsideError(message, inside) from declined
        raise NotShareableError(message) from declined


class _NativeCondition(NamedTuple):
    """A condition on results that Spark decides, and why nobody else does."""

    tree: Tree
    declined: DeclinedError


@dataclass(slots=True)
class _Reader:
    """Reads one plan, from the bottom up."""

    analyst: Analyst
    schemas: Mapping[str, types.StructType]
    parameters: Mapping[str, types.DataType]
    settings: SessionSettings
    derived: DerivedColumns
    keep: int | None
    tables: frozenset[str]
    inputs: list[str] = field(default_factory=list)
    leaves: list[Plan] = field(default_factory=list)
    places: dict[ExpressionId, tuple[int, int]] = field(default_factory=dict)
    arguments: dict[ExpressionId, Argument] = field(default_factory=dict)
    conjuncts: list[Tree] = field(default_factory=list)
    absent: int | None = None
    """The input of which no row must fit, of an anti-join, or some row, of a semi-join."""
    found: bool = False
    """Whether a row of it must fit."""
    of_match: list[Tree] = field(default_factory=list)
    """What is asked of a row that fits, where it might not be about that input."""
    existences: dict[ExpressionId, Expression] = field(default_factory=dict)
    """What attributes are that say whether a row of tables fits."""
    native_of_rows: list[_NativeCondition] = field(default_factory=list)
    native: list[CatalystExpression] = field(default_factory=list)
    """What Spark decides of joined rows, and of results."""
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

    def read(self, plan: Plan) -> None:
        """Take in a node and all below it."""
        name = catalyst.class_name(plan).rpartition(".")[2]
        if self.analyst.table_of(plan) is not None:
            return
        if name == "Join":
            self._join(plan)
        elif name == "Expand":
            self.read(catalyst.children(plan)[0])
            self.definitions.define(sliding_windows(plan), guarded=False)
        else:
            link, deterministic = read_link(plan)
            if link is None:
                raise not_understood(_name_of(name))
            if not deterministic:
                raise not_understood(
                    "an expression that is not deterministic, such as rand() or "
                    "input_file_name(): make it a column of the stream's DataFrame"
                )
            self.read(catalyst.children(plan)[0])
            if isinstance(link, FilterLink):
                named = self.definitions.named
                self.conjuncts += [c for c in link.conjuncts if not is_in_window(c, named)]
            else:
                self.definitions.define(link, guarded=False)

    def result(
        self,
        sql: str,
        plan: Plan,
        nodes: AggregateNodes | None,
        schema: types.StructType,
        tables: frozenset[str],
    ) -> ReadQuery:
        """Return what was read: of joined rows, or of what ``nodes`` aggregate of them."""
        constants = self.constants
        query = self._query(sql, constants)
        aggregated, self.aggregates = None, nodes is not None
        if nodes is None:
            read = self._described(plan, len(schema.fields))
            meanings = [meaning for meaning, _ in read]
            self.native = [self._native(condition.tree) for condition in self.native_of_rows]
            used = frozenset(place for _, places in read for place in places)
            used |= {place for value in self.native for place in self._places(value)}
            names = {i[0]: f"{number}.{column}" for i, (number, column) in self.places.items()}
            fetch_columns, fetch_outputs = self._columns, lambda: self._outputs(plan)
        else:
            if self.absent is not None:
                raise not_understood(
                    "an aggregate of what nothing follows, or of what exists: select the events, "
                    "and count what comes"
                )
            if self.native_of_rows:
                raise self.native_of_rows[0].declined
            reader = AggregateReader(self, nodes, sql)
            static = [number for number in query.selections if self.inputs[number] in tables]
            aggregated, of_groups = reader.read(query, static)
            having, self.native = reader.having()
            if having is not None:
                aggregated = replace(aggregated, having=with_constants(having, constants))
            columns = [shown_name(column.name) for column in schema.fields]
            aggregated = replace(aggregated, names=reader.names(plan, columns))
            outputs = tuple(reader.outputs(plan))
            names = {
                catalyst.identity_number(attribute): f"0.{n}"
                for n, attribute in enumerate(of_groups)
            }
            meanings = [meaning(output, names | self._names()) for output in outputs]
            used = frozenset((place.relation, place.column) for place in aggregated.used)
            fetch_columns, fetch_outputs = lambda: (of_groups,), lambda: outputs
        native = [meaning(condition, names | self._names()) for condition in self.native]
        template = _with_derived(
            self.derivation,
            QueryTemplate(
                sql,
                tuple(self.inputs),
                query,
                tuple(constants),
                tuple((name, kind.json()) for name, kind in self.parameters.items()),
                described(schema, meanings),
                tables,
                self.calls.contents.functions,
                self.settings,
                used,
                aggregated,
                self.shown.shown,
                self.called.called,
                self.keep,
                native=tuple(native),
            ),
        )
        beside = self.shown.columns + self.called.columns
        return ReadQuery(template, fetch_columns, fetch_outputs, tuple(self.native), beside)

    def _query(  # noqa: C901 - one way for each kind of condition
        self, sql: str, constants: dict[Expression, int], *, derive_keys: bool = False
    ) -> SharedQuery:
        """Return what is asked of the inputs.

        Where no columns join them, the sides of an equality are made columns of their streams, as
        ``derive_keys`` says.
        """
        self.native_of_rows.clear()
        selections: dict[int, list[Expression]] = {number: [] for number in range(len(self.inputs))}
        edges: set[Edge] = set()
        streams = [n for n, name in enumerate(self.inputs) if name not in self.tables]
        bounds = no_farther_apart(self.keep, streams)
        conditions: list[Expression] = []
        sides = Sides(self.place, self.definitions.named, self.is_event_time)
        of_match: list[Expression] = []
        every = [*((tree, False) for tree in self.conjuncts), *((t, True) for t in self.of_match)]
        for tree, matches in every:
            bound = self._bound(tree, sides)
            if bound is not None and (not matches or self.absent in {bound.early, bound.late}):
                bounds.append(bound)
                continue
            try:
                predicate = self.translated(tree)
            except DeclinedError as declined:
                if matches or not self._is_native(tree):
                    raise
                self.native_of_rows.append(_NativeCondition(tree, declined))
                continue
            if matches and not self._is_absent(predicate):
                of_match.append(with_constants(predicate, constants))
                continue
            join = self._edge(predicate)
            if join is None and derive_keys:
                join = self._derived_edge(tree)
            if join is not None:
                edges.add(join)
                continue
            mask = streams_in(predicate)
            if mask & (mask - 1):
                conditions.append(with_constants(predicate, constants))
                continue
            number = max(mask.bit_length() - 1, 0)  # the first for what is about none
            local = with_arguments(predicate, _within)
            selections[number].append(with_constants(local, constants))
        query = SharedQuery(
            {
                number: And(tuple(terms)) if len(terms) > 1 else terms[0] if terms else None
                for number, terms in selections.items()
            },
            frozenset(edges),
            tuple(bounds),
            tuple(conditions),
            absence_of(self.absent, streams, bounds, tuple(of_match), found=self.found),
        )
        try:
            _ = query.shape, query.present
        except ValueError as error:
            if not derive_keys:
                return self._query(sql, constants, derive_keys=True)
            raise NotShareableError(f"{self._why_not_joined(edges)}: {sql}") from error
        return query

    def _derived_edge(self, tree: Tree) -> Edge | None:
        """Return the edge that an equality of values of two streams is, each made a column."""
        if tree.name != "EqualTo":
            return None
        sides = []
        for side in tree.children:
            try:
                value = self.translated(side)
            except DeclinedError:
                return None
            if not isinstance(value, Argument):
                value = self.derivation.derived(side) or value
            sides.append(value)
        return self._edge(Comparison(ComparisonOperator.EQUAL, *sides))

    def _why_not_joined(self, edges: Collection[Edge]) -> str:
        """Return why the inputs are not joined as they have to be, and what to do."""
        trees = [*self.conjuncts, *self.of_match]
        if self.absent is not None and any(tree.name == "EqualNullSafe" for tree in self.of_match):
            return (
                "EXCEPT, INTERSECT and semi or anti joins by <=>: write the condition into WHERE, "
                "or EXISTS, NOT EXISTS with an equality and a window"
            )
        if self.absent is not None and any(tree.name == "Or" for tree in self.of_match):
            return (
                "NOT IN about events, or OR in what says which of them are meant: write NOT EXISTS "
                "(SELECT … WHERE b.key = a.key AND b.time BETWEEN …)"
            )
        if any(tree.name == "EqualNullSafe" for tree in trees):
            return (
                "streams are joined by =, and <=> is none, as it has NULLs meet: write "
                "coalesce(a.x, '') = coalesce(b.x, ''), with a value that no event has"
            )
        joined = {place.relation for edge in edges for place in edge}
        alone = [name for number, name in enumerate(self.inputs) if number not in joined]
        if len(self.inputs) > 1 and alone:
            return (
                f"nothing says which rows of {alone[0]} belong to which of the others: join all "
                "streams and tables by an equality, as in ON a.key = b.key, of values that are "
                "computed without errors (try_cast, try_add); every event with every other would "
                "be too many"
            )
        if self.absent is not None:
            return (
                "what must not be there is to be compared with columns that join the others, "
                "or with those of one of them: leave out the other equalities"
            )
        return (
            "the streams of a query are joined by equalities between all of them, of two columns "
            "of one type each: as in ON a.key = b.key AND b.key = c.key"
        )

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
        for child in catalyst.children(plan)[: 1 if self._is_about_tables(plan) else None]:
            yield from self._leaves(child)

    def _is_about_tables(self, plan: Plan) -> bool:
        """Tell whether a node joins rows with those of tables only to know whether one fits."""
        if catalyst.class_name(plan).rpartition(".")[2] != "Join":
            return False
        if catalyst.join_type(plan) not in ONE_SIDED:
            return False
        inside = {name for name, _ in self._leaves(catalyst.children(plan)[1])}
        return bool(inside) and inside <= self.tables

    def _input(self, table: str, plan: Plan) -> None:
        number = len(self.inputs)
        self.inputs.append(table)
        self.leaves.append(plan)
        numbers = catalyst.output_numbers(plan)
        for position, (numbered, column) in enumerate(
            zip(numbers, self.schemas[table].fields, strict=True)
        ):
            identity = _identity(numbered)
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
        if self._is_about_tables(plan):
            self._exists(plan, kind)
            return
        if kind not in _PLAIN and kind not in _WAITING:
            raise not_understood(_OTHER_JOINS.get(kind, f"a {kind.lower()} join"))
        if kind in _WAITING:
            self._take_absent(catalyst.children(plan)[1])
            self.found = kind == SEMI
        for child in catalyst.children(plan):
            self.read(child)
        condition = catalyst.join_condition(plan)
        if condition is not None:
            conjuncts = self.of_match if kind in _WAITING else self.conjuncts
            conjuncts += Tree.of(condition).terms("And")

    def _exists(self, plan: Plan, kind: str) -> None:
        """Take whether a row of tables fits."""
        left, right = catalyst.children(plan)
        self.read(left)
        condition = catalyst.join_condition(plan)
        if condition is None:
            raise not_understood(
                "EXISTS of a table, whatever the event is: compare a column of the stream in it"
            )
        found = self.derivation.existence(right, Tree.of(condition), self.analyst.table_of)
        whole = condition if kind != EXISTENCE else catalyst.existence(plan)
        attribute = catalyst.new_attribute("exists", whole) if kind != EXISTENCE else whole
        self.existences[Tree.of(attribute).identity] = found
        if kind != EXISTENCE:
            asked = attribute if kind == SEMI else catalyst.negation(attribute)
            self.conjuncts.append(Tree.of(asked))

    def _take_absent(self, plan: Plan) -> None:
        """Take the right side of an anti-join: one stream, and conditions on it alone."""
        leaves = list(self._leaves(plan))
        if self.absent is not None:
            raise not_understood(
                "more than one thing that must be there, or must not (EXISTS, IN, EXCEPT and their "
                "opposites): add a query for each"
            )
        if len(leaves) != 1 or leaves[0][0] in self.tables:
            raise not_understood(
                "EXISTS, IN, EXCEPT or an anti join about anything but one stream, or tables alone"
            )
        first = catalyst.output_numbers(leaves[0][1])[0]
        self.absent = self.places[_identity(first)][0]

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
            refusals = self.derivation.refusals or ["a Python function in an aggregate"]
            raise not_understood(refusals[0])
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

    def place(self, tree: Tree) -> tuple[int, int] | None:
        """Return input and column of an attribute; None for what is none."""
        known = self.arguments.get(tree.identity) if tree.name == "AttributeReference" else None
        return None if known is None else divmod(known.index, MOST_COLUMNS)

    def is_event_time(self, number: int, column: int) -> bool:
        return event_time(self.schemas[self.inputs[number]]) == column

    def _bound(self, tree: Tree, sides: Sides) -> TimeBound | None:
        """Return the window that a condition is about; None for one that is about values only."""
        try:
            return time_bound(tree, sides)
        except DeclinedError:
            try:
                self.translated(tree)
            except DeclinedError:
                pass
            else:
                return None  # times that bound no state are compared as numbers are
            raise

    def _is_absent(self, predicate: Expression) -> bool:
        """Tell whether a condition is about the input of which no row must fit."""
        return self.absent is not None and bool(streams_in(predicate) >> self.absent & 1)

    def _edge(self, predicate: Expression) -> Edge | None:
        match predicate:
            case Comparison(
                ComparisonOperator.EQUAL, Argument(left, kind), Argument(right, other)
            ) if left >= 0 and right >= 0 and kind == other:
                one, two = divmod(left, MOST_COLUMNS), divmod(right, MOST_COLUMNS)
                return edge(one, two) if one[0] != two[0] else None
        return None

    def _described(self, plan: Plan, outputs: int) -> list[tuple[str, list[tuple[int, int]]]]:
        """Return what each output means, and the inputs' columns that it is made of.

        For a column, under whatever name, this is known without asking the JVM.
        """
        names = {i[0]: f"{number}.{column}" for i, (number, column) in self.places.items()}
        descriptions = []
        for index, number in zip(range(outputs), catalyst.output_numbers(plan), strict=True):
            identity = _identity(number)
            alias = self.definitions.known_alias(identity)
            if alias is not None and alias.name == "AttributeReference":
                identity = self.definitions.named(alias).identity
            place = self.places.get(identity)
            if place is not None:
                descriptions.append((names[identity[0]], [place]))
            else:
                output = self._output(Tree.of(catalyst.output(plan, index)))
                descriptions.append((meaning(output, names | self._names()), self._places(output)))
        return descriptions

    def _columns(self) -> tuple[tuple[CatalystExpression, ...], ...]:
        """Return for each input the attributes of its columns."""
        return tuple(map(catalyst.outputs, self.leaves))

    def _outputs(self, plan: Plan) -> tuple[CatalystExpression, ...]:
        """Return the outputs of a plan in terms of the inputs' columns."""
        return tuple(self._output(Tree.of(attribute)) for attribute in catalyst.outputs(plan))

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
            and not catalyst.holds_subquery(base.handle)
        )

    def _native(self, tree: Tree) -> CatalystExpression:
        """Return a condition as a named expression over the inputs' columns."""
        value = self.definitions.over_base(tree)
        for attribute in attributes_in(Tree.of(value)):
            result = self.definitions.results.get(attribute.identity)
            if result is not None:
                self.show(attribute, result)
        return catalyst.named(value, "condition")

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


def _with_derived(derivation: Derivation, template: QueryTemplate) -> QueryTemplate:
    """Return a template with the derived columns that it asks about."""
    asked = set(template.used) | {place for edge in template.query.edges for place in edge}
    for number, columns in enumerate(template.selected):
        asked |= {(number, column) for column in columns}
    return replace(template, derived=derivation.among(asked))


def _identity(number: int) -> ExpressionId:
    """Return the identity of an attribute of this JVM."""
    return number, catalyst.session_identity()


def _within(argument: Argument) -> Expression:
    """Return a column by its number in its input; a parameter as it is."""
    if argument.index < 0:
        return argument
    return Argument(argument.index % MOST_COLUMNS, argument.type)


def _name_of(node: str) -> str:
    return _NODES.get(node, f"{node.upper()}, as Spark calls it: select and join events only")


_LIMIT: Final = "LIMIT: results have no end; take so many of them in the sink, or set max_results"

_NODES: Final = {
    "Aggregate": "an aggregate of aggregates (as PIVOT is), or below a join: write one aggregate a "
    "query, and aggregate what it puts out in the sink or in a further stream",
    "GlobalLimit": _LIMIT,
    "LocalLimit": _LIMIT,
    "Sort": "ORDER BY: results come as events do; sort them in the sink",
    "Distinct": "DISTINCT: leave it out, or GROUP BY window(time, '1 hour'), …",
    "Window": "a window function (OVER): write an aggregate with GROUP BY window(time, …), max_by "
    "or min_by for the greatest and least, or FOLLOWED BY for the event before or after",
    "Union": "UNION: add a query for each of its parts",
    "Generate": "explode: write exists(tags, x -> …) or array_contains(tags, …), or explode in the "
    "stream's own DataFrame",
    "LocalRelation": "a condition that is never true",
    "Expand": "several groupings: add a query for each of them",
    "Pivot": "PIVOT: write count(*) FILTER (WHERE …) for each value",
    "Sample": "TABLESAMPLE: write a condition such as crc32(key) % 10 = 0",
    "Deduplicate": "DISTINCT: leave it out, or GROUP BY window(time, '1 hour'), …",
}
"""What nodes of plans are to those who write queries, and what to write instead."""
