"""The queries: what is asked, of how many rows, and how somebody who knows the data writes it.

By hand, a function whose arguments repeat stands behind a cache
(:func:`bench.remembered.remembered`), of two predicates the one that should be first stands below
a barrier, and a function stands above a limit or a join that leaves few rows. Where nothing of that
helps, by hand is as it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from bench.realistic import functions
from bench.remembered import remembered

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Realistic:
    """A query over generated tables.

    ``rows`` are those of its tables at size 1, ``sql`` its text, ``uses`` its functions with
    their types. ``in_pandas`` are those written as ``pandas_udf``, ``repeats`` those that
    stand behind a cache by hand; ``by_hand`` is another text, if that is better, whose functions
    Spark leaves where they are.
    """

    name: str
    rows: Mapping[str, int]
    sql: str
    uses: Mapping[Function, str]
    in_pandas: frozenset[Function] = field(default_factory=frozenset)
    repeats: frozenset[Function] = field(default_factory=frozenset)
    by_hand: str = ""

    def ask(self, spark: SparkSession) -> DataFrame:
        """Return the query as it is written."""
        for function, returns in self.uses.items():
            spark.udf.register(function.__name__, self.as_udf(function, returns))
        return spark.sql(self.sql)

    def ask_by_hand(self, spark: SparkSession) -> DataFrame:
        """Return the query as somebody writes it who knows the data."""
        for function, returns in self.uses.items():
            called = remembered(function) if function in self.repeats else function
            typed = self.as_udf(called, returns, pandas=function in self.in_pandas)
            if self.by_hand:
                typed = typed.asNondeterministic()
            spark.udf.register(function.__name__, typed)
        return spark.sql(self.by_hand or self.sql)

    def as_udf(self, function: Function, returns: str, *, pandas: bool | None = None) -> Any:  # noqa: ANN401 - a UDF
        """Return a function of the query as Spark calls it."""
        if not (function in self.in_pandas if pandas is None else pandas):
            return F.udf(function, returns)

        def over_series(values: pd.Series) -> pd.Series:
            return values.map(function)

        return F.pandas_udf(over_series, returns)  # type: ignore[attr-defined]  # PySpark's own lists no such name


QUERIES: Final = (
    Realistic(
        "dates to clean",
        {"orders": 150_000},
        """
        SELECT shop, month(clean_date(ordered)) AS month, count(*) AS orders
        FROM orders
        WHERE clean_date(ordered) >= DATE '2022-01-01'
        GROUP BY shop, month(clean_date(ordered))
        """,
        {functions.clean_date: "date"},
        repeats=frozenset({functions.clean_date}),
        by_hand="""
        SELECT shop, month(day) AS month, count(*) AS orders
        FROM (SELECT shop, clean_date(ordered) AS day FROM orders)
        WHERE day >= DATE '2022-01-01'
        GROUP BY shop, month(day)
        """,
    ),
    Realistic(
        "refunds in payloads",  # one predicate, nothing repeats
        {"orders": 500_000},
        "SELECT order_id, shop FROM orders WHERE wants_refund(payload)",
        {functions.wants_refund: "boolean"},
    ),
    Realistic(
        "settings to parse",
        {"user_settings": 600_000},
        "SELECT theme_of(settings) AS theme, count(*) AS users FROM user_settings GROUP BY 1",
        {functions.theme_of: "string"},
        in_pandas=frozenset({functions.theme_of}),
        repeats=frozenset({functions.theme_of}),
    ),
    Realistic(
        "errors that people saw",  # three functions of one column
        {"log": 400_000},
        """
        SELECT path_of(line) AS path, count(*) AS errors
        FROM log
        WHERE is_by_a_person(line) AND is_server_error(line)
        GROUP BY 1
        """,
        {
            functions.is_by_a_person: "boolean",
            functions.is_server_error: "boolean",
            functions.path_of: "string",
        },
        by_hand="""
        SELECT path_of(line) AS path, count(*) AS errors
        FROM (SELECT line FROM log WHERE is_server_error(line))
        WHERE is_by_a_person(line)
        GROUP BY 1
        """,
    ),
    Realistic(
        "browsers outside",
        {"log": 600_000},
        """
        SELECT browser_of(agent) AS browser, count(DISTINCT ip) AS visitors
        FROM log
        WHERE NOT is_internal(ip)
        GROUP BY 1
        """,
        {functions.browser_of: "string", functions.is_internal: "boolean"},
        in_pandas=frozenset({functions.browser_of}),
        repeats=frozenset({functions.browser_of, functions.is_internal}),
    ),
    Realistic(
        "identifiers to extract",
        {"bibliography": 600_000},
        """
        SELECT reference_id, doi_of(reference) AS doi
        FROM bibliography
        WHERE doi_of(reference) IS NOT NULL AND is_isbn(isbn)
        """,
        {functions.doi_of: "string", functions.is_isbn: "boolean"},
        by_hand="""
        SELECT reference_id, doi
        FROM (
            SELECT reference_id, doi_of(reference) AS doi
            FROM (SELECT reference_id, reference FROM bibliography WHERE is_isbn(isbn))
        )
        WHERE doi IS NOT NULL
        """,
    ),
    Realistic(
        "English complaints",  # two predicates, nothing repeats
        {"reviews": 200_000},
        """
        SELECT product, keywords(text) AS words
        FROM reviews
        WHERE is_english(text) AND complains(text)
        """,
        {
            functions.is_english: "boolean",
            functions.complains: "boolean",
            functions.keywords: "string",
        },
        by_hand="""
        SELECT product, keywords(text) AS words
        FROM (SELECT product, text FROM reviews WHERE complains(text))
        WHERE is_english(text)
        """,
    ),
    Realistic(
        "latest comments",  # a select list under a limit
        {"reviews": 300_000},
        """
        SELECT review_id, plain_text(comment) AS text
        FROM reviews
        ORDER BY review_id DESC
        LIMIT 500
        """,
        {functions.plain_text: "string"},
        by_hand="""
        SELECT review_id, plain_text(comment) AS text
        FROM (SELECT review_id, comment FROM reviews ORDER BY review_id DESC LIMIT 500)
        """,
    ),
    Realistic(
        "the same publications",  # similarity of author lists in a join
        {"library": 12_000, "catalogue": 12_000},
        """
        SELECT publication, entry
        FROM library
        JOIN catalogue ON library.published = catalogue.published
                      AND library.volume = catalogue.volume
        WHERE same_authors(library.authors, catalogue.authors)
          AND same_title(library.title, catalogue.title)
        """,
        {functions.same_authors: "boolean", functions.same_title: "boolean"},
        by_hand="""
        SELECT publication, entry
        FROM (
            SELECT publication, entry, library.authors AS one, catalogue.authors AS other
            FROM library
            JOIN catalogue ON library.published = catalogue.published
                          AND library.volume = catalogue.volume
            WHERE same_title(library.title, catalogue.title)
        )
        WHERE same_authors(one, other)
        """,
    ),
    Realistic(
        "names beside their cities",  # a select list above a join
        {"customers": 600_000, "cities": 0},
        """
        SELECT customer_id, name_key(name) AS name_key, city_name
        FROM customers
        JOIN cities ON customers.city = cities.city
        """,
        {functions.name_key: "string"},
        in_pandas=frozenset({functions.name_key}),
        repeats=frozenset({functions.name_key}),
    ),
    Realistic(
        "people who can be called",  # nothing repeats, and a join keeps one in 20
        {"customers": 800_000, "cities": 0},
        """
        SELECT customer_id, city_name
        FROM customers
        JOIN cities ON customers.city = cities.city
        WHERE is_phone_number(phone) AND region = 3
        """,
        {functions.is_phone_number: "boolean"},
        by_hand="""
        SELECT /*+ BROADCAST(cities) */ customer_id, city_name
        FROM customers
        JOIN cities ON customers.city = cities.city
        WHERE region = 3 AND is_phone_number(phone)
        """,
    ),
    Realistic(
        "addresses at free providers",  # one cheap predicate, nothing repeats
        {"customers": 1_500_000},
        "SELECT count(*) AS customers FROM customers WHERE is_free_mail(email)",
        {functions.is_free_mail: "boolean"},
    ),
)
