"""Cases in which the place of a Python predicate among the joins hurts.

Spark pushes a predicate down to the first place where its columns are at hand,
for it cannot know what a call costs, nor what a join will leave.
"""

# ruff: noqa: PLR2004 - what a predicate compares with says how much it passes

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench.adversarial.case import Case, Columns, CostlyFunction


class PredicateBeforeJoins(Case):
    """A predicate rejects 99 rows in 100 of the table whose joins expand.

    Spark's push-down is right here: whoever delays Python on principle pays for the
    expansion.
    """

    functions = (CostlyFunction("is_odd", lambda code: code < 10, microseconds=40),)

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


class PredicateAfterJoins(Case):
    """An expensive predicate passes nine rows in ten, two native joins one in 25.

    Spark pushes the predicate below both and calls it on every row.
    """

    functions = (CostlyFunction("is_good", lambda q: q >= 10, microseconds=200),)

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


class PredicateBetweenJoins(Case):
    """The best place of the predicate is between a join that shrinks and one that expands.

    The one keeps a row in 20, the other makes 100 of each; Spark calls the predicate
    before both, and then expands first.
    """

    functions = (CostlyFunction("is_suspect", lambda score: score < 200, microseconds=100),)

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


class BestPlaceChanges(Case):
    """While the query runs, the best place of the predicate moves from after the join to before.

    First the join drops 19 rows in 20 and the predicate passes all; half-way the join
    begins to make ten rows of each, and the predicate drops 19 in 20.
    """

    functions = (CostlyFunction("is_real", lambda value: value < 50, microseconds=80),)

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


class PredicateOverTwoTables(Case):
    """A predicate compares columns of two tables, so Spark calls it on every pair of them.

    The third join, which comes after it, would have left one pair in 25.
    """

    functions = (CostlyFunction("suits", lambda price, budget: price <= budget, microseconds=100),)

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


class CorrelatedPredicates(Case):
    """Two of three predicates reject the same rows, so the second does nothing after the first.

    By itself it looks as selective as the other; only selectivities under a condition
    show what it is worth.
    """

    functions = (
        CostlyFunction("is_cheap", lambda price: price < 300, microseconds=25),
        CostlyFunction("is_large", lambda rooms: rooms < 400, microseconds=25),
    )

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


class SelectivitiesSwap(Case):
    """Two predicates, each over another dimension, exchange their selectivities half-way.

    With them the best order of the two joins changes: each fixed order is wrong for a half.
    """

    functions = (CostlyFunction("is_below", lambda value, limit: value < limit, microseconds=60),)

    def known(self) -> Mapping[str, int]:
        """Return the first trip of the second half."""
        return {"half": self.rows(60_000) // 2}

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
