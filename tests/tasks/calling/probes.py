"""Functions that tell what they were given, and columns of every type to give them.

Workers cannot import the tests, so every function here is made inside another
one, which PySpark pickles whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.functions import ArrowUDFType, arrow_udf
from pyspark.sql.types import DataType, StringType, _parse_datatype_string

from eddyline.blocks.filter_block import FunctionKind, UserFunction

# The instants 00:00 and 01:00 UTC are both 02:00 on this day in Paris.
TWICE = "timestamp_micros({0}), timestamp_micros({0} + 3600000000)"
TWICE = TWICE.format("1603584000123456")

# Spark SQL type -> SQL of values for the rows of a column, the last one NULL.
COLUMNS = {
    "boolean": "true, false, true, null",
    "tinyint": "1Y, -128Y, 127Y, null",
    "smallint": "1S, -32768S, 32767S, null",
    "int": "1, -2147483648, 2147483647, null",
    "bigint": "1L, -9223372036854775808L, 9223372036854775807L, null",
    "float": "float(0.1), float('NaN'), float('-Infinity'), null",
    "double": "0.1D, double('NaN'), -0.0D, null",
    "decimal(10,2)": "cast(1.5 as decimal(10,2)), 0, -99999999.99, null",
    "decimal(38,18)": "cast(1e-18 as decimal(38,18)), 0, 12345678901234567890.5, null",
    "string": "'a', '', 'zoé \U0001f40d', null",
    "binary": "X'00ff', X'', X'61', null",
    "date": "date'2020-10-25', date'1582-10-04', date'9999-12-31', null",
    "timestamp": f"{TWICE}, timestamp'1890-01-01 00:00:00.000001', null",
    "timestamp_ntz": (
        "timestamp_ntz'2020-10-25 02:30:00.5', timestamp_ntz'1890-01-01 00:00:00', "
        "timestamp_ntz'2261-12-31 23:59:59.999999', null"  # pandas knows no later years
    ),
    "interval day to second": (
        "interval '1 02:03:04.000005' day to second, interval '-1' day, interval '0' day, null"
    ),
    "array<bigint>": "array(1L, null), array(), array(3L), null",
    "array<timestamp>": f"array({TWICE}, null), array(), array(null), null",
    "array<array<string>>": "array(array('a', null), null), array(), array(array()), null",
    "map<string,int>": "map('b', 1, 'a', null), map(), map('c', 3), null",
    "map<date,array<binary>>": (
        "map(date'2020-01-01', array(X'01', null)), map(), map(date'2020-01-02', null), null"
    ),
    "struct<x:int,y:string>": (
        "named_struct('x', 1, 'y', 'a'), named_struct('x', null, 'y', null), "
        "named_struct('x', 2, 'y', ''), null"
    ),
    "struct<t:timestamp,n:struct<d:date,b:binary>,a:array<decimal(5,1)>>": (
        "named_struct('t', timestamp_micros(1603587600123456), "
        "'n', named_struct('d', date'2020-01-01', 'b', X'01'), 'a', array(1.5, null)), "
        "named_struct('t', null, 'n', null, 'a', null), "
        "named_struct('t', timestamp'1890-01-01', 'n', named_struct('d', null, 'b', null), "
        "'a', array()), null"
    ),
    "array<struct<i:interval day to second,m:map<int,boolean>>>": (
        "array(named_struct('i', interval '1' day, 'm', map(1, true)), null), array(), "
        "array(named_struct('i', null, 'm', null)), null"
    ),
}

ROWS = 4


def frame(spark: SparkSession, types: Sequence[str], rows: int) -> DataFrame:
    """Return a column of each type, in one partition of so many rows."""
    arrays = (f"cast(array({COLUMNS[kind]})[id] as {kind}) as `{kind}`" for kind in types)
    # A range is not folded to constants, as a list of values would be.
    return spark.range(0, rows, 1, 1).selectExpr("int(id) as id").selectExpr(*arrays)


def captured(data: DataFrame) -> list[pa.Array]:
    """Return the columns of a frame of one batch as Spark sends them to Python."""

    def sent(column: pa.Array) -> pa.Array:
        sink = pa.BufferOutputStream()
        batch = pa.RecordBatch.from_arrays([column], ["_0"])
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        blobs = [sink.getvalue().to_pybytes()] + [None] * (len(column) - 1)
        return pa.array(blobs, pa.binary())

    capture = arrow_udf(sent, "binary", ArrowUDFType.SCALAR)
    # Not first(): its limit would go below the capture.
    first = data.select(*(capture(data[f"`{name}`"]) for name in data.columns)).collect()[0]
    return [pa.ipc.open_stream(blob).read_next_batch().column(0) for blob in first]


def describer(kind: FunctionKind) -> Callable[..., Any]:  # noqa: C901 - a few lines for each type
    """Return a function of a kind whose result tells its argument's value and types."""

    def describe(value: Any) -> str:  # noqa: ANN401, PLR0911 - likewise, and for any type
        name = type(value).__name__
        if hasattr(value, "columns"):  # pandas.DataFrame
            parts = ", ".join(f"{n}: {describe(value[n])}" for n in value.columns)
            return f"{name}({value.index!r}; {parts})"
        if hasattr(value, "dtype") and hasattr(value, "__len__"):  # pandas.Series, numpy.ndarray
            parts = ", ".join(map(describe, value))
            index = repr(value.index) if hasattr(value, "index") else ""
            return f"{name}({value.dtype}, {index}; {parts})"
        if hasattr(value, "to_pylist"):  # pyarrow.Array
            return f"{name}({value.type!r}; {value.to_pylist()!r})"
        if hasattr(value, "__fields__"):  # Row
            parts = ", ".join(
                f"{n}={describe(v)}" for n, v in zip(value.__fields__, value, strict=True)
            )
            return f"{name}({parts})"
        if isinstance(value, dict):
            items = [f"{describe(k)}: {describe(v)}" for k, v in value.items()]
            # A pickled map has its entries in Java's order.
            parts = ", ".join(sorted(items) if kind == FunctionKind.PICKLED else items)
            return f"{name}({parts})"
        if isinstance(value, (list, tuple)):
            return f"{name}({', '.join(map(describe, value))})"
        return f"{name} {value!r} {getattr(value, 'fold', '')}"

    if kind in (FunctionKind.PICKLED, FunctionKind.ARROW_BATCHED):
        return describe

    def describe_vector(value: Any) -> Any:  # noqa: ANN401 - likewise
        texts = [describe(value)] + [""] * (len(value) - 1)
        if kind in (FunctionKind.ARROW, FunctionKind.ARROW_ITERATOR):
            return pa.array(texts)
        import pandas as pd  # noqa: PLC0415 - not pickled with the function

        return pd.Series(texts)

    if kind in (FunctionKind.ARROW, FunctionKind.PANDAS):
        return describe_vector

    def describe_chunks(chunks: Any) -> Any:  # noqa: ANN401 - likewise
        for chunk in chunks:
            yield describe_vector(chunk)

    return describe_chunks


def user_function(
    function: Callable[..., Any],
    kind: FunctionKind,
    argument_types: Sequence[str] = (),
    return_type: str | DataType = "string",
    keywords: tuple[str | None, ...] | None = None,
) -> UserFunction:
    """Return a function as a block carries it; types are given in SQL."""
    returned = parsed(return_type) if isinstance(return_type, str) else return_type
    return UserFunction(
        name="probe",
        kind=kind,
        commands=(command(function, returned),),
        argument_types=tuple(parsed(text).json() for text in argument_types),
        keywords=(None,) * len(argument_types) if keywords is None else keywords,
        return_type=returned.json(),
    )


class Pinned:
    """A function that unpickles as itself, in this process only.

    ``make_function`` gets a copy of any other function, with a copy of what that notes.
    """

    _kept: ClassVar[list[Callable[..., Any]]] = []

    def __init__(self, function: Callable[..., Any]) -> None:
        self._place = len(self._kept)
        self._kept.append(function)

    def __call__(self, *values: Any, **named: Any) -> Any:  # noqa: ANN401 - any function's
        return self._kept[self._place](*values, **named)

    def __reduce__(self) -> tuple[Callable[[int], Callable[..., Any]], tuple[int]]:
        return Pinned.kept, (self._place,)

    @classmethod
    def kept(cls, place: int) -> Callable[..., Any]:
        return cls._kept[place]


def command(function: Callable[..., Any], returned: DataType) -> bytes:
    """Pickle a function as PySpark does."""
    dumps: Callable[[object], bytes] = CloudPickleSerializer().dumps  # type: ignore[no-untyped-call]
    return dumps((function, returned))


@cache
def parsed(text: str) -> DataType:
    """Return the type of which a text is the SQL name."""
    return StringType() if text == "string" else _parse_datatype_string(text)
