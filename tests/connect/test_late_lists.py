"""Select lists that are put above limits; no server is asked."""

from __future__ import annotations

from typing import Any

import pytest

from eddyline.quirks.pyspark_at_hand import MINOR
from tests.connect.connect_server import lacking

if lacking() or MINOR < (4, 1):
    pytest.skip(f"Spark Connect's client lacks {lacking()}", allow_module_level=True)

from pyspark.sql.connect import functions
from pyspark.sql.connect.column import Column
from pyspark.sql.connect.expressions import ColumnReference
from pyspark.sql.connect.proto import Relation
from pyspark.sql.types import StringType, StructField

from eddyline.connect.added_columns import below
from eddyline.connect.late_lists import MOST_ROWS, late_list
from eddyline.connect.messages import text_of

F: Any = functions  # Connect's columns have more to them than their types say

label = F.udf(str, StringType(), useArrow=True)
noise = F.udf(str, StringType(), useArrow=True).asNondeterministic()

LIMIT, OFFSET, SORT, LIST, BASE = 105, 104, 103, 102, 101


def of_list(name: str) -> Any:  # noqa: ANN401 - Connect's columns
    return Column(ColumnReference(name, LIST))


def latest(*items: Any, key: Any = "n", rows: int = 7, **made: Any) -> Relation:  # noqa: ANN401 - likewise
    """Return a limit, an offset and a sort above a select list, or above added columns."""
    limit = Relation()
    limit.common.plan_id = LIMIT
    limit.limit.limit = rows
    offset = limit.limit.input
    offset.common.plan_id, offset.offset.offset = OFFSET, 1
    sort = offset.offset.input
    sort.common.plan_id, sort.sort.is_global = SORT, True
    column = F.col(key) if isinstance(key, str) else key
    sort.sort.order.append(column.desc()._expr.to_plan(None).sort_order)
    making = sort.sort.input
    making.common.plan_id = LIST
    for name, item in made.items():
        alias = making.with_columns.aliases.add()
        alias.name.append(name)
        alias.expr.CopyFrom(item._expr.to_plan(None))
    making.project.expressions.extend(item._expr.to_plan(None) for item in items) if items else None
    base = below(making)
    base.common.plan_id = BASE
    base.range.end = 10
    return limit


def rewritten(relation: Relation, *names: str) -> list[str]:
    """Return the kinds of relations there are in the end, from the top; none where it stays."""
    found = late_list(relation, lambda _: False)
    fields = [StructField(name, StringType()) for name in names]
    if found is None or found.rewrite(fields) is None:
        return []
    kinds, node = [], relation
    while not node.HasField("range"):
        kinds.append(str(node.WhichOneof("rel_type")))
        node = below(node)
    return kinds


ABOVE = ["filter", "filter", "filter"]
BELOW = ["limit", "offset", "sort"]


def test_a_select_list_comes_after_the_limit() -> None:
    relation = latest(F.col("id").alias("n"), label("k").alias("l"), key=of_list("n"))
    assert rewritten(relation, "n", "l") == [*ABOVE, "project", *BELOW]
    node, numbers = relation, []
    while not node.HasField("range"):
        numbers.append(node.common.plan_id)
        if node.HasField("sort"):
            assert text_of(node.sort.order[0].child) == "id"
        node = below(node)
    assert numbers[:4] == [LIMIT, OFFSET, SORT, LIST]
    assert not {LIMIT, OFFSET, SORT, LIST} & set(numbers[4:])
    assert node.common.plan_id == BASE


def test_what_spark_computes_stays_below() -> None:
    relation = latest(F.col("id"), F.upper("k"), label("k").alias("l"), key="id")
    assert rewritten(relation, "id", "upper(k)", "l") == [*ABOVE, "project", *BELOW, "project"]
    added = latest(l=label("k"), u=F.upper("k"), key="id")
    kinds = rewritten(added, "id", "k", "l", "u")
    assert kinds == [*ABOVE, "drop", "with_columns", *BELOW, "project"]
    star = latest(F.col("*"), label("k").alias("l"), key="id")
    assert rewritten(star, "id", "k", "l") == [*ABOVE, "project", *BELOW]


@pytest.mark.parametrize(
    ("relation", "names"),
    [
        (latest(F.col("id").alias("n"), label("k").alias("l"), rows=MOST_ROWS), ("n", "l")),
        (latest(label("k").alias("n"), F.col("id")), ("n", "id")),
        (latest((F.col("id") + 1).alias("n"), label("k").alias("l")), ("n", "l")),
        (latest(F.col("id").alias("n"), label("n").alias("l")), ("n", "l")),
        (latest(F.col("id").alias("n"), label("_metadata.x").alias("l")), ("n", "l")),
        (latest(F.col("id").alias("n"), noise("k").alias("l")), ("n", "l")),
        (latest(F.col("id").alias("n"), F.expr("k"), label("k").alias("l")), ("n", "k", "l")),
        (latest(F.col("*"), label("k").alias("n")), ("n", "k", "n")),
        (latest(F.col("*"), label("k").alias("l"), key=F.col("n") + 1), ("n", "l")),
        (latest(F.col("*"), label("k").alias("l"), key="N"), ("n", "l")),
        (latest(F.col("*"), F.upper("k")), ("n", "k", "upper(k)")),
        (latest(n=label("k")), ("k", "n")),
    ],
)
def test_what_stays(relation: Relation, names: tuple[str, ...]) -> None:
    before = relation.SerializeToString(deterministic=True)
    assert rewritten(relation, *names) == []
    assert relation.SerializeToString(deterministic=True) == before


def test_what_is_cached_stays() -> None:
    relation = latest(F.col("id").alias("n"), label("k").alias("l"))
    assert late_list(relation, lambda node: node.common.plan_id == SORT) is None


def test_a_sort_of_each_part_stays() -> None:
    relation = latest(F.col("id").alias("n"), label("k").alias("l"))
    relation.limit.input.offset.input.sort.is_global = False
    assert late_list(relation, lambda _: False) is None
