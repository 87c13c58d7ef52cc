"""The aggregate at the top of a watched query, and what is computed from its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa

from eddyline import catalyst
from eddyline.blocks.column_types import arrow_type
from eddyline.blocks.decline import DeclinedError
from eddyline.catalyst import CatalystExpression, Plan
from eddyline.errors import NotWatchableError
from eddyline.expressions import Argument, Expression, type_of
from eddyline.expressions.value_types import relabelled
from eddyline.planner.claim.session_settings import session_settings
from eddyline.planner.read.chains import Tree
from eddyline.planner.read.expression_details import ExpressionDetails
from eddyline.planner.read.translation import CatalystNode, translate
from eddyline.planner.read.translation.literals import UnreadableValueError, literal
from eddyline.quirks.classic_frames import ClassicDataFrame
from eddyline.watching.aggregate import EXTREMES, WatchedAggregate, WatchedFunction
from eddyline.watching.formulas import Compute, Formula
from eddyline.watching.watched_values import Values

_FUNCTIONS: Final = {
    "Count": WatchedFunction.COUNT,
    "Sum": WatchedFunction.SUM,
    "Average": WatchedFunction.AVG,
    "Min": WatchedFunction.MIN,
    "Max": WatchedFunction.MAX,
}

_NUMBERS: Final = {"byte", "short", "integer", "long", "float", "double"}

_ORDERED: Final = {"string", "binary", "boolean", "date", "timestamp", "timestamp_ntz"}
"""Types beside numbers whose least and greatest values are those that Spark finds."""


@dataclass(frozen=True, slots=True)
class WatchedAggregation:
    """An aggregate over a block's rows: its first outputs are the groups.

    ``groups`` are the names of their columns, with their types. ``order`` gives for each column of
    the DataFrame its place among groups, aggregates and formulas; ``names`` are those of all
    columns then, each but a group's followed by those of its bounds.
    """

    groups: tuple[tuple[str, pa.DataType], ...]
    aggregates: tuple[WatchedAggregate, ...]
    formulas: tuple[Formula, ...]
    order: tuple[int, ...]
    names: tuple[str, ...]


def read_aggregation(df: ClassicDataFrame) -> tuple[ClassicDataFrame, WatchedAggregation] | None:
    """Return the rows under the aggregate of a DataFrame, and how they are aggregated.

    None where it has no aggregate at its top, below projections at the most. NotWatchableError
    where one of its values cannot be shown on the way.
    """
    analyzed = _aggregate_in(catalyst.analyzed_plan(df))
    if analyzed is None:
        return None
    try:
        return _read(df, *analyzed)
    except NotWatchableError:
        # What the optimizer has made of it is simpler: constants, and what stands for others.
        optimized = _aggregate_in(catalyst.optimized_plan(df, as_written=True))
        if optimized is None:
            raise
        return _read(df, *optimized)


def _read(
    df: ClassicDataFrame, plan: Plan, projections: Sequence[Plan]
) -> tuple[ClassicDataFrame, WatchedAggregation]:
    (child,) = catalyst.children(plan)
    reading = _Reading(catalyst.grouping(plan), session_settings(df.sparkSession).time_zone)
    outputs = [reading.value(Tree.of(item)) for item in catalyst.aggregated(plan)]
    if not reading.aggregates:
        raise NotWatchableError("DISTINCT has no estimate: watch the rows, or count them")
    for projection in reversed(projections):
        (below,) = catalyst.children(projection)
        reading.known = dict(zip(catalyst.output_numbers(below), outputs, strict=True))
        outputs = [reading.value(Tree.of(item)) for item in catalyst.project_list(projection)]
    items = reading.items or [catalyst.named(catalyst.literal_true(), "g0")]
    rows = catalyst.dataframe_over(df.sparkSession, catalyst.projected(items, child))
    return rows, reading.aggregation(df.columns, outputs)


def _aggregate_in(plan: Plan) -> tuple[Plan, list[Plan]] | None:
    """Return the aggregate at the top of a plan, and the projections above it from the top on."""
    projections: list[Plan] = []
    while True:
        kind = catalyst.class_name(plan).rpartition(".")[2]
        if kind == "Aggregate":
            return plan, projections
        (child, *more) = catalyst.children(plan) or [plan]
        if more or child is plan or kind not in {"SubqueryAlias", "Project"}:
            return None
        if kind == "Project":
            projections.append(plan)
        plan = child


@dataclass
class _Reading:
    """Reads values over groups and aggregates.

    ``Argument(n)`` is group number n, and behind the groups come the aggregates. ``items`` are
    the columns of the rows that are aggregated, ``known`` what attributes stand for in what is
    read.
    """

    groups: Sequence[CatalystExpression]
    time_zone: str
    aggregates: list[WatchedAggregate] = field(default_factory=list)
    items: list[CatalystExpression] = field(init=False)
    known: Mapping[int, Expression] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.items = [catalyst.named(group, f"g{n}") for n, group in enumerate(self.groups)]

    def value(self, tree: Tree) -> Expression:
        """Read one value, under any name."""
        while tree.name == "Alias":
            tree = tree.children[0]

        def leaf(_: CatalystNode, path: tuple[int, ...]) -> Expression | None:
            return self._leaf(tree.at(path))

        try:
            details = ExpressionDetails(tree)
            return translate(tree.node, leaf, details, time_zone=self.time_zone)
        except (DeclinedError, UnreadableValueError) as declined:
            why = declined.left_to_spark().why if isinstance(declined, DeclinedError) else declined
            raise NotWatchableError(
                f"{catalyst.pretty(tree.handle)} has no running estimate: "
                f"{why}; watch the aggregates in it, and compute it from "
                f"these"
            ) from None

    def _leaf(self, part: Tree) -> Expression | None:
        if part.name == "Literal":
            return None
        if part.name == "Cast" and part.children[0].name == "Literal":  # as 2 in avg(price) * 2
            value, kind = catalyst.constant_value(part.handle), self._type(part.handle)
            return literal(value, kind)
        if part.name == "AttributeReference" and part.identity[0] in self.known:
            return self.known[part.identity[0]]
        for number, group in enumerate(self.groups):
            if catalyst.same_value(part.handle, group):
                return Argument(number, self._type(group))
        if part.name == "AggregateExpression":
            self.aggregates.append(self._aggregate(part))
            kind = self.aggregates[-1].type
            return Argument(len(self.groups) + len(self.aggregates) - 1, kind)
        return None

    def _aggregate(self, tree: Tree) -> WatchedAggregate:
        function, argument = _function(tree)
        column = None
        if argument is not None:
            column = len(self.items)
            self.items.append(catalyst.named(argument.handle, f"a{column}"))
        return WatchedAggregate(
            function, column, catalyst.pretty(tree.handle), self._type(tree.handle)
        )

    def _type(self, expression: CatalystExpression) -> pa.DataType:
        return arrow_type(catalyst.data_type(expression), self.time_zone)

    def aggregation(self, names: Sequence[str], values: Sequence[Expression]) -> WatchedAggregation:
        """Return the aggregation whose columns these are."""
        groups = [""] * len(self.groups)
        aggregates = list(self.aggregates)
        named: set[int] = set()
        formulas: list[Formula] = []
        order: list[int] = []
        for name, value in zip(names, values, strict=True):
            place = value.index if isinstance(value, Argument) else -1
            if 0 <= place < len(groups):
                groups[place] = name
            elif place >= 0 and place not in named:
                number = place - len(groups)
                aggregates[number] = replace(aggregates[number], name=name)
                named.add(place)
            else:
                place = len(groups) + len(aggregates) + len(formulas)
                formulas.append(self._formula(name, value))
            order.append(place)
        columns: list[str] = []
        for place, name in zip(order, names, strict=True):
            bounds = () if place < len(groups) else (f"{name}_low", f"{name}_high")
            columns += [name, *bounds]
        types = map(self._type, self.groups)
        return WatchedAggregation(
            tuple(zip(groups, types, strict=True)),
            tuple(aggregates),
            tuple(formulas),
            tuple(order),
            tuple(columns),
        )

    def _formula(self, name: str, value: Expression) -> Formula:
        arguments = {node.index for node in value.walk() if isinstance(node, Argument)}
        first = len(self.groups)
        of = tuple(sorted(place - first for place in arguments if place >= first))
        return Formula(name, type_of(value), of, _compute(value))


def _compute(value: Expression) -> Compute:
    values, kind = Values([value]), type_of(value)

    def compute(columns: Sequence[pa.Array], final: bool) -> pa.Array:  # noqa: FBT001 - as a Compute is called
        rows = len(columns[0])
        evaluate: Callable[[Sequence[pa.Array], int], list[pa.Array]]
        evaluate = values.of if final else values.where_possible
        (column,) = evaluate(columns, rows)
        return relabelled(column, kind)

    return compute


def _function(tree: Tree) -> tuple[WatchedFunction, Tree | None]:
    """Return an aggregate's function and argument; None for a count of rows."""
    function, *condition = tree.children
    known = _FUNCTIONS.get(function.name)
    if known is not None and not condition and not tree.node.fields.get("isDistinct"):
        arguments = function.children
        constant = all(argument.name == "Literal" for argument in arguments)
        if known is WatchedFunction.COUNT and constant:
            return known, None
        if len(arguments) == 1 and _takes(known, arguments[0].data_type):
            return known, arguments[0]
    raise NotWatchableError(
        f"{catalyst.pretty(tree.handle)} has no running estimate: COUNT, SUM, AVG, MIN and MAX "
        f"have, each of one expression, without DISTINCT and FILTER"
    )


def _takes(function: WatchedFunction, kind: str) -> bool:
    """Whether a function's values over a type are shown on the way."""
    if function is WatchedFunction.COUNT:
        return True
    name = kind.strip('"')
    number = name in _NUMBERS or name.startswith("decimal")
    return number or (function in EXTREMES and name in _ORDERED)
