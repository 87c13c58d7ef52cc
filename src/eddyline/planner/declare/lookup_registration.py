"""The public face of lookup tables: what cannot be scanned, as a table in Spark SQL."""

from __future__ import annotations

import datetime as dt
import itertools
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from eddyline import catalyst
from eddyline.asking.access_method import AccessMethod
from eddyline.asking.limits import OnError
from eddyline.asking.lookup_source import LookedUpTable, LookupMethod, LookupSource
from eddyline.asking.price import FREE, Price
from eddyline.blocks.column_types import arrow_type_of, can_travel
from eddyline.blocks.lookup_table import LookupTable
from eddyline.checked_values import positive_number
from eddyline.expressions.value_types import MOST_FIELDS
from eddyline.host.classic import classic, classic_session
from eddyline.keeping.keep import Keep, keep_in
from eddyline.keeping.kept_answers import kept_answers
from eddyline.planner.declare.kept_folders import files_in
from eddyline.planner.declare.lookup_tables import lookup_tables_of
from eddyline.planner.read.lookup_leaves import LOOKUP_NAME
from eddyline.planner.rewrite.steps import map_in_arrow
from eddyline.quirks.described_types import from_ddl
from eddyline.tasks.not_adapted import BY_HAND, NotAdapted, Scanned
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
    scan_seconds: float | None = None,
    keep: str | os.PathLike[str] | None = None,
    version: str | None = None,
    valid: str | dt.timedelta | None = None,
    patience: str | dt.timedelta = "10 minutes",
    cost: float | None = None,
    unit: str = "",
    scan_cost: float | None = None,
) -> DataFrame:
    """Register a table whose rows are looked up, and return it as a DataFrame.

    Any query of the session may name it, as a temporary view, or use the DataFrame, and runs
    through :func:`~eddyline.adapt`: then ``source`` is asked for the rows with the query's values
    of the ``bind`` columns, once for each distinct combination in the whole job (Raman, Deshpande
    and Hellerstein, 2003, Section 2.1.3). Values may be constants (``=``, ``IN``) or columns of
    other tables that a join sets equal, also of other lookup tables; in an outer join, a semijoin
    or an antijoin they come from the side whose rows are kept.

    - ``schema``: a ``StructType`` or its DDL. ``bind``: the columns that must be given.
    - ``source``: an :class:`~eddyline.HttpLookup`, :class:`~eddyline.SqlLookup` or
      :class:`~eddyline.PythonLookup`. Several sources are mirrors: they give the same rows and
      compete for the keys. Each key is sent to one of them, a slow mirror gets fewer keys, and
      where one has no answer another is asked.
    - ``also``: further ways to the same rows, by other columns, each a
      :class:`~eddyline.LookupMethod`. ``scan``: a DataFrame with all rows and the same columns.
      With either, ``key`` names the columns that identify a row. Spark treats a table with a scan
      like any other. :func:`~eddyline.adapt` asks for the keys of a join, until those that are left
      would take longer than the scan: then all rows are scanned. :func:`~eddyline.watch` looks rows
      up while the scan is under way, where they are wanted sooner. Of several ways that a query has
      values for, ``adapt`` asks the one that is through first. ``scan_seconds``: how long a scan
      takes. By default what the last one took, or 100 MB a second of what Spark estimates, or 10 s
      where it knows nothing; below 2 s it is scanned at once.
    - ``cost``: what a request costs, in ``unit``, as 0.002 and "USD"; ``scan_cost`` is what a scan
      costs, in the same unit. The report says what was spent. Where ``worth`` of
      :func:`~eddyline.adapt` says how many seconds a unit is worth, these count like seconds in the
      choice between ways, and between them and the scan.
    - ``max_in_flight`` and ``rate``: the most requests to a source at a time, and the most that
      begin in a second, for the whole job. ``timeout``: seconds of a request. ``retries``: further
      attempts, where these may help. ``patience``: how long a spent quota is waited for, as "2h",
      while nothing is accepted; a refusal for quota (429, or 503 with ``Retry-After``) is no
      attempt, and the whole job waits and learns how many requests are accepted.
    - ``on_error``: what becomes of a key without an answer: "fail", "null" for a row of NULLs
      beside the key, "skip" for no row.
    - ``keep``, ``version`` and ``valid``: a folder in which answers are kept
      (:func:`~eddyline.ledger`), of the driver's machine, or with a URL on any file system that
      Hadoop knows: a key that was answered once, with rows or without, is not asked for again, in
      this query, the next or another application. Answers are those of the sources' ``version``, by
      default of what the first one asks and where. Those older than ``valid``, as "30 days", are
      asked for anew.

    Raises ``TypeError`` and ``ValueError`` for invalid arguments, ``MissingSecretError`` where an
    environment variable that a source names is not set, ``ConnectNotSupportedError`` on Spark
    Connect.

    A query over the table raises:

    - ``UnboundLookupError``, by ``adapt``: it gives no values for the bind columns.
    - ``NotAdaptedError``: it runs without ``adapt``.
    - ``LookupFailedError``: a key has no answer, and ``on_error`` is "fail"; the message names
      source and key.
    - ``ServerGoneError``: a task cannot reach the driver.

    Errors inside a task reach the driver as Spark's ``PythonException``, with their text.
    """
    spark = classic_session(spark)
    scan_price = _price(scan_cost, unit if cost is None or scan_cost is not None else "")
    seconds = None if scan_seconds is None else positive_number(scan_seconds, "scan_seconds")
    if seconds is not None and scan is None:
        raise ValueError("scan_seconds says how long a scan takes, and there is no scan")
    if scan_cost is not None and scan is None:
        raise ValueError("scan_cost says what a scan costs, and there is no scan")
    first = LookupMethod(
        bind,
        source,
        max_in_flight=max_in_flight,
        rate=rate,
        timeout=timeout,
        retries=retries,
        patience=patience,
        cost=cost,
        unit=unit if cost is not None else "",
    )
    leaf = lookup_leaf(
        spark,
        name,
        schema,
        (first, *_further(also)),
        key=key,
        on_error=on_error,
        scan=None if scan is None else GivenScan(scan, seconds, scan_price),
        keep=keep_in(keep, version, valid),
    )
    frame = catalyst.dataframe_over(spark, leaf)
    frame.createOrReplaceTempView(name)
    return frame


@dataclass(frozen=True, slots=True)
class GivenScan:
    """All rows of a lookup table, the seconds of a scan of them, if told, and its price."""

    rows: DataFrame
    seconds: float | None
    price: Price


def lookup_leaf(
    spark: SparkSession,
    name: str,
    schema: StructType | str,
    ways: Sequence[LookupMethod],
    *,
    key: Sequence[str] = (),
    on_error: str = "fail",
    scan: GivenScan | None = None,
    keep: Keep | None = None,
    advice: str = BY_HAND,
) -> catalyst.Plan:
    """Register a table whose rows are looked up in one of these ways; return its leaf in plans.

    What fails where Spark runs it gives this ``advice``. Raises as :func:`lookup_table` does.
    """
    if not isinstance(name, str):
        raise TypeError(f"a table's name is a text, not {name!r}")
    sensitive = str(spark.conf.get(CASE_SENSITIVE)).lower() == "true"
    struct = described_columns(schema, sensitive=sensitive)
    numbers = partial(column_numbers, name, struct, sensitive=sensitive)
    columns = tuple(struct.fieldNames())
    zone = str(spark.conf.get(TIME_ZONE))
    types = tuple(arrow_type_of(field.dataType, zone) for field in struct.fields)
    key_columns = numbers(key, "key")
    if (len(ways) > 1 or scan is not None) and not key:
        raise ValueError(
            f"{name} has several ways to its rows and needs a key, by which rows that two of "
            f"them give are known to be the same"
        )
    kept = keep or lookup_tables_of(spark.sparkContext).keep
    registered = []
    for method in ways:
        bound = numbers(method.bind, "bind")
        if not bound:
            raise ValueError(
                f"{name} needs a bind column: a table without is a table like any other"
            )
        table = LookedUpTable(name, columns, types, bound)
        registered.append(_access_method(table, method, on_error, kept))
    tables = lookup_tables_of(spark.sparkContext)
    bind_columns = tuple(method.table.bind_names for method in registered)
    chosen = [] if scan is None else list(map(_failing, registered))
    number = next(_NUMBERS)
    stand_in = (
        NotAdapted(name, bind_columns, number, advice) if scan is None else Scanned(name, number)
    )
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
            None if scan is None else scan.seconds,
            tables.methods(name, chosen),
            FREE if scan is None else scan.price,
        ),
        [*registered, *chosen],
    )
    below = spark.range(0, 1, 1, 1) if scan is None else _with_columns(name, scan.rows, struct)
    return map_in_arrow(
        catalyst.analyzed_plan(below),
        command,
        struct,
        [catalyst.plain_environment(spark.sparkContext)],
        name=f"{LOOKUP_NAME}{name})",
    )


def _with_columns(name: str, scan: DataFrame, struct: StructType) -> DataFrame:
    """Return a scan with the columns of a table; ValueError where it lacks any of them."""
    missing = [column for column in struct.fieldNames() if column not in classic(scan).columns]
    if missing:
        raise ValueError(f"the scan of {name} has no column {missing[0]}")
    return scan.select(
        *(F.col(f"`{field.name}`").cast(field.dataType).alias(field.name) for field in struct)
    )


def _further(also: object) -> list[LookupMethod]:
    given = list(also) if isinstance(also, Sequence) else [None]
    methods = [method for method in given if isinstance(method, LookupMethod)]
    if len(methods) == len(given):
        return methods
    raise TypeError(f"also is a list of LookupMethods, not {also!r}")


def _access_method(
    table: LookedUpTable, method: LookupMethod, on_error: str, keep: Keep | None
) -> AccessMethod:
    """Return an access method with its mirrors, all of them checked."""
    limits = method.limits(on_error)
    first, *mirrors = method.sources
    for source in (first, *mirrors):
        source.check(table)
    kept = None
    if keep is not None:
        given = [f"{table.columns[n]} {table.types[n]}" for n in table.bind]
        files = files_in(keep.folder)
        kept = kept_answers(keep, table.name, first, given, table.schema, files=files)
    return AccessMethod(
        table,
        first,
        limits,
        tuple(AccessMethod(table, mirror, limits) for mirror in mirrors),
        kept,
        _price(method.cost, method.unit),
    )


def _price(cost: object, unit: str) -> Price:
    """Return the price of a request or a scan; TypeError, ValueError for what is none."""
    if callable(cost):
        raise TypeError(f"the cost of a request is a number, not {cost!r}")
    return Price(cost, unit)  # type: ignore[arg-type]  # it says what else is no number


def _failing(method: AccessMethod) -> AccessMethod:
    """Return an access method that says of each key that it has no answer, if it has none."""
    limits = replace(method.limits, on_error=OnError.FAIL)
    return replace(method, limits=limits, mirrors=tuple(map(_failing, method.mirrors)))


def described_columns(schema: StructType | str, *, sensitive: bool) -> StructType:
    """Return the columns that a schema describes, all of them nullable, whatever a source promises.

    ``sensitive``: names that differ in case are different ones, as Spark is set. TypeError for no
    schema, ValueError for a name that two columns have or a type that no eddy carries, PySpark's
    errors for what is no DDL.
    """
    if isinstance(schema, str):
        parsed = from_ddl(schema) if schema.strip() else StructType()
        if not isinstance(parsed, StructType):
            raise TypeError(f"a schema describes columns, which {schema!r} does not")
    elif isinstance(schema, StructType):
        parsed = StructType.fromJson(schema.jsonValue())
    else:
        raise TypeError(f"a schema is a StructType or its DDL, not {schema!r}")
    names = Counter(name if sensitive else name.lower() for name in parsed.fieldNames())
    for field in parsed.fields:
        if names[field.name if sensitive else field.name.lower()] > 1:
            raise ValueError(f"a schema names each column once, and {field.name} again")
        if not can_travel(field.dataType.json()):
            raise ValueError(
                f"{field.name} is of type {field.dataType.simpleString()}, which cannot be "
                f"carried to an eddy"
            )
        field.nullable = True
    return parsed


def column_numbers(
    table: str, struct: StructType, wanted: Sequence[str], what: str, *, sensitive: bool
) -> tuple[int, ...]:
    """Return the places of the columns that ``bind`` or ``key`` names, as Spark resolves names.

    TypeError for what is no list of names, ValueError for a column that does not exist, is named
    twice, or cannot make a key: arrays and maps, and where rows are looked up by it, structs.
    """
    if isinstance(wanted, str) or not isinstance(wanted, Sequence):
        raise TypeError(f"{what} is a list of columns, not {wanted!r}")
    if len(wanted) > MOST_FIELDS:
        raise ValueError(f"{what} of {table} has {len(wanted)} columns: {MOST_FIELDS} at the most")
    columns = struct.fieldNames()
    places = {(name if sensitive else name.lower()): n for n, name in enumerate(columns)}
    numbers: list[int] = []
    for name in wanted:
        if not isinstance(name, str):
            raise TypeError(f"{what} is a list of columns' names, of which {name!r} is none")
        place = places.get(name if sensitive else name.lower())
        if place is None:
            raise ValueError(f"{table} has no column {name}; it has {', '.join(columns)}")
        if place in numbers:
            raise ValueError(f"{what} of {table} names {name} twice")
        _require_key(table, columns[place], struct.fields[place].dataType, what)
        numbers.append(place)
    return tuple(numbers)


def _require_key(table: str, column: str, kind: DataType, what: str) -> None:
    nested = ArrayType | MapType | StructType if what == "bind" else ArrayType | MapType
    if isinstance(kind, nested):
        raise ValueError(  # noqa: TRY004 - the type is a column's, not the argument's
            f"{table} cannot have {column} in {what}: it is of type {kind.simpleString()}, of "
            f"which no key is made"
        )
