"""The public face of lookup tables: what cannot be scanned, as a table in Spark SQL."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from pyspark.sql.types import StructType

from eddyline import catalyst
from eddyline.asking.access_method import AccessMethod
from eddyline.asking.lookup_source import LookedUpTable, LookupMethod, LookupSource
from eddyline.blocks.column_types import arrow_type_of
from eddyline.blocks.lookup_table import LookupTable
from eddyline.host.classic import classic, classic_session
from eddyline.planner.declare.lookup_columns import column_numbers, described_columns
from eddyline.planner.declare.lookup_tables import lookup_tables_of
from eddyline.planner.read.lookup_leaves import LOOKUP_NAME
from eddyline.planner.rewrite.steps import map_in_arrow
from eddyline.tasks.not_adapted import NotAdapted, Scanned
from eddyline.tasks.our_functions import pickled

_NUMBERS: Final = itertools.count()
TIME_ZONE: Final = "spark.sql.session.timeZone"
CASE_SENSITIVE: Final = "spark.sql.caseSensitive"


def lookup_table(  # noqa: PLR0913 - what users may set
    spark: SparkSession,
    name: str,
    schema: StructType | str,
    bind: Sequence[str],
    source: LookupSource | Sequence[LookupSource],
    *,
    key: Sequence[str] = (),
    max_in_flight: int = 16,
    rate: float | None = None,
    timeout: float = 30.0,
    retries: int = 3,
    on_error: str = "fail",
    also: Sequence[LookupMethod] = (),
    scan: DataFrame | None = None,
) -> DataFrame:
    """Register a table whose rows are looked up, and return it as a DataFrame.

    Any query of the session may name it, as a temporary view, or use the DataFrame, and runs
    through :func:`~eddyline.adapt`: then ``source`` is asked for the rows with the values that
    the query has for the ``bind`` columns, each distinct combination once a job (Raman,
    Deshpande and Hellerstein, 2003, Section 2.1.3). Values may be constants (``=``, ``IN``) or
    columns of other tables that a join sets equal, also of other lookup tables; of an outer
    join, a semijoin or an antijoin those whose rows it keeps. A query that has none is refused by
    ``adapt``; one that runs without fails.

    Several sources are mirrors: they give the same rows and compete for the keys, each of which one
    of them is asked for; a slow one gets fewer, and what one has no answer for another is asked.
    ``also`` are ways to the same rows by other columns, ``scan`` is a DataFrame with all rows, and
    the same columns; with either ``key`` names the columns that tell rows apart. A table with a
    scan is one like any other to Spark and to ``adapt``; :func:`~eddyline.watch` looks rows up
    while the scan is under way, where they are wanted sooner.

    For the whole job at most ``max_in_flight`` requests are on their way to a source at a
    time, and ``rate`` begin a second; each takes ``timeout`` seconds at the most, and is tried
    ``retries`` times more where that may help. What becomes of a key without an answer says
    ``on_error``: "fail", "null" for a row of NULLs beside the key, "skip" for no row.

    TypeError, ValueError for what cannot be, MissingSecretError for a secret that is not set;
    ConnectNotSupportedError on Spark Connect.
    """
    spark = classic_session(spark)
    if not isinstance(name, str):
        raise TypeError(f"a table's name is a text, not {name!r}")
    sensitive = str(spark.conf.get(CASE_SENSITIVE)).lower() == "true"
    struct = described_columns(schema, sensitive=sensitive)
    numbers = partial(column_numbers, name, struct, sensitive=sensitive)
    columns = tuple(struct.fieldNames())
    zone = str(spark.conf.get(TIME_ZONE))
    types = tuple(arrow_type_of(field.dataType, zone) for field in struct.fields)
    first = LookupMethod(
        bind,
        source,
        max_in_flight=max_in_flight,
        rate=rate,
        timeout=timeout,
        retries=retries,
    )
    given = (first, *_further(also))
    key_columns = numbers(key, "key")
    if (len(given) > 1 or scan is not None) and not key:
        raise ValueError(
            f"{name} has several ways to its rows and needs a key, by which rows that two of "
            f"them give are known to be the same"
        )
    registered = []
    for method in given:
        bound = numbers(method.bind, "bind")
        if not bound:
            raise ValueError(
                f"{name} needs a bind column: a table without is a table like any other"
            )
        table = LookedUpTable(name, columns, types, bound)
        registered.append(_access_method(table, method, on_error))
    tables = lookup_tables_of(spark.sparkContext)
    bind_columns = tuple(method.table.bind_names for method in registered)
    number = next(_NUMBERS)
    stand_in = NotAdapted(name, bind_columns, number) if scan is None else Scanned(name, number)
    command = pickled(stand_in, struct)
    tables.remember(
        command,
        LookupTable(
            name,
            columns,
            tuple(field.dataType.json() for field in struct.fields),
            key_columns,
            tables.methods(name, registered),
            scan is not None,
        ),
        registered,
    )
    below = spark.range(0, 1, 1, 1) if scan is None else _with_columns(name, scan, struct)
    leaf = map_in_arrow(
        catalyst.analyzed_plan(below),
        command,
        struct,
        [catalyst.plain_environment(spark.sparkContext)],
        name=f"{LOOKUP_NAME}{name})",
    )
    frame = catalyst.dataframe_over(spark, leaf)
    frame.createOrReplaceTempView(name)
    return frame


def _with_columns(name: str, scan: DataFrame, struct: StructType) -> DataFrame:
    """Return a scan with the columns of a table; ValueError where it has not all of them."""
    missing = [column for column in struct.fieldNames() if column not in classic(scan).columns]
    if missing:
        raise ValueError(f"the scan of {name} has no column {missing[0]}")
    return scan.select(
        *(F.col(f"`{field.name}`").cast(field.dataType).alias(field.name) for field in struct)
    )


def _further(also: object) -> list[LookupMethod]:
    given = list(also) if isinstance(also, Sequence) else [None]
    methods = [each for each in given if isinstance(each, LookupMethod)]
    if len(methods) == len(given):
        return methods
    raise TypeError(f"also is a list of LookupMethods, not {also!r}")


def _access_method(table: LookedUpTable, method: LookupMethod, on_error: str) -> AccessMethod:
    """Return an access method with its mirrors, all of them checked."""
    limits = method.limits(on_error)
    first, *mirrors = method.sources
    for each in (first, *mirrors):
        each.check(table)
    return AccessMethod(
        table, first, limits, tuple(AccessMethod(table, each, limits) for each in mirrors)
    )
