"""What a PySpark that nobody has tested is trusted with: what gives plain Spark's rows here, too.

At the first use a tiny query of each kind runs plainly and adapted, in a session of its own. Kinds
that fail or give other rows are left to Spark from then on, in the whole application. A version
that is tested costs nothing.
"""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from eddyline.host.per_context import PerContext
from eddyline.host.versions import UntestedPySparkWarning, installed_version, is_tested
from eddyline.planner.tiny_queries import QUERIES, AdaptedPart, Query

Adapt: TypeAlias = Callable[[DataFrame, str], DataFrame]
"""Adapts a DataFrame, given which joins are claimed."""


@dataclass(slots=True)
class _Found:
    """What was found out in a context: why a kind is left to Spark."""

    begun: bool = False
    wrong: dict[AdaptedPart, str] = field(default_factory=dict)


_found: Final = PerContext[_Found](lambda _: _Found())
_checking: Final = threading.RLock()


def left_to_spark(spark: SparkSession) -> Mapping[AdaptedPart, str]:
    """Return the kinds that went wrong in this application, and how."""
    return {} if is_tested() else dict(_found.of(spark.sparkContext).wrong)


def check_once(spark: SparkSession, adapt: Adapt) -> None:
    """Try each kind, unless this version is tested or that was done; warn of what goes wrong."""
    if is_tested():
        return
    found = _found.of(spark.sparkContext)
    with _checking:  # others wait; the check itself adapts in this thread
        if found.begun:
            return
        found.begun = True
        try:
            _check(spark, adapt, found)
        except BaseException:  # as by Ctrl-C: the next use begins again
            found.begun = False
            raise


def _check(spark: SparkSession, adapt: Adapt, found: _Found) -> None:
    own = spark.newSession()  # where nothing is enabled
    for kind, queries in QUERIES.items():
        for query in queries:
            wrong = what_is_wrong(query, own, adapt)
            if wrong:
                found.wrong[kind] = wrong
                warnings.warn(
                    f"With PySpark {installed_version()}, which is not tested, {kind} went wrong "
                    f"in a tiny query ({wrong}): they are left to Spark.",
                    UntestedPySparkWarning,
                    stacklevel=3,
                )
                break


def what_is_wrong(query: Query, spark: SparkSession, adapt: Adapt) -> str:
    """Return how an adapted query differs from the plain one; "" if it does not."""
    try:
        plain = query(spark)
        expected = Counter(map(repr, plain.collect()))
        adapted = adapt(query(spark), "always")
        if adapted.schema != plain.schema:
            return "another schema"
        rows = Counter(map(repr, adapted.collect()))
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not reach the user's query
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0]:.200}"
    return "" if rows == expected else "other rows"
