"""The functions of the queries with their types, as a session gets to know them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from bench.short import functions


class How(StrEnum):
    """How a function becomes one of Spark's."""

    PLAIN = "plain"  # udf(function, type)
    ARROW = "arrow"  # udf(function, type, useArrow=True)
    PANDAS = "pandas"  # pandas_udf(function, type)


@dataclass(frozen=True, slots=True)
class Registered:
    """A function under its own name in SQL."""

    function: Callable[..., Any]
    returns: str
    how: How = How.PLAIN

    def register(self, spark: SparkSession) -> None:
        """Make it known to a session."""
        match self.how:
            case How.PLAIN:
                made: Any = F.udf(self.function, self.returns)
            case How.ARROW:
                made = F.udf(self.function, self.returns, useArrow=True)
            case How.PANDAS:
                made = F.pandas_udf(self.function, self.returns)  # type: ignore[attr-defined]  # PySpark's own lists no such name
        spark.udf.register(self.function.__name__, made)


FUNCTIONS: Final = (
    Registered(functions.parse_date, "date"),
    Registered(functions.currency_of, "string"),
    Registered(functions.parse_amount, "double"),
    Registered(functions.skus_of, "array<string>"),
    Registered(functions.pieces_of, "int"),
    Registered(functions.tags_of, "array<string>", How.ARROW),
    Registered(functions.clean_phone, "string"),
    Registered(functions.country_code, "string"),
    Registered(functions.title_case, "string", How.ARROW),
    Registered(functions.is_email, "boolean"),
    Registered(functions.email_domain, "string"),
    Registered(functions.without_accents, "string"),
    Registered(functions.slug, "string"),
    Registered(functions.company_key, "string"),
    Registered(functions.similarity, "double"),
    Registered(functions.domain_of, "string"),
    Registered(functions.section_of, "string"),
    Registered(functions.parameter_of, "string"),
    Registered(functions.is_bot, "boolean", How.ARROW),
    Registered(functions.browser_of, "string", How.ARROW),
    Registered(functions.device_of, "string"),
    Registered(functions.is_private, "boolean"),
    Registered(functions.subnet_of, "string"),
    Registered(functions.is_iban, "boolean", How.ARROW),
    Registered(functions.order_number, "bigint"),
    Registered(functions.mood_of, "int"),
    Registered(functions.topic_of, "string"),
    Registered(functions.masked, "string"),
    Registered(functions.working_days, "int"),
    Registered(functions.years_at, "int"),
    Registered(functions.normalized, "string", How.PANDAS),
    Registered(functions.discounted, "double", How.PANDAS),
)


def register_all(spark: SparkSession) -> None:
    """Make all functions known to a session."""
    for function in FUNCTIONS:
        function.register(spark)
