"""Preferences as users write them: a condition of SQL over the columns that they watch.

Within the eddy they are marks of tuples (:mod:`eddyline.engine.preference`), before it the
order in which a scan gives what it has read (:mod:`eddyline.watching.arriving`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

from eddyline import catalyst
from eddyline.blocks.column_types import arrow_type
from eddyline.blocks.decline import DeclinedError
from eddyline.engine.join_graph import JoinGraph
from eddyline.engine.join_query import JoinQuery
from eddyline.engine.modules.scan_access import Arrival
from eddyline.engine.preference import over
from eddyline.errors import NotWatchableError
from eddyline.expressions import Argument, Expression, with_arguments
from eddyline.expressions.terms import decide, terms_of
from eddyline.planner.claim.own_values import in_join
from eddyline.planner.read.chains import Tree
from eddyline.planner.read.expression_details import ExpressionDetails
from eddyline.planner.read.translation import CatalystNode, translate
from eddyline.quirks.classic_frames import ClassicDataFrame
from eddyline.watching.arriving import Choose
from eddyline.watching.watched_query import WatchedQuery
from eddyline.watching.watched_values import WatchedColumns


def preferred(df: ClassicDataFrame, query: WatchedQuery, condition: str) -> Expression:
    """Return a condition over the columns of a DataFrame as a predicate over its block's.

    Raises PySpark's errors for what is no condition, NotWatchableError for one that cannot be
    told by columns of the block.
    """
    if query.aggregation is not None:
        raise NotWatchableError("an aggregate has no rows of which some could come first")
    tree = Tree.of(catalyst.condition(catalyst.analyzed_plan(df.where(F.expr(condition)))))
    outputs = catalyst.output_numbers(catalyst.analyzed_plan(df))
    numbers = {identity: number for number, identity in enumerate(outputs)}
    zone = query.block.settings.time_zone

    def leaf(_: CatalystNode, path: tuple[int, ...]) -> Expression | None:
        part = tree.at(path)
        if part.name != "AttributeReference":
            return None
        return Argument(numbers[part.identity[0]], arrow_type(part.data_type, zone))

    def of_block(column: Argument) -> Expression:
        value = query.values[column.index]
        return with_arguments(value, lambda output: in_block(output.index))

    def in_block(output: int) -> Expression:
        expression = query.block.query.outputs[output]
        # A preference follows equalities, and these go by what was asked for.
        if isinstance(expression, Argument):
            return in_join(query.block.query, query.block.lookups, expression)
        return expression

    try:
        predicate = translate(tree.node, leaf, ExpressionDetails(tree), time_zone=zone)
    except DeclinedError as declined:
        raise NotWatchableError(
            f"{condition} cannot be preferred: {declined.left_to_spark().why}"
        ) from None
    return with_arguments(predicate, of_block)


def rows_first(
    query: JoinQuery, relation: int, predicate: Expression | None, weight: float
) -> Choose | None:
    """Return what tells which rows of a relation come first; None where nothing tells them apart.

    Of a ``weight`` below 1 these are those that do not satisfy the predicate. It is about time and
    not about answers: rows for which it is NULL or fails do not satisfy it.
    """
    graph = JoinGraph(query)
    here = None if predicate is None else over(graph, predicate, 1 << relation)
    if here is None or weight == 1.0:
        return None

    def column(argument: Argument) -> Expression:
        return Argument(query.place_of(argument.index)[1], argument.type)

    term = terms_of(with_arguments(here, column))

    def choose(arrival: Arrival) -> npt.NDArray[np.bool_]:
        satisfied, _ = decide(term, WatchedColumns(arrival.columns, arrival.rows))
        return satisfied if weight > 1.0 else ~satisfied

    return choose
