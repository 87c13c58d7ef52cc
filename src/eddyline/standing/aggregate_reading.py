"""From an aggregate in a plan to what standing queries aggregate, keep and put out.

Over 450 lines: windows, keys, functions and HAVING are said in terms of one another's columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import pyarrow as pa

from eddyline import catalyst
from eddyline.blocks.column_types import arrow_type, can_travel
from eddyline.blocks.decline import DeclinedError, not_understood
from eddyline.blocks.filter_block import SessionSettings
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.engine.join_graph import Place
from eddyline.expressions import (
    And,
    Argument,
    Call,
    Case,
    Expression,
    Literal,
    is_floating,
    is_integer,
    reason_not_to_evaluate,
    type_of,
)
from eddyline.planner.read.chains import ExpressionId, FilterLink, ProjectLink, Tree
from eddyline.planner.read.definitions import Definitions, FunctionResult
from eddyline.planner.read.expression_details import ExpressionDetails
from eddyline.planner.read.translation import CatalystNode, translate
from eddyline.standing.aggregate_nodes import AggregateNodes, Windowed, truncated, windowed
from eddyline.standing.aggregates_of_spark import KnownAggregate, known_aggregate
from eddyline.standing.described_outputs import shown_name
from eddyline.standing.engine.aggregation.aggregate_functions import (
    BITS,
    CHOOSING,
    COUNTED,
    Aggregate,
    AggregateFunction,
    Overflow,
)
from eddyline.standing.engine.aggregation.alike_values import can_be_grouped
from eddyline.standing.engine.aggregation.grouping import Aggregation, Grouping
from eddyline.standing.engine.aggregation.time_window import TimeWindow
from eddyline.standing.engine.shared_query import NEVER, SharedQuery
from eddyline.standing.engine.windows import farthest
from eddyline.standing.markers import PARAMETER
from eddyline.standing.query_template import AggregatedRows
from eddyline.standing.window_bounds import Bound, WindowBound, field_of

_OVERFLOWS: Final = {
    "ANSI": Overflow.FAILS,
    "LEGACY": Overflow.WRAPS,
    "TRY": Overflow.IS_NULL,
}

_NO_WINDOW: Final = (
    "an aggregate that never ends: group by window(t, …) of a time t with a watermark, as in "
    "GROUP BY window(time, '1 hour'), …"
)

_PROPOSED: Final = {
    "Hour": "1 hour",
    "Minute": "1 minute",
    "Second": "1 second",
    "DayOfMonth": "1 day",
    "DayOfWeek": "1 day",
    "DayOfYear": "1 day",
    "WeekOfYear": "7 days",
    "Month": "1 day",
    "Year": "1 day",
    "TruncDate": "1 day",
    "UnixTimestamp": "1 second",
}
"""What to write in the place of groups by parts of times, by Spark's names of these."""

_LENGTHS: Final = frozenset({"second", "minute", "hour", "day"})

_BOUNDS: Final = 2
"""Arguments in HAVING that the window has, which is one column: its start and its end."""


class ResultRowReader(Protocol):
    """What has read the part of a plan below its aggregate."""

    definitions: Definitions
    settings: SessionSettings

    def translated(self, tree: Tree) -> Expression:
        """Return an expression over the inputs' columns."""
        ...

    def in_struct(self, trees: Sequence[Tree], *, together: bool) -> Expression:
        """Return a struct of expressions; ``together`` says whether one NULL makes it NULL."""
        ...

    def place(self, tree: Tree) -> tuple[int, int] | None:
        """Return input and column of an attribute."""
        ...

    def is_event_time(self, number: int, column: int) -> bool:
        """Tell whether a column is the one that its input has a watermark on."""
        ...

    def result_of(self, result: FunctionResult) -> Expression:
        """Return the call of a function, or the parameter that a function stands for."""
        ...

    def show(self, attribute: Tree, result: FunctionResult) -> None:
        """Take an attribute that an output is made of: it stands for a parameter."""
        ...


class AggregateReader:
    """Reads an aggregate and what stands above it."""

    def __init__(self, rows: ResultRowReader, nodes: AggregateNodes, sql: str) -> None:
        """Take what has read the rows, and the query that they are of."""
        self._rows = rows
        self._sql = sql
        self._nodes = nodes
        self._keys: list[Tree] = []
        self._functions: dict[Aggregate, Tree] = {}
        self._columns: tuple[CatalystExpression, ...] = ()
        self._group_columns: dict[ExpressionId, int] = {}
        self._size: int | None = None
        """That of windows, in microseconds; None where they are sessions."""
        self._truncations: dict[ExpressionId, tuple[Tree, Tree]] = {}
        """Groups that are said by a truncated time, and that time, by their attributes."""
        values = tuple(map(Tree.of, catalyst.aggregated(nodes.aggregate)))
        self._values = values
        # What attributes above the rows stand for: in the end, groups and functions.
        self._above = Definitions({})
        for link in (ProjectLink(nodes.aggregate, values), *nodes.above):
            self._above.define(link, guarded=False)

    def read(
        self, query: SharedQuery, tables: Sequence[int]
    ) -> tuple[AggregatedRows, tuple[CatalystExpression, ...]]:
        """Return what is aggregated, and an attribute for each column of the outcome.

        ``tables`` are the inputs that are no streams. What HAVING says is still missing.
        """
        grouping, window = self._grouping(query, tables)
        if isinstance(grouping.window, TimeWindow):
            self._size = grouping.window.size
        for value in self._values:
            self._collect(value)
        keys = [(f"key {n}", key) for n, key in enumerate(self._keys)]
        functions = [
            (f"aggregate {n}", function) for n, function in enumerate(self._functions.values())
        ]
        like = window.handle
        if window.identity in self._truncations:
            time = self._truncations[window.identity][1].handle
            like = catalyst.struct_of([time, time], ["start", "end"])
        self._columns = (
            catalyst.new_attribute("window", like),
            *(catalyst.new_attribute(name, tree.handle) for name, tree in [*keys, *functions]),
        )
        kinds = tuple(map(catalyst.data_type, self._columns))
        aggregation = Aggregation(grouping, tuple(self._functions))
        return AggregatedRows(aggregation, None, kinds), self._columns

    def having(self) -> tuple[Expression | None, list[CatalystExpression]]:
        """Return which rows of aggregates are results, and what Spark decides of that."""
        terms, native = [], []
        for link in self._nodes.above:
            if not isinstance(link, FilterLink):
                continue
            for conjunct in link.conjuncts:
                try:
                    terms.append(self._condition(conjunct))
                except DeclinedError:
                    if not self._is_native(conjunct):
                        raise
                    native.append(catalyst.named(self._rebuilt(conjunct), "condition"))
        if not terms:
            return None, native
        return And(tuple(terms)) if len(terms) > 1 else terms[0], native

    def _is_native(self, tree: Tree) -> bool:
        """Tell whether Spark alone can decide a condition: without Python functions."""
        results = map(self._above.results.get, self._above.results_in(tree))
        names = [str(result.function.node.fields["name"]) for result in results if result]
        handle = tree.handle
        return all(name.startswith(PARAMETER) for name in names) and catalyst.is_deterministic(
            handle
        )

    def outputs(self, plan: Plan) -> list[CatalystExpression]:
        """Return the outputs of a plan in terms of the columns of aggregates."""
        return [
            catalyst.attribute_like(attribute, self._rebuilt(Tree.of(attribute)))
            for attribute in catalyst.outputs(plan)
        ]

    def names(self, plan: Plan, columns: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Return for each aggregate the columns of a plan that it is, or else its own text."""
        labels: list[list[str]] = [[] for _ in self._functions]
        first = 1 + len(self._keys)
        for attribute, name in zip(catalyst.outputs(plan), columns, strict=True):
            column = self._column(self._named(Tree.of(attribute)))
            if column is not None and column >= first:
                labels[column - first].append(name)
        trees = self._functions.values()
        return tuple(
            tuple(own) or (shown_name(catalyst.pretty(tree.handle)),)
            for own, tree in zip(labels, trees, strict=True)
        )

    def windows(self, plan: Plan) -> dict[ExpressionId, WindowBound]:
        """Return the outputs of a plan that say of which window a row is, and what of it."""
        outputs = map(Tree.of, catalyst.outputs(plan))
        bounds = ((one.identity, self._bound(self._named(one))) for one in outputs)
        return {identity: bound for identity, bound in bounds if bound is not None}

    def _bound(self, tree: Tree) -> WindowBound | None:
        whole = WindowBound(Bound.WHOLE, self._size)
        if tree.name == "GetStructField":
            of_window = self._bound(self._named(tree.children[0])) == whole
            return field_of(whole, int(str(tree.node.fields["ordinal"]))) if of_window else None
        if tree.name == "AttributeReference" and tree.identity in self._truncations:
            return WindowBound(Bound.START, self._size)
        return whole if self._column(tree) == 0 else None

    def _named(self, tree: Tree) -> Tree:
        """Return what an attribute above the aggregate is a name for, through all its names."""
        while self._column(tree) is None and tree.name == "AttributeReference":
            alias = self._above.known_alias(tree.identity)
            if alias is None:
                break
            tree = alias
        return tree

    def _grouping(self, query: SharedQuery, tables: Sequence[int]) -> tuple[Grouping, Tree]:
        """Return how rows are grouped, and the group that is the window."""
        window_group: tuple[Windowed, Tree] | None = None
        keys = []
        groups = list(map(Tree.of, catalyst.grouping(self._nodes.aggregate)))
        meant = [self._rows.definitions.named(group) for group in groups]
        has_window = any(self._windowed(tree) is not None for tree in meant)
        for group, tree in zip(groups, meant, strict=True):
            here = self._windowed(tree)
            if here is None and not has_window and window_group is None:
                here = self._truncated(group, tree)
            if here is None:
                self._group_columns[group.identity] = _BOUNDS - 1 + len(self._keys)
                self._keys.append(group)
                keys.append(self._key(group))
            elif window_group is None:
                if group.identity not in self._truncations:
                    self._group_columns[group.identity] = 0
                window_group = here, group
            else:
                raise not_understood("two windows in one GROUP BY: add a query for each of them")
        if window_group is None:
            raise not_understood(self._no_window(meant))
        (window, time), tree = window_group
        place = self._rows.place(self._rows.definitions.named(time))
        if place is None or not self._rows.is_event_time(*place):
            raise not_understood(
                f"windows of {time.node.fields['name']}, which is no event time: windows are of "
                "the columns that the streams have watermarks on"
            )
        streams = frozenset(query.selections) - frozenset(tables)
        delay = farthest(query.bounds, streams)[place[0]]
        if delay >= NEVER:
            raise not_understood(
                "an aggregate over a join that has no window between the times of its streams: "
                "it never ends"
            )
        return Grouping(window, Place(*place), tuple(keys), delay), tree

    def _windowed(self, tree: Tree) -> Windowed | None:
        return windowed(tree, self._rows.settings.time_zone)

    def _truncated(self, group: Tree, tree: Tree) -> Windowed | None:
        """Return the windows that a group by a truncated event time is, and what it is of them."""
        here = truncated(tree, self._rows.settings.time_zone)
        if here is None:
            return None
        place = self._rows.place(self._rows.definitions.named(here.time))
        if place is None or not self._rows.is_event_time(*place):
            return None
        self._truncations[group.identity] = tree, here.time
        return here

    def _no_window(self, groups: Sequence[Tree]) -> str:
        """Return why an aggregate is refused that has no window, and which one to write."""
        for tree in groups:
            size = _PROPOSED.get(tree.name)
            if tree.name == "TruncTimestamp":
                unit = str(tree.children[0].node.fields.get("value")).lower()
                size = f"1 {unit}" if unit in _LENGTHS else "1 day"
            if tree.name == "Cast" and tree.node.fields.get("dataType") == "date":
                size = "1 day"
            if tree.name == "DateFormatClass":
                size = "1 hour"
            if size is not None:
                return (
                    f"groups by {catalyst.pretty(tree.handle)} never end: write GROUP BY "
                    f"window(time, '{size}') and SELECT window.start, for a time with a watermark"
                )
        if not self._functions_asked():
            return (
                "SELECT DISTINCT, or GROUP BY without a window, never ends: leave out DISTINCT, or "
                "write GROUP BY window(time, '1 hour'), … for a time with a watermark"
            )
        return _NO_WINDOW

    def _functions_asked(self) -> bool:
        pending = list(self._values)
        while pending:
            tree = pending.pop()
            if tree.name == "AggregateExpression":
                return True
            pending.extend(tree.children)
        return False

    def _key(self, tree: Tree) -> Expression:
        key = self._over_rows(tree)
        _require_groupable(self._type(tree))
        return key

    def _type(self, tree: Tree) -> pa.DataType:
        """Return the type of an expression; DeclinedError for one that cannot travel."""
        kind = catalyst.data_type(tree.handle)
        if not can_travel(kind):
            raise not_understood(f"{catalyst.pretty(tree.handle)} of type {kind.strip(chr(34))}")
        return arrow_type(kind, self._rows.settings.time_zone)

    def _collect(self, tree: Tree) -> None:
        """Take the aggregate functions in an expression."""
        if tree.name == "AggregateExpression":
            self._functions.setdefault(self._aggregate(tree), tree)
            return
        for child in tree.children:
            self._collect(child)

    def _aggregate(self, tree: Tree) -> Aggregate:
        """Return an aggregate function; DeclinedError for one that is not known."""
        asked = known_aggregate(tree, self._sql)
        kind = self._type(tree)
        argument = self._argument(asked)
        if len(tree.children) > 1:  # FILTER
            counted = argument or Literal(1, pa.int32())
            nothing = Literal(None, type_of(counted))
            when = self._over_rows(tree.children[1])
            argument = Case(((when, counted),), nothing, type_of(counted))
        overflow = Overflow.FAILS
        if asked.function in {AggregateFunction.SUM, AggregateFunction.AVG}:
            overflow = _OVERFLOWS[catalyst.aggregate_mode(tree.children[0].handle)]
        return Aggregate(
            asked.function, argument, kind, overflow, asked.distinct, asked.options, asked.listed
        )

    def _argument(self, asked: KnownAggregate) -> Expression | None:
        """Return what a function is about; None for a count of rows."""
        function, arguments = asked.function, asked.arguments
        only_rows = function is AggregateFunction.COUNT and not asked.distinct
        if only_rows and all(operand.name == "Literal" for operand in arguments):
            if any(operand.node.fields.get("value") is None for operand in arguments):
                raise not_understood("COUNT of NULL: write count(*), or leave it out")
            return None
        if len(arguments) > 1:
            argument = self._rows.in_struct(arguments, together=asked.together)
        else:
            argument = self._over_rows(arguments[0])
        _check_values(asked, argument)
        return argument

    def _over_rows(self, tree: Tree) -> Expression:
        """Return an expression over the rows, without functions and parameters."""
        expression = self._rows.translated(tree)
        for node in expression.walk():
            if isinstance(node, Call):
                raise not_understood(
                    "a Python function in an aggregate or a group: make what it returns a column "
                    "of the stream's own DataFrame"
                )
            if isinstance(node, Argument) and node.index < 0:
                raise not_understood("a parameter in an aggregate or a group")
        return expression

    def _condition(self, tree: Tree) -> Expression:
        """Return a condition of HAVING over the columns of aggregates."""

        def leaf(_: CatalystNode, path: tuple[int, ...]) -> Expression | None:
            return self._leaf(tree.at(path))

        expression = translate(
            tree.node, leaf, ExpressionDetails(tree), time_zone=self._rows.settings.time_zone
        )
        reason = reason_not_to_evaluate(expression)
        if reason is not None:
            raise not_understood(reason)
        if any(isinstance(node, Call) for node in expression.walk()):
            raise not_understood("a Python function in HAVING")
        return expression

    def _leaf(self, tree: Tree) -> Expression | None:
        if tree.name == "GetStructField" and self._column(tree.children[0]) == 0:
            number = int(str(tree.node.fields["ordinal"]))
            return Argument(number, arrow_type(tree.data_type, self._rows.settings.time_zone))
        column = self._column(tree)
        if column is not None:
            kind = catalyst.data_type(self._columns[column])
            number = column + _BOUNDS - 1
            return Argument(number, arrow_type(kind, self._rows.settings.time_zone))
        if tree.name != "AttributeReference":
            return None
        result = self._above.results.get(tree.identity)
        if result is not None:
            return self._rows.result_of(result)
        alias = self._above.known_alias(tree.identity)
        if alias is None:
            raise not_understood(f"{tree.node.fields['name']} above an aggregate")
        return self._condition(alias)

    def _rebuilt(self, tree: Tree) -> CatalystExpression:
        """Return an output's expression over the columns of aggregates."""
        column = self._column(tree)
        if column is not None:
            return self._columns[column]
        if tree.name == "AttributeReference":
            alias = self._above.known_alias(tree.identity)
            if alias is not None:
                return self._rebuilt(alias)
            if tree.identity in self._truncations:
                meant, time = self._truncations[tree.identity]
                start = catalyst.struct_field(self._columns[0], 0)
                return catalyst.in_terms_of(meant.handle, [(time.handle, start)])
            result = self._above.results.get(tree.identity)
            if result is None:
                raise not_understood(f"{tree.node.fields['name']} above an aggregate")
            self._rows.show(tree, result)
            return tree.handle
        if not tree.children:
            return tree.handle
        return catalyst.with_operands(tree.handle, [self._rebuilt(c) for c in tree.children])

    def _column(self, tree: Tree) -> int | None:
        """Return which column of aggregates an expression is; None where it is none."""
        if tree.name == "AggregateExpression":
            return 1 + len(self._keys) + list(self._functions).index(self._aggregate(tree))
        if tree.name == "AttributeReference":
            return self._group_columns.get(tree.identity)
        return None


def _check_values(asked: KnownAggregate, argument: Expression) -> None:
    """Raise DeclinedError for values that a function is not computed of."""
    function, kind = asked.function, type_of(argument)
    if asked.distinct or function in {AggregateFunction.COLLECT_SET, AggregateFunction.MODE}:
        _require_groupable(kind)
    if function in {AggregateFunction.MIN, AggregateFunction.MAX} and pa.types.is_nested(kind):
        raise not_understood(
            f"{function.upper()} of values of type {kind}: write max_by(x, y), or of its parts"
        )
    numbers = {AggregateFunction.SUM, AggregateFunction.AVG, AggregateFunction.PERCENTILE}
    ordered = _is_number(argument) or pa.types.is_temporal(kind)
    if (
        (function in numbers and not _is_number(argument))
        or (function in COUNTED and function is not AggregateFunction.MODE and not ordered)
        or (function in BITS and not is_integer(kind))
    ):
        raise not_understood(f"{function.upper()} of values of type {kind}: cast them to numbers")
    if function in CHOOSING and pa.types.is_nested(kind[1].type):
        raise not_understood(
            f"{function.upper()} by values of type {kind[1].type}: take one of their parts"
        )


def _require_groupable(kind: pa.DataType) -> None:
    if not can_be_grouped(kind):
        raise not_understood(f"groups by values of type {kind}: take parts of them, or a text")


def _is_number(expression: Expression) -> bool:
    kind = type_of(expression)
    return is_integer(kind) or is_floating(kind) or bool(pa.types.is_decimal(kind))
