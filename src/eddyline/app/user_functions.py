"""Makes a user's Python functions callable from Spark's SQL."""

from __future__ import annotations

import datetime as dt
import importlib
import importlib.util
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from types import ModuleType, UnionType
from typing import Any, Final, Union, cast, get_args, get_origin, get_type_hints

from pyspark.cloudpickle import register_pickle_by_value
from pyspark.errors import ParseException, PySparkException
from pyspark.sql import SparkSession

from eddyline.app.endings import UsageError
from eddyline.app.invocation import FunctionSource
from eddyline.app.script_errors import where_it_failed
from eddyline.app.spark_errors import essence
from eddyline.app.without_spark import SparkAskedForError, needs_spark, spark_kept_from_starting

# As Spark infers types from Python's values; Spark's own `int` and `float` are narrower.
_SQL_TYPES: dict[object, str] = {
    bool: "boolean",
    int: "bigint",
    float: "double",
    str: "string",
    bytes: "binary",
    Decimal: "decimal(38,18)",
    dt.date: "date",
    dt.datetime: "timestamp",
    dt.timedelta: "interval day to second",
}

# Since Spark 4.2 its own functions hide those of a session that have the same name, without
# a word: `--udf rules:day` would never be called. Earlier versions know no such setting.
_ORDER_SETTING: Final = "spark.sql.functionResolution.sessionOrder"


def prefer_registered(spark: SparkSession) -> None:
    """Let queries of this session find a user's function before Spark's own of the same name."""
    spark.conf.set(_ORDER_SETTING, "first")


@dataclass(frozen=True, slots=True)
class LoadedFunction:
    """A function, its module, and the type of Spark's that it returns; None if it knows itself."""

    module: ModuleType
    function: Callable[..., Any]
    return_type: str | None


def load_before_spark(source: FunctionSource) -> None:
    """Raise :class:`UsageError` for what can be found wrong with a function without Spark.

    A module that asks for Spark when it is imported is left for :func:`register`.
    """
    top = source.module.partition(".")[0]
    if top not in sys.modules and importlib.util.find_spec(top) is None:
        raise UsageError(_missing(top))
    with suppress(SparkAskedForError), spark_kept_from_starting():
        _loaded(source)


def register(spark: SparkSession, source: FunctionSource) -> None:
    """Import a function and let queries call it by its name.

    What was made by ``@udf``, ``@pandas_udf`` or ``@arrow_udf`` stays as it is.
    A plain function returns the type that was given, or else that of its
    annotation. Raises :class:`UsageError` if it cannot be found, or cannot be a
    user-defined function.
    """
    loaded = _loaded(source)
    name = f"{source.module}:{source.function}"
    if any(map(_is_udf, vars(loaded.module).values())):
        # A worker that imports `@udf("boolean")` fails, since it has no session to read the
        # type with. So it gets the functions themselves instead of the way to their module.
        register_pickle_by_value(loaded.module)  # type: ignore[no-untyped-call]
    try:
        spark.udf.register(source.function, loaded.function, loaded.return_type)
    except ParseException as error:
        raise UsageError(
            f"--udf {name}: {loaded.return_type} is no type of Spark's; some are boolean, bigint, "
            "double, string, date, timestamp"
        ) from error
    except PySparkException as error:
        raise UsageError(f"--udf {name} cannot be used: {essence(error)}") from error


def _loaded(source: FunctionSource) -> LoadedFunction:
    module = _imported(source)
    function = _function(module, source)
    name = f"{source.module}:{source.function}"
    if not _is_udf(function):
        return LoadedFunction(module, function, source.return_type or _annotated(function, name))
    if source.return_type is not None:
        raise UsageError(f"--udf {name} says what it returns already; leave the type out")
    return LoadedFunction(module, function, None)


def _is_udf(value: object) -> bool:
    return hasattr(value, "asNondeterministic")  # PySpark's own test


def _imported(source: FunctionSource) -> ModuleType:
    try:
        return importlib.import_module(source.module)
    except (Exception, SystemExit) as error:
        if needs_spark(error):
            raise SparkAskedForError from error
        parts = source.module.split(".")
        above = {".".join(parts[:end]) for end in range(1, len(parts) + 1)}
        if isinstance(error, ModuleNotFoundError) and error.name in above:
            raise UsageError(_missing(str(error.name))) from error
        raise UsageError(
            f"--udf: the module {source.module} cannot be imported: {where_it_failed(error)}"
        ) from error


def _function(module: ModuleType, source: FunctionSource) -> Callable[..., Any]:
    function = getattr(module, source.function, None)
    if function is None:
        raise UsageError(f"--udf: the module {source.module} has no function {source.function}")
    if not callable(function) or isinstance(function, type):
        raise UsageError(f"--udf: {source.module}:{source.function} is not a function")
    return cast("Callable[..., Any]", function)


def _missing(module: str) -> str:
    return f"--udf: there is no module {module}, neither in this folder nor installed"


def _annotated(function: Callable[..., Any], name: str) -> str:
    try:
        annotation = get_type_hints(function).get("return")
    except Exception:  # a name in an annotation that does not exist, or worse  # noqa: BLE001
        annotation = None
    sql_type = _sql_type(annotation)
    if sql_type is None:
        raise UsageError(
            f"--udf: what {name} returns is not known; annotate it, or add Spark's type as in "
            f"{name}:boolean"
        )
    return sql_type


def _sql_type(annotation: object) -> str | None:
    """Return Spark's type for an annotation, None if there is none.

    >>> _sql_type(int), _sql_type(str | None), _sql_type(list[float]), _sql_type(object)
    ('bigint', 'string', 'array<double>', None)
    """
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in {Union, UnionType}:
        options = [option for option in inner if option is not type(None)]
        return _sql_type(options[0]) if len(options) == 1 else None
    if origin is list or origin is dict:
        parts = [_sql_type(part) for part in inner]
        if None in parts:
            return None
        return f"{'array' if origin is list else 'map'}<{','.join(map(str, parts))}>"
    return _SQL_TYPES.get(annotation)
