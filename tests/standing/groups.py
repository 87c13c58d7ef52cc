"""Groups of standing queries that were never SQL, for what stores them."""

from __future__ import annotations

import pyarrow as pa

from eddyline.blocks.filter_block import SessionSettings
from eddyline.expressions import (
    And,
    Argument,
    Arithmetic,
    ArithmeticOperator,
    Comparison,
    ComparisonOperator,
    Literal,
)
from eddyline.standing.engine.shared_query import SharedQuery
from eddyline.standing.query_template import QueryGroup, QueryTemplate

SCHEMAS = {"events": '{"type": "struct", "fields": []}'}

VALUE = Argument(0, pa.int64())
LEAST = Argument(-1, pa.int64())
TWICE = Arithmetic(
    ArithmeticOperator.MULTIPLY, (VALUE, Literal(2, pa.int64())), pa.int64(), ansi=True
)
"""Of the first parameter: a constant of the template."""

TEMPLATE = QueryTemplate(
    sql="SELECT * FROM events WHERE value >= :least * 2",
    inputs=("events",),
    query=SharedQuery({0: And((Comparison(ComparisonOperator.GREATER_OR_EQUAL, VALUE, LEAST),))}),
    constants=(TWICE,),
    parameters=(("least", '"long"'),),
    outputs=(),
    tables=frozenset(),
    functions=(),
    settings=SessionSettings("UTC"),
    used=frozenset(),
)


def group(*names: str, look_back: int | None = None) -> QueryGroup:
    """Queries of the template, each with its position as its parameter."""
    parameters = pa.table({"least": pa.array(range(len(names)), pa.int64())})
    return QueryGroup(0, names, TEMPLATE, parameters, look_back)
