"""What a user's function returns becomes what plain Spark makes of it, or the same error."""

from __future__ import annotations

import datetime as dt
from array import array
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.types import Row

from eddyline.blocks.column_types import arrow_type
from eddyline.blocks.filter_block import FunctionKind, SessionSettings, UserFunction
from eddyline.expressions.vector import CollectiveFailure, Vector
from eddyline.planner.claim.session_settings import session_settings
from eddyline.tasks.calling import make_function
from tests.tasks.calling.probes import parsed, user_function
from tests.tasks.calling.spark_worker import as_here, spark_result
from tests.tasks.java.odd_values import KNOWN, PLACE

pytestmark = [
    pytest.mark.slow(45),
    pytest.mark.usefixtures("spark"),  # types in SQL are read with its help
]

# What functions return, right or wrong for the declared type.
VALUES: dict[str, Any] = {
    "int": 1,
    "int too large for 8 bits": 300,
    "int too large for 32 bits": 2**40 + 7,
    "int too large for 64 bits": 2**70,
    "bool": True,
    "float": 1.5,
    "whole float": 2.0,
    "large float": 1e10,
    "small float": 1.25e-7,
    "NaN": float("nan"),
    "infinite float": float("-inf"),
    "str": "x",
    "str of a number": "12",
    "str of a date": "2020-01-02",
    "bytes": b"ab",
    "bytearray": bytearray(b"ab"),
    "Decimal": Decimal("1.005"),
    "large Decimal": Decimal("12345678901234.555"),
    "Decimal NaN": Decimal("NaN"),
    "date": dt.date(2020, 1, 2),
    "datetime": dt.datetime(2020, 7, 2, 3, 4, 5, 6),  # noqa: DTZ001 - naive is one of the cases
    "aware datetime": dt.datetime(2020, 7, 2, 3, 4, 5, 6, tzinfo=dt.UTC),
    "timedelta": dt.timedelta(days=-1, microseconds=7),
    "tuple": (1, 2),
    "tuple of one": (1,),
    "Row": Row(a=1, b="x"),
    "list": [1, 2],
    "mixed list": [1, None, "a"],
    "list of str": ["a", None],
    "empty list": [],
    "dict": {"a": 1},
    "dict with None": {"a": None},
    "dict of another key": {1: 2},
    "set": {1},
    "array": array("i", [1, 2]),
    "complex": 1j,
    "NumPy int": np.int64(3),
    "NumPy bool": np.bool_(True),  # noqa: FBT003 - a value
    "NumPy float": np.float64(2.5),
    "NumPy array": np.array([1, 2]),
    "NumPy str": np.str_("x"),
    "pandas Timestamp": pd.Timestamp("2020-01-02 03:04:05"),
    "NaT": pd.NaT,
}

TYPES = (
    "boolean",
    "tinyint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal(10,2)",
    "string",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
    "interval day to second",
    "array<int>",
    "array<string>",
    "array<date>",
    "map<string,int>",
    "struct<a:int,b:string>",
    "array<struct<a:int,b:timestamp>>",
)

ZONE = "America/New_York"

SEEDED = {"date", "datetime", "times", "mixed set"}
"""Sets whose elements Python takes in an order that depends on the process."""

SETTINGS = {
    "default": as_here(SessionSettings(ZONE)),
    "safe": as_here(SessionSettings(ZONE, safe_arrow_conversion=True)),
    "decimals": as_here(SessionSettings(ZONE, int_to_decimal_coercion=True)),
    "legacy": as_here(SessionSettings(ZONE, legacy_pandas_conversion=True)),
}


def returning(values: list[Any]) -> Callable[[int], Any]:
    """Return a function from a row's number to that row's value."""
    return lambda number: values[number]


def always(result: object) -> Callable[[Any], Any]:
    """Return a function of vectors that returns one thing, whatever it is given."""
    return lambda _: result


def yielding(result: object) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return a function of iterators that yields one thing for each input."""
    return lambda chunks: (result for _ in chunks)


def said_by_spark(
    function: UserFunction, settings: SessionSettings, column: pa.Array
) -> pa.Array | Exception:
    """Return the results of plain Spark's worker, or the error that it raises."""
    try:
        return spark_result(function, settings, [[column]])[0]
    except Exception as error:  # noqa: BLE001 - whatever it is, ours must be the same
        return error


def compare(ours: Vector, row: int, kind: str, said: pa.Array | Exception) -> None:
    """Check a row of ours against Spark's only row, or against its error."""
    found = ours.errors.get(row)
    if isinstance(said, Exception):
        found = found.error if isinstance(found, CollectiveFailure) else found
        assert (type(found), str(found)) == (type(said), str(said))
        assert not ours.values[row].is_valid  # noqa: PD011 - Arrow's, not pandas'
    else:
        assert found is None
        values = ours.values.slice(row, 1)  # noqa: PD011 - likewise
        assert values.type == arrow_type(parsed(kind).json(), ZONE)
        # The types' time zones have other names.
        assert repr(values.cast(said.type).to_pylist()) == repr(said.to_pylist())


@pytest.mark.filterwarnings("ignore")  # NumPy and pandas warn of odd casts, here as in Spark
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("kind", TYPES)
def test_results_of_plain_functions_become_what_spark_makes_of_them(
    kind: str, setting: str
) -> None:
    settings = SETTINGS[setting]
    for value in VALUES.values():
        if isinstance(value, complex) and settings.legacy_pandas_conversion:
            continue  # see below
        # A Series makes floats of integers beside a NULL, so there a NULL would change them.
        between = value if settings.legacy_pandas_conversion else None
        function = user_function(
            returning([value, between, value]), FunctionKind.ARROW_BATCHED, ["bigint"], kind
        )
        ours = make_function(function, settings)([pa.array([0, 1, 2])], 3)
        for row in range(3):
            compare(ours, row, kind, said_by_spark(function, settings, pa.array([row])))


@pytest.mark.filterwarnings("ignore")  # as above
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("setting", ["default", "safe", "decimals"])
def test_results_of_pandas_functions_become_what_spark_makes_of_them(
    kind: str, setting: str
) -> None:
    settings = SETTINGS[setting]
    frame = pd.DataFrame({"b": ["x", "y"], "a": [1, 2]})
    # Of a complex Series PySpark's worker makes an array of another type; the JVM refuses it.
    candidates: list[Any] = [frame, frame.rename(columns={"a": "other"}), 5, "ab", [1, 2]]
    candidates += [pd.Series([1]), pd.Series([1, 2, 3])]
    candidates += [pd.Series([v, v]) for v in VALUES.values() if not isinstance(v, complex)]
    for candidate in candidates:
        compare_vectors(FunctionKind.PANDAS, always(candidate), kind, settings)
        compare_vectors(FunctionKind.PANDAS_ITERATOR, yielding(candidate), kind, settings)


@pytest.mark.parametrize("kind", TYPES)
def test_results_of_arrow_functions_become_what_spark_makes_of_them(kind: str) -> None:
    settings = SETTINGS["default"]
    candidates: list[Any] = [
        pa.array([1]),
        pa.array([1, 2, 3]),
        pa.chunked_array([[1, 2]]),
        5,
        "ab",
        [1, 2],
    ]
    for value in VALUES.values():
        try:
            candidates.append(pa.array([value, value]))
        except (pa.ArrowException, OverflowError, ValueError):
            continue  # does not exist as an array, so not to be returned
    assert len(candidates) > len(VALUES) // 2
    for candidate in candidates:
        compare_vectors(FunctionKind.ARROW, always(candidate), kind, settings)
        compare_vectors(FunctionKind.ARROW_ITERATOR, yielding(candidate), kind, settings)


def compare_vectors(
    function_kind: FunctionKind, code: Callable[..., Any], kind: str, settings: SessionSettings
) -> None:
    function = user_function(code, function_kind, ["bigint"], kind)
    column = pa.array([7, 8])
    ours = make_function(function, settings)([column], 2)
    said = said_by_spark(function, settings, column)
    for row in range(2):
        compare(ours, row, kind, said if isinstance(said, Exception) else said.slice(row, 1))


def test_spark_takes_from_pickled_rows_what_is_taken_here(spark: SparkSession) -> None:
    values = [value for value in VALUES.values() if not isinstance(value, np.ndarray)]
    values.append(b"\xff")  # a negative number among Java's bytes
    values += [value for name, value in KNOWN.items() if name not in SEEDED]
    ids = pa.array(range(len(values)))
    columns, expected = [], []
    settings = session_settings(spark)
    for kind in TYPES:
        function = user_function(returning(values), FunctionKind.PICKLED, ["bigint"], kind)
        ours = make_function(function, settings)([ids], len(values))
        # Spark gets only what does not fail here; what fails is tested below.
        fit = [None if row in ours.errors else value for row, value in enumerate(values)]
        columns.append(udf(returning(fit), parsed(kind), useArrow=False)("id").alias(kind))
        expected.append(ours.values)
    table = spark.range(0, len(values), 1, 1).select(*columns).toArrow()
    for kind, ours in zip(TYPES, expected, strict=True):
        spark_column = table.column(kind).combine_chunks()
        told, said = (
            PLACE.sub("@", repr(column.to_pylist()))
            for column in (ours.cast(spark_column.type), spark_column)
        )
        assert told == said, kind


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("int", "NumPy int", "cannot take over from a plain Python function"),
        ("array<int>", "NumPy str", "cannot take over from a plain Python function"),
        ("decimal(10,2)", "large Decimal", "NUMERIC_VALUE_OUT_OF_RANGE"),
        ("struct<a:int,b:string>", "tuple of one", "STRUCT_ARRAY_LENGTH_MISMATCH"),
        ("date", "int", "'int' object has no attribute 'toordinal'"),
        ("array<struct<a:int,b:timestamp>>", "list", "StructType"),
    ],
)
def test_what_the_jvm_does_not_take_fails_here_too(
    spark: SparkSession, kind: str, value: str, message: str
) -> None:
    values = [VALUES[value], None]
    with pytest.raises(Exception, match=r"\S"):
        spark.range(1).select(udf(returning(values), parsed(kind), useArrow=False)("id")).collect()
    function = user_function(returning(values), FunctionKind.PICKLED, ["bigint"], kind)
    ours = make_function(function, SETTINGS["default"])([pa.array([0, 1])], 2)
    assert message in str(ours.errors[0])
    assert ours.values.to_pylist() == [None, None]  # noqa: PD011 - Arrow's, not pandas'
    assert list(ours.errors) == [0]
