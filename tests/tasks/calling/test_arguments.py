"""What a user's function is given is what plain Spark gives it, in value and type."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.pandas.functions import ArrowUDFType, PandasUDFType, arrow_udf, pandas_udf

from eddyline.blocks.column_types import arrow_type
from eddyline.blocks.filter_block import FunctionKind, SessionSettings
from eddyline.tasks.calling import make_function
from tests.tasks.calling.probes import (
    COLUMNS,
    ROWS,
    captured,
    describer,
    frame,
    parsed,
    user_function,
)

pytestmark = pytest.mark.slow(25)

# Of the session, and of this process and the workers: Spark keeps the two apart.
ZONES = [("UTC", "UTC"), ("America/New_York", "Europe/Paris")]

# A plan has a node, with a Python process, for each iterator function; and these see
# the same columns as the functions of their library that are no iterators.
ITERATED_TYPES = ("bigint", "string", "timestamp", "array<bigint>", "struct<x:int,y:string>")


@pytest.fixture(params=ZONES, ids=lambda zones: "-".join(zones).replace("/", "_"))
def time_zone(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """The session's time zone; the local one of this process and of workers is another."""
    session_zone, local_zone = request.param
    before = os.environ.get("TZ")
    configured = spark.conf.get("spark.sql.session.timeZone")
    assert configured is not None
    spark.conf.set("spark.sql.session.timeZone", session_zone)
    spark.sparkContext.environment["TZ"] = local_zone
    os.environ["TZ"] = local_zone
    time.tzset()
    yield session_zone
    spark.conf.set("spark.sql.session.timeZone", configured)
    del spark.sparkContext.environment["TZ"]
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


def as_spark_calls(kind: FunctionKind) -> Any:  # noqa: ANN401 - PySpark's own types differ
    """Return the probe of a kind as a function of plain Spark."""
    probe = describer(kind)
    match kind:
        case FunctionKind.PICKLED | FunctionKind.ARROW_BATCHED:
            return udf(probe, "string", useArrow=kind is FunctionKind.ARROW_BATCHED)
        case FunctionKind.ARROW:
            return arrow_udf(probe, "string", ArrowUDFType.SCALAR)
        case FunctionKind.ARROW_ITERATOR:
            return arrow_udf(probe, "string", ArrowUDFType.SCALAR_ITER)
        case FunctionKind.PANDAS:
            return pandas_udf(probe, "string", PandasUDFType.SCALAR)
        case FunctionKind.PANDAS_ITERATOR:
            return pandas_udf(probe, "string", PandasUDFType.SCALAR_ITER)


@pytest.mark.filterwarnings("ignore:.*prefer:UserWarning")  # PySpark would rather read type hints
@pytest.mark.parametrize("rows", [ROWS, ROWS - 1], ids=["with-nulls", "without"])
@pytest.mark.parametrize("kind", FunctionKind)
def test_every_type_arrives_as_in_plain_spark(
    spark: SparkSession, time_zone: str, kind: FunctionKind, rows: int
) -> None:
    iterates = kind in {FunctionKind.ARROW_ITERATOR, FunctionKind.PANDAS_ITERATOR}
    types = ITERATED_TYPES if iterates else tuple(COLUMNS)
    data = frame(spark, types, rows)
    probe = as_spark_calls(kind)
    given = data.select(*(probe(data[f"`{name}`"]).alias(name) for name in types)).collect()
    settings = SessionSettings(time_zone)
    for name, column in zip(types, captured(data), strict=True):
        assert column.type == arrow_type(parsed(name).json(), time_zone)
        function = make_function(user_function(describer(kind), kind, [name]), settings)
        vector = function([column], rows)
        assert not vector.errors
        assert vector.values.to_pylist() == [row[name] for row in given]
