"""Cases in which the place of a Python predicate among the joins hurts.

Spark pushes a predicate down to the first place where its columns are at hand,
for it cannot know what a call costs, nor what a join will leave.
"""

# ruff: noqa: PLR2004 - what a predicate compares with says how much it passes

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from bench.adversarial.case import Case, Columns
from bench.adversarial.costly import costly


class PredicateBeforeJoins(Case):
    """A predicate rejects 99 rows in 100 of the table whose joins expand.

    Spark's push-down is right here: whoever delays Python on principle pays for the
    expansion.
    """

    def columns(self, draw: np.random.Generator) -> Mapping[str, Columns]:
        """Return orders, and shipments and messages, twenty and four for each of them."""
        many = self.rows(150_000)
        return {
            "orders": {"order_id": np.arange(many), "code": draw.integers(1000, size=many)},
            "messages": {
                "order_id": draw.integers(many, size=4 * many),
                "length": draw.integers(500, size=4 * many),
            },
            "shipments": {
                "order_id": draw.integers(many, size=2 * many),
                "weight": draw.integers(100, size=2 * many),
            },
        }

    def query(self, spark: SparkSession) -> DataFrame:
        """Return what was shipped and said about suspicious orders."""
        spark.udf.register("is_odd", costly(lambda code: code < 10, microseconds=40), "boolean")
        return spark.sql("""
            SELECT weight, count(*) AS lines, sum(length) AS length
            FROM messages
            JOIN orders ON messages.order_id = orders.order_id
            JOIN shipments ON orders.order_id = shipments.order_id
            WHERE is_odd(code)
            GROUP BY weight
        """)


class PredicateAfterJoins(Case):
    """An expensive predicate passes nine rows in ten, two native joins one in 25.

    Spark pushes the predicate below both and calls it on every row.
    """

    def columns(self, draw: np.random.Generator) -> Mapping[str, Columns]:
        """Return documents, and the licences and languages of some."""
        many = self.rows(40_000)
        return {
            "documents": {
                "id": np.arange(many),
                "licence": draw.integers(500, size=many),
                "language": draw.integers(50, size=many),
                "quality": draw.integers(100, size=many),
            },
            "licences": {"licence": np.arange(500), "is_open": np.arange(500) % 5 == 0},
            "languages": {"language": np.arange(50), "family": np.arange(50) % 5},
        }

    def query(self, spark: SparkSession) -> DataFrame:
        """Return the good documents under open licences in one family of languages."""
        spark.udf.register("is_good", costly(lambda q: q >= 10, microseconds=200), "boolean")
        return spark.sql("""
            SELECT id, quality
            FROM documents
            JOIN licences ON documents.licence = licences.licence
            JOIN languages ON documents.language = languages.language
            WHERE is_good(quality) AND is_open AND family = 2
        """)


class PredicateBetweenJoins(Case):
    """The best place of the predicate is between a join that shrinks and one that expands.

    The one keeps a row in 20, the other makes 100 of each; Spark calls the predicate
    before both, and then expands first.
    """

    def columns(self, draw: np.random.Generator) -> Mapping[str, Columns]:
        """Return accounts, a hundred bookings a group, and the members among them."""
        many = self.rows(60_000)
        groups = max(many // 100, 1)
        return {
            "accounts": {
                "account": np.arange(many),
                "circle": draw.integers(groups, size=many),
                "score": draw.integers(1000, size=many),
            },
            "bookings": {
                "circle": draw.integers(groups, size=many),
                "amount": draw.integers(500, size=many),
            },
            "members": {"account": np.arange(many), "level": draw.integers(20, size=many)},
        }

    def query(self, spark: SparkSession) -> DataFrame:
        """Return the bookings in the circles of members of one level whom a model suspects."""
        suspects = costly(lambda score: score < 200, microseconds=100)
        spark.udf.register("is_suspect", suspects, "boolean")
        return spark.sql("""
            SELECT accounts.account, count(*) AS bookings, sum(amount) AS amount
            FROM accounts
            JOIN bookings ON accounts.circle = bookings.circle
            JOIN members ON accounts.account = members.account
            WHERE is_suspect(score) AND level = 3
            GROUP BY accounts.account
        """)


class BestPlaceChanges(Case):
    """While the query runs, the best place of the predicate moves from after the join to before.

    First the join drops 19 rows in 20 and the predicate passes all; half-way the join
    begins to make ten rows of each, and the predicate drops 19 in 20.
    """

    def columns(self, draw: np.random.Generator) -> Mapping[str, Columns]:
        """Return readings in the order of time, and alarms, more and more of them."""
        many = self.rows(80_000)
        half = many // 2
        early = draw.choice(half, size=half // 20, replace=False)
        late = draw.integers(half, many, size=10 * (many - half))
        sensor = np.concatenate([early, late])
        value = draw.integers(1000, size=many)
        value[:half] = 0
        return {
            "readings": {"sensor": np.arange(many), "value": value},
            "alarms": {"sensor": sensor, "level": draw.integers(10, size=len(sensor))},
        }

    def query(self, spark: SparkSession) -> DataFrame:
        """Return the alarms beside readings that a model takes for real."""
        spark.udf.register("is_real", costly(lambda value: value < 50, microseconds=80), "boolean")
        return spark.sql("""
            SELECT level, count(*) AS alarms, sum(value) AS value
            FROM readings
            JOIN alarms ON readings.sensor = alarms.sensor
            WHERE is_real(value)
            GROUP BY level
        """)


class PredicateOverTwoTables(Case):
    """A predicate compares columns of two tables, so Spark calls it on every pair of them.

    The third join, which comes after it, would have left one pair in 25.
    """

    def columns(self, draw: np.random.Generator) -> Mapping[str, Columns]:
        """Return offers and wishes about things, and the owners of the offers."""
        many = self.rows(20_000)
        things, owners = many // 5, many // 10
        return {
            "offers": {
                "thing": draw.integers(things, size=many),
                "owner": draw.integers(owners, size=many),
                "price": draw.integers(1000, size=many),
            },
            "wishes": {
                "wish": np.arange(many // 2),
                "thing": draw.integers(things, size=many // 2),
                "budget": draw.integers(1000, size=many // 2),
            },
            "owners": {"owner": np.arange(owners), "town": draw.integers(25, size=owners)},
        }

    def query(self, spark: SparkSession) -> DataFrame:
        """Return offers and wishes in one town that suit each other."""
        suits = costly(lambda price, budget: price <= budget, microseconds=100)
        spark.udf.register("suits", suits, "boolean")
        return spark.sql("""
            SELECT wish, offers.thing, price, budget
            FROM offers
            JOIN wishes ON offers.thing = wishes.thing
            JOIN owners ON offers.owner = owners.owner
            WHERE suits(price, budget) AND town = 11
        """)


class CorrelatedPredicates(Case):
    """Two of three predicates reject the same rows, so the second does nothing after the first.

    By itself it looks as selective as the other; only selectivities under a condition
    show what it is worth.
    """

    def columns(self, draw: np.random.Generator) -> Mapping[str, Columns]:
        """Return flats with a price and nearly the same price again, and their streets."""
        many = self.rows(80_000)
        streets = max(many // 20, 1)
        price = draw.integers(1000, size=many)
        noisy = np.where(draw.random(many) < 0.02, draw.integers(1000, size=many), price)
        return {
            "flats": {
                "flat": np.arange(many),
                "street": draw.integers(streets, size=many),
                "price": price,
                "value": noisy,
                "rooms": draw.integers(1000, size=many),
            },
            "streets": {"street": np.arange(streets), "noise": draw.integers(10, size=streets)},
        }

    def query(self, spark: SparkSession) -> DataFrame:
        """Return flats in quiet streets that are cheap, cheap again, and large."""
        cheap = costly(lambda price: price < 300, microseconds=25)
        large = costly(lambda rooms: rooms < 400, microseconds=25)
        spark.udf.register("is_cheap", cheap, "boolean")
        spark.udf.register("is_large", large, "boolean")
        return spark.sql("""
            SELECT flat, price, rooms
            FROM flats
            JOIN streets ON flats.street = streets.street
            WHERE is_cheap(price) AND is_cheap(value) AND is_large(rooms) AND noise < 5
        """)


class SelectivitiesSwap(Case):
    """Two predicates, each over another dimension, exchange their selectivities half-way.

    With them the best order of the two joins changes: each fixed order is wrong for a half.
    """

    def columns(self, draw: np.random.Generator) -> Mapping[str, Columns]:
        """Return trips in the order of time, and the drivers and cars that made them."""
        many = self.rows(60_000)
        dimension = max(many // 60, 1)
        early = np.arange(many) < many // 2
        drawn = draw.integers(1000, size=(2, many))
        return {
            "trips": {
                "trip": np.arange(many),
                "driver": draw.integers(dimension, size=many),
                "car": draw.integers(dimension, size=many),
                # Against limits around 500: 95 in 100 pass, or 5 in 100.
                "speed": drawn[0] * 9 // 20
                + np.where(early, 0, 500)
                + draw.integers(50, size=many),
                "load": drawn[1] * 9 // 20 + np.where(early, 500, 0) + draw.integers(50, size=many),
            },
            "drivers": {
                "driver": np.arange(dimension),
                "limit": 475 + draw.integers(50, size=dimension),
            },
            "cars": {"car": np.arange(dimension), "most": 475 + draw.integers(50, size=dimension)},
        }

    def query(self, spark: SparkSession) -> DataFrame:
        """Return the trips on which driver and car kept their limits."""
        below = costly(lambda value, limit: value < limit, microseconds=60)
        spark.udf.register("is_below", below, "boolean")
        return spark.sql("""
            SELECT trip, speed, load
            FROM trips
            JOIN drivers ON trips.driver = drivers.driver
            JOIN cars ON trips.car = cars.car
            WHERE is_below(speed, limit) AND is_below(load, most)
        """)
