"""From the plan of a query to a standing query: selections, edges, windows and outputs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, NamedTuple

from pyspark.sql import types

from eddyline import catalyst
from eddyline.blocks.decline import DeclinedError, not_understood
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.errors import NotShareableError
from eddyline.expressions import (
    And,
    Argument,
    Comparison,
    ComparisonOperator,
    Expression,
    with_arguments,
)
from eddyline.planner.read.chains import FilterLink, Tree, read_link
from eddyline.planner.read.throwing import may_throw
from eddyline.standing.aggregate_nodes import (
    AggregateNodes,
    is_in_window,
    sliding_windows,
)
from eddyline.standing.aggregate_reading import AggregateReader
from eddyline.standing.computed_parameters import ComputedSource
from eddyline.standing.derivation import Derivation
from eddyline.standing.described_outputs import described, is_column, meaning, shown_name
from eddyline.standing.engine.join_conditions import MOST_COLUMNS, streams_in
from eddyline.standing.engine.shared_query import Edge, SharedQuery, TimeBound, edge
from eddyline.standing.existences import ANTI, EXISTENCE, SEMI
from eddyline.standing.parameter_constants import with_constants
from eddyline.standing.query_inputs import identity_of
from eddyline.standing.query_template import QueryTemplate
from eddyline.standing.query_terms import QueryTerms
from eddyline.standing.refused_plans import OTHER_JOINS, name_of_node, why_not_joined
from eddyline.standing.step_tree import WindowStep
from eddyline.standing.time_bounds import (
    Sides,
    absence_of,
    no_farther_apart,
    time_bound,
)
from eddyline.standing.window_steps import PartOfStep

_PLAIN: Final = frozenset({"INNER", "CROSS"})

_WAITING: Final = frozenset({ANTI, SEMI})
"""Joins that are known when nothing can come any more on their right side."""


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
    step: WindowStep | None = None
    """What Spark makes of ``outputs`` then, window by window, if that is anything."""
    parts: tuple[ReadQuery, ...] = ()
    """What the step is made of: this one, and the others that it joins, by their numbers."""

    computed: tuple[ComputedSource, ...] = ()
    """The parameters that Spark computes of others."""

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


class ReadPart(NamedTuple):
    """A part of what a step is made of, and what says all of it."""

    query: ReadQuery
    said: PartOfStep | None


class _NativeCondition(NamedTuple):
    """A condition on results that Spark decides, and why nobody else does."""

    tree: Tree
    declined: DeclinedError


@dataclass(slots=True, kw_only=True)
class PlanReader(QueryTerms):
    """Reads one plan, from the bottom up."""

    keep: int | None
    conjuncts: list[Tree] = field(default_factory=list)
    found: bool = False
    """Whether some row of the absent input must fit, and not none."""
    of_match: list[Tree] = field(default_factory=list)
    """What is asked of a row that fits, where it might not be about that input."""
    native_of_rows: list[_NativeCondition] = field(default_factory=list)
    native: list[CatalystExpression] = field(default_factory=list)
    """What Spark decides of joined rows, and of results."""

    def read(self, plan: Plan) -> None:
        """Take in a node and all below it."""
        name = catalyst.class_name(plan).rpartition(".")[2]
        if self.analyst.table_of(plan) is not None:
            return
        if name == "Join":
            self._join(plan)
        elif name == "Generate":
            self.read(catalyst.children(plan)[0])
        elif name == "Expand":
            self.read(catalyst.children(plan)[0])
            self.definitions.define(sliding_windows(plan), guarded=False)
        else:
            link, deterministic = read_link(plan)
            if link is None:
                raise not_understood(name_of_node(name))
            if not deterministic:
                raise not_understood(
                    "an expression that is not deterministic, such as rand() or "
                    "input_file_name(): make it a column of the stream's DataFrame"
                )
            self.read(catalyst.children(plan)[0])
            if isinstance(link, FilterLink):
                named, zone = self.definitions.named, self.settings.time_zone
                self.conjuncts += [c for c in link.conjuncts if not is_in_window(c, named, zone)]
            else:
                self.definitions.define(link, guarded=False)

    def result(
        self,
        sql: str,
        plan: Plan,
        nodes: AggregateNodes | None,
        schema: types.StructType,
        tables: frozenset[str],
        *,
        in_step: bool,
    ) -> ReadPart:
        """Return what was read: of joined rows, or of what ``nodes`` aggregate of them.

        If ``in_step``, of results with the columns of ``schema`` that Spark makes of it.
        """
        constants, reader = self.constants, None
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
            named = catalyst.output_names(plan) if in_step else schema.names
            columns = list(map(shown_name, named))
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
        said = None
        if in_step and reader is not None and aggregated is not None:
            texts = (f"{self.inputs} {aggregated.aggregation}", *meanings, *native)
            said = PartOfStep(reader, texts)
            meanings = [f"above windows: {n}" for n, _ in enumerate(schema.fields)]
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
                computed=tuple(source.names for source in self.derivation.computed.values()),
                exploded=tuple(
                    self.exploded.streams[name]
                    for name in dict.fromkeys(self.inputs)
                    if name in self.exploded.streams
                ),
            ),
        )
        beside = self.shown.columns + self.called.columns
        computed, asked = tuple(self.derivation.computed.values()), tuple(self.native)
        query_read = ReadQuery(
            template, fetch_columns, fetch_outputs, asked, beside, computed=computed
        )
        return ReadPart(query_read, said)

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
            why = why_not_joined(self.conjuncts, self.of_match, self.absent, self._alone(edges))
            raise NotShareableError(f"{why}: {sql}") from error
        return query

    def _alone(self, edges: Collection[Edge]) -> list[str]:
        """Return the inputs that no edge joins with others."""
        joined = {place.relation for edge in edges for place in edge}
        alone = [name for number, name in enumerate(self.inputs) if number not in joined]
        return alone if len(self.inputs) > 1 else []

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

    def _join(self, plan: Plan) -> None:
        kind = catalyst.join_type(plan)
        if self._is_about_tables(plan):
            self._exists(plan, kind)
            return
        if kind not in _PLAIN and kind not in _WAITING:
            raise not_understood(OTHER_JOINS.get(kind, f"a {kind.lower()} join"))
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
        if len(leaves) != 1 or leaves[0].table in self.tables:
            raise not_understood(
                "EXISTS, IN, EXCEPT or an anti join about anything but one stream, or tables alone"
            )
        self.absent = self.places[identity_of(leaves[0].numbers[0])][0]

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


def _with_derived(derivation: Derivation, template: QueryTemplate) -> QueryTemplate:
    """Return a template with the derived columns that it asks about."""
    asked = set(template.used) | {place for edge in template.query.edges for place in edge}
    for number, columns in enumerate(template.selected):
        asked |= {(number, column) for column in columns}
    return replace(template, derived=derivation.among(asked))


def _within(argument: Argument) -> Expression:
    """Return a column by its number in its input; a parameter as it is."""
    if argument.index < 0:
        return argument
    return Argument(argument.index % MOST_COLUMNS, argument.type)
