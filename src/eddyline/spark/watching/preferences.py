"""Preferences as users write them: a condition of SQL over the columns that they watch."""

from __future__ import annotations

from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from eddyline.query.expressions import Argument, Expression, with_arguments
from eddyline.spark.blocks.column_types import arrow_type
from eddyline.spark.decline import DeclinedError
from eddyline.spark.host import catalyst
from eddyline.spark.plan.chains import Tree
from eddyline.spark.plan.expression_details import ExpressionDetails
from eddyline.spark.plan.translation import CatalystNode, translate
from eddyline.spark.watching.watched_query import NotWatchableError, WatchedQuery


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
        return with_arguments(value, lambda output: query.block.query.outputs[output.index])

    try:
        found = translate(tree.node, leaf, ExpressionDetails(tree), time_zone=zone)
    except DeclinedError as declined:
        raise NotWatchableError(
            f"{condition} cannot be preferred: {declined.left_to_spark().why}"
        ) from None
    return with_arguments(found, of_block)
