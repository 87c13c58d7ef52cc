"""Cases in which the order of the joins decides how often a costly function is called.

The cases of :mod:`bench.adversarial.orders`, smaller, with a model in each of them: Spark calls it
as soon as its columns are at hand, on rows that a later join would have dropped.
"""

# ruff: noqa: PLR2004 - what a predicate compares with says how much it passes

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench.adversarial.case import Case, Columns, CostlyFunction, Integers
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

    functions = (CostlyFunction("is_by_people", lambda seconds: seconds >= 60, microseconds=30),)


class ModelInExpandingMiddle(ChainWithExpandingMiddle):
    """A chain a-b-c-d is written from its middle, which expands forty times; a model is there.

    Both ends are selective: coming from either, few rows of the middle are left to look at.
    """

    asks_much = True
    middle = 200_000

    functions = (CostlyFunction("is_heavy", lambda weight: weight >= 10, microseconds=30),)


class ModelOverStar(StarWithSelectiveDimension):
    """A model looks at facts of which a dimension, too large to broadcast, keeps one in 200.

    Two more dimensions keep all; nobody can know which of the three is the one.
    """

    asks_much = True
    facts = 300_000
    a_dimension = 1

    functions = (CostlyFunction("is_plausible", lambda amount: amount < 700, microseconds=30),)


class ModelOverTriangle(Case):
    """A cyclic join in which a model looks at pairs, of which few close to triangles.

    Spark asks it about each pair of the first join; the third table drops nearly all.
    """

    functions = (CostlyFunction("agree", lambda years, much: years <= much, microseconds=30),)

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


class ModelAndMisleadingFileSize(Case):
    """Five million rows compress to some kilobytes, so Spark takes them for a small table.

    A model looks at events, one in 200 of which is of a device that is asked for.
    """

    compressed = frozenset({"measurements"})

    functions = (CostlyFunction("is_serious", lambda code: code < 90, microseconds=30),)

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


class SkewedKeys(Case):
    """Both sides have keys by Zipf's law (1.2), so a handful of keys makes nearly all pairs.

    The table whose predicate rejects just these keys stands last.
    """

    functions = (CostlyFunction("is_human", lambda rank: rank >= 30, microseconds=20),)

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
