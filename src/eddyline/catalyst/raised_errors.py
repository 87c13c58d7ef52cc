"""What fails in a subquery, or in a rule of an optimizer's, surfaces as what it is."""

from __future__ import annotations

import re
import uuid
from collections import OrderedDict
from typing import Any, Final

from pyspark.errors.exceptions import captured

from eddyline.catalyst.gateway import static

WRAPPERS: Final = (
    "java.util.concurrent.ExecutionException",
    "org.apache.spark.SparkException",
)
"""What Spark puts around the failure of a subquery, which runs in a thread of its own."""

WAITED: Final = "Exception thrown in awaitResult"

_convert: Final = captured.convert_exception

_in_rules: Final[OrderedDict[str, BaseException]] = OrderedDict()
_UNTOLD: Final = 100  # errors that somebody may still be told, the latest ones


def raised_in_rule(error: BaseException) -> RuntimeError:
    """Return what to raise in place of an error that is to cross the JVM and come back."""
    captured.convert_exception = _converted  # type: ignore[assignment]  # of its argument's name
    name = f"eddyline-{uuid.uuid4().hex}"
    _in_rules[name] = error.with_traceback(None)
    while len(_in_rules) > _UNTOLD:
        _in_rules.popitem(last=False)
    return RuntimeError(f"{error} ({name})")


def _of_rule(error: Any) -> BaseException | None:  # noqa: ANN401  # Py4J has no types
    if not _in_rules:
        return None
    match = re.search(r"eddyline-[0-9a-f]{32}", str(error.toString()))
    return _in_rules.get(match.group()) if match else None


def raise_failures_of_subqueries() -> None:
    """Have PySpark raise the failure of a subquery as it does that of any other part of a query.

    It looks at an exception and not at its causes, so it gives a ``Py4JJavaError`` where a
    subquery fails. An adapted query has its small inputs gathered in one, and ``except
    PythonException`` is to catch what the same query raises without :func:`eddyline.adapt`. There
    is no way to tell adapted queries from others here, so subqueries of both gain by it.
    """
    captured.convert_exception = _converted  # type: ignore[assignment]  # of its argument's name


def _converted(error: Any) -> BaseException:  # noqa: ANN401  # Py4J has no types
    of_rule = _of_rule(error)
    if of_rule is not None:
        return of_rule
    converted = _convert(error)
    if not isinstance(converted, captured.UnknownException) or not _of_subquery(error):
        return converted
    around = cause = error
    while str(cause.getClass().getName()) in WRAPPERS and cause.getCause() is not None:
        around, cause = cause, cause.getCause()
    # PySpark 4.0 knows what has failed in Python only by what is around it.
    for told in (cause, around):
        within = _convert(told)
        if not isinstance(within, captured.UnknownException):
            return within
    return converted


def _of_subquery(error: Any) -> bool:  # noqa: ANN401  # Py4J has no types
    trace = str(static("org.apache.spark.util.Utils", "exceptionString")(error))
    return trace.startswith(f"{WRAPPERS[1]}: {WAITED}") and "SubqueryExec.executeCollect" in trace
