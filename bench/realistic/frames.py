"""The same queries as DataFrames, for clients that have no text of SQL adapted.

Each is written as its text in :mod:`bench.realistic.queries` is, clause by clause.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, Final, TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

Tables: TypeAlias = Callable[[str], DataFrame]
Frame: TypeAlias = Callable[[Tables, Any], DataFrame]
"""Given the tables, and the query's functions as attributes, the query."""


def _dates(table: Tables, f: SimpleNamespace) -> DataFrame:
    day = f.clean_date("ordered")
    late = table("orders").where(day >= F.lit("2022-01-01").cast("date"))
    return late.groupBy("shop", F.month(day).alias("month")).agg(F.count("*").alias("orders"))


def _refunds(table: Tables, f: SimpleNamespace) -> DataFrame:
    return table("orders").where(f.wants_refund("payload")).select("order_id", "shop")


def _settings(table: Tables, f: SimpleNamespace) -> DataFrame:
    theme = f.theme_of("settings").alias("theme")
    return table("user_settings").groupBy(theme).agg(F.count("*").alias("users"))


def _errors(table: Tables, f: SimpleNamespace) -> DataFrame:
    seen = table("log").where(f.is_by_a_person("line") & f.is_server_error("line"))
    return seen.groupBy(f.path_of("line").alias("path")).agg(F.count("*").alias("errors"))


def _browsers(table: Tables, f: SimpleNamespace) -> DataFrame:
    outside = table("log").where(~f.is_internal("ip"))
    browser = f.browser_of("agent").alias("browser")
    return outside.groupBy(browser).agg(F.countDistinct("ip").alias("visitors"))


def _identifiers(table: Tables, f: SimpleNamespace) -> DataFrame:
    doi = f.doi_of("reference")
    known = table("bibliography").where(doi.isNotNull() & f.is_isbn("isbn"))
    return known.select("reference_id", doi.alias("doi"))


def _complaints(table: Tables, f: SimpleNamespace) -> DataFrame:
    told = table("reviews").where(f.is_english("text") & f.complains("text"))
    return told.select("product", f.keywords("text").alias("words"))


def _comments(table: Tables, f: SimpleNamespace) -> DataFrame:
    comments = table("reviews").select("review_id", f.plain_text("comment").alias("text"))
    return comments.orderBy(F.desc("review_id")).limit(500)


def _publications(table: Tables, f: SimpleNamespace) -> DataFrame:
    library, catalogue = table("library"), table("catalogue")
    both = (library.published == catalogue.published) & (library.volume == catalogue.volume)
    same = f.same_authors(library.authors, catalogue.authors)
    alike = library.join(catalogue, both).where(same & f.same_title(library.title, catalogue.title))
    return alike.select("publication", "entry")


def _names(table: Tables, f: SimpleNamespace) -> DataFrame:
    with_cities = table("customers").join(table("cities"), "city")
    return with_cities.select("customer_id", f.name_key("name").alias("name_key"), "city_name")


def _callable(table: Tables, f: SimpleNamespace) -> DataFrame:
    with_cities = table("customers").join(table("cities"), "city")
    called = with_cities.where(f.is_phone_number("phone") & (F.col("region") == 3))  # noqa: PLR2004
    return called.select("customer_id", "city_name")


def _addresses(table: Tables, f: SimpleNamespace) -> DataFrame:
    return table("customers").where(f.is_free_mail("email")).agg(F.count("*").alias("customers"))


FRAMES: Final[Mapping[str, Frame]] = {
    "dates to clean": _dates,
    "refunds in payloads": _refunds,
    "settings to parse": _settings,
    "errors that people saw": _errors,
    "browsers outside": _browsers,
    "identifiers to extract": _identifiers,
    "English complaints": _complaints,
    "latest comments": _comments,
    "the same publications": _publications,
    "names beside their cities": _names,
    "people who can be called": _callable,
    "addresses at free providers": _addresses,
}
"""By the name of the query."""
