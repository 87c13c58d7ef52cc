"""Cases in which the order of the joins decides how often a costly function is called.

The cases of :mod:`bench.adversarial.orders`, smaller, with a model in each of them: Spark calls it
as soon as its columns are at hand, on rows that a later join would have dropped.
"""

# ruff: noqa: PLR2004 - what a predicate compares with says how much it passes

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from bench.adversarial.case import Case, Columns, Integers
from bench.adversarial.costly import costly
from bench.adversarial.orders import (
    BadFromOrder,
    ChainWithExpandingMiddle,
    StarWithSelectiveDimension,
)


class ModelAndBadFromOrder(BadFromOrder):
    """The FROM clause starts with a pair that expands, a model looks at one of the two.

    The table that stands last keeps one row in 200 of what the model is to see.
    """

    asks_much = True
    clicks = 200_000

    def query(self, spark: SparkSession) -> DataFrame:
        """Return the visits beside the clicks by people on pages about one topic."""
        by_people = costly(lambda seconds: seconds >= 60, microseconds=30)
        spark.udf.register("is_by_people", by_people, "boolean")
        return spark.sql("""
            SELECT length, count(*) AS pairs, sum(seconds) AS seconds
            FROM clicks
            JOIN visits ON clicks.user_id = visits.user_id
            JOIN pages ON clicks.page_id = pages.page_id
            WHERE topic = 7 AND is_by_people(seconds)
            GROUP BY length
        """)


class ModelInExpandingMiddle(ChainWithExpandingMiddle):
    """A chain a-b-c-d is written from its middle, which expands forty times; a model is there.

    Both ends are selective: coming from either, few rows of the middle are left to look at.
    """

    asks_much = True
    middle = 200_000

    def query(self, spark: SparkSession) -> DataFrame:
        """Return how senders of some names reach receivers of some kind by heavy parcels."""
        heavy = costly(lambda weight: weight >= 10, microseconds=30)
        spark.udf.register("is_heavy", heavy, "boolean")
        return spark.sql("""
            SELECT kind, count(*) AS ways, sum(weight) AS weight
            FROM outgoing
            JOIN incoming ON outgoing.place = incoming.place
            JOIN senders ON outgoing.sender = senders.sender
            JOIN receivers ON incoming.receiver = receivers.receiver
            WHERE is_heavy(weight) AND name < 20 AND kind < 2
            GROUP BY kind
        """)


class ModelOverStar(StarWithSelectiveDimension):
    """A model looks at facts of which a dimension, too large to broadcast, keeps one in 200.

    Two more dimensions keep all; nobody can know which of the three is the one.
    """

    asks_much = True
    facts = 300_000
    a_dimension = 1

    def query(self, spark: SparkSession) -> DataFrame:
        """Return the plausible sales of some shops with what is known about them."""
        plausible = costly(lambda amount: amount < 700, microseconds=30)
        spark.udf.register("is_plausible", plausible, "boolean")
        return spark.sql("""
            SELECT sales.customer_id, amount, customer_0, customer_1, product_0, shop_1
            FROM sales
            JOIN customers ON sales.customer_id = customers.customer_id
            JOIN products ON sales.product_id = products.product_id
            JOIN shops ON sales.shop_id = shops.shop_id
            WHERE is_plausible(amount) AND shop_0 % 200 = 0
        """)


class ModelOverTriangle(Case):
    """A cyclic join in which a model looks at pairs, of which few close to triangles.

    Spark asks it about each pair of the first join; the third table drops nearly all.
    """

    def columns(self, draw: np.random.Generator) -> Mapping[str, Columns]:
        """Return three relations of edges, whose pairs grow with ``size`` and not their rows."""
        spokes = self.rows(400, squared=True)

        def edges(source: str, target: str, weight: str) -> Columns:
            # From a hub to everywhere, itself included, and from everywhere to the hub.
            spoke, hub = np.arange(1, spokes + 1), np.zeros(spokes, np.int64)
            shuffled = draw.permutation(2 * spokes + 1)
            return {
                source: np.concatenate([hub, spoke, [0]])[shuffled],
                target: np.concatenate([spoke, hub, [0]])[shuffled],
                weight: draw.integers(100, size=2 * spokes + 1),
            }

        return {
            "knows": edges("a", "b", "years"),
            "likes": edges("b", "c", "much"),
            "trusts": edges("c", "a", "score"),
        }

    def query(self, spark: SparkSession) -> DataFrame:
        """Return the triangles of which two sides agree."""
        agree = costly(lambda years, much: years <= much, microseconds=30)
        spark.udf.register("agree", agree, "boolean")
        return spark.sql("""
            SELECT knows.a, likes.b, trusts.c
            FROM knows
            JOIN likes ON knows.b = likes.b
            JOIN trusts ON likes.c = trusts.c AND trusts.a = knows.a
            WHERE agree(years, much)
        """)


class ModelAndMisleadingFileSize(Case):
    """Five million rows compress to some kilobytes, so Spark takes them for a small table.

    A model looks at events, one in 200 of which is of a device that is asked for.
    """

    compressed = frozenset({"measurements"})

    def columns(self, draw: np.random.Generator) -> Mapping[str, Columns]:
        """Return measurements at every second, and events at some of them."""
        seconds = self.rows(5_000_000)
        many = self.rows(150_000)
        devices = max(many // 100, 1)
        return {
            "measurements": {"second": np.arange(seconds), "value": np.arange(seconds) * 3},
            "events": {
                "second": draw.integers(seconds, size=many),
                "device": draw.integers(devices, size=many),
                "code": draw.integers(100, size=many),
            },
            "devices": {"device": np.arange(devices), "age": np.arange(devices) % 200},
        }

    def query(self, spark: SparkSession) -> DataFrame:
        """Return what was measured at the serious events of the newest devices."""
        serious = costly(lambda code: code < 90, microseconds=30)
        spark.udf.register("is_serious", serious, "boolean")
        return spark.sql("""
            SELECT events.device, value
            FROM measurements
            JOIN events ON measurements.second = events.second
            JOIN devices ON events.device = devices.device
            WHERE age = 0 AND is_serious(code)
        """)


class SkewedKeys(Case):
    """Both sides have keys by Zipf's law (1.2), so a handful of keys makes nearly all pairs.

    The table whose predicate rejects just these keys stands last.
    """

    def columns(self, draw: np.random.Generator) -> Mapping[str, Columns]:
        """Return posts and replies by authors, whose pairs grow with ``size``."""
        many = self.rows(60_000, squared=True)
        authors = 40_000

        def zipf() -> Integers:
            weights = np.arange(1, authors + 1) ** -1.2
            return draw.choice(authors, size=many, p=weights / weights.sum())

        return {
            "posts": {"author": zipf(), "length": draw.integers(1000, size=many)},
            "replies": {"author": zipf(), "score": draw.integers(10, size=many)},
            "authors": {"author": np.arange(authors), "rank": np.arange(authors)},
        }

    def query(self, spark: SparkSession) -> DataFrame:
        """Return the replies to posts of all but the most eager authors."""
        spark.udf.register("is_human", costly(lambda rank: rank >= 30, microseconds=20), "boolean")
        return spark.sql("""
            SELECT score, count(*) AS pairs, sum(length) AS length
            FROM posts
            JOIN replies ON posts.author = replies.author
            JOIN authors ON posts.author = authors.author
            WHERE is_human(rank)
            GROUP BY score
        """)
