"""Cases in which the order of the joins hurts, with cheap functions in them or none."""

# ruff: noqa: PLR2004 - what a predicate compares with says how much it passes

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench.adversarial.case import Case, Columns, CostlyFunction


class BadFromOrder(Case):
    """The FROM clause starts with a pair that expands tenfold; the selective table stands last.

    That one keeps one row in 200 and could have come first, but without statistics Spark
    joins in the order in which it reads.
    """

    asks_much = False
    clicks = 2_000_000  # at size 1

    def columns(self, draw: np.random.Generator) -> Mapping[str, Columns]:
        """Return clicks and visits by users, and the pages of the clicks."""
        many = self.rows(self.clicks)
        users, pages = many // 10, many // 40
        return {
            "clicks": {
                "user_id": draw.integers(users, size=many),
                "page_id": draw.integers(pages, size=many),
                "seconds": draw.integers(600, size=many),
            },
            "visits": {
                "user_id": draw.integers(users, size=many),
                "length": draw.integers(100, size=many),
            },
            "pages": {"page_id": np.arange(pages), "topic": draw.integers(200, size=pages)},
        }


class ChainWithExpandingMiddle(Case):
    """A chain a-b-c-d is written from its middle, which expands forty times.

    Both ends are selective, the one by a Python predicate: whoever starts at an end
    never expands.
    """

    asks_much = False
    middle = 400_000  # rows of the two tables there, at size 1

    functions = (CostlyFunction("is_known", lambda name: name < 20, microseconds=5),)

    def columns(self, draw: np.random.Generator) -> Mapping[str, Columns]:
        """Return senders - outgoing - incoming - receivers."""
        middle = self.rows(self.middle)
        ends, places = middle // 4, max(middle // 40, 1)
        return {
            "outgoing": {
                "sender": draw.integers(ends, size=middle),
                "place": draw.integers(places, size=middle),
                "weight": draw.integers(50, size=middle),
            },
            "incoming": {
                "place": draw.integers(places, size=middle),
                "receiver": draw.integers(ends, size=middle),
            },
            "senders": {"sender": np.arange(ends), "name": draw.integers(1000, size=ends)},
            "receivers": {"receiver": np.arange(ends), "kind": draw.integers(50, size=ends)},
        }


class StarWithSelectiveDimension(Case):
    """Of three dimensions too large to broadcast the last keeps one row in 200, by Python.

    Nobody can know that beforehand, so the facts are shuffled for the other two first.
    """

    asks_much = False
    facts = 1_500_000  # at size 1
    a_dimension = 4  # facts for each row of a dimension

    functions = (CostlyFunction("is_chosen", lambda noise: noise % 200 == 0, microseconds=3),)

    def columns(self, draw: np.random.Generator) -> Mapping[str, Columns]:
        """Return sales with three keys, and customers, products and shops."""
        facts = self.rows(self.facts)
        dimension = facts // self.a_dimension
        keys = {
            f"{name}_id": draw.integers(dimension, size=facts)
            for name in ("customer", "product", "shop")
        }
        wide: dict[str, Columns] = {}
        for name in ("customer", "product", "shop"):
            # Noise that does not compress: above Spark's 10 MB for a broadcast.
            noise = {f"{name}_{i}": draw.integers(2**62, size=dimension) for i in range(4)}
            wide[f"{name}s"] = {f"{name}_id": np.arange(dimension), **noise}
        return {"sales": {**keys, "amount": draw.integers(1000, size=facts)}, **wide}


class Triangle(Case):
    """A cyclic join in which every pair of tables explodes but few triangles close.

    All rows touch a hub, so no order of two-way joins is good, and the last of them
    finds next to nothing.
    """

    asks_much = False

    def columns(self, draw: np.random.Generator) -> Mapping[str, Columns]:
        """Return three relations of edges, whose pairs grow with ``size`` and not their rows."""
        spokes = self.rows(7_000, squared=True)

        def edges(source: str, target: str) -> Columns:
            # From a hub to everywhere, itself included, and from everywhere to the hub.
            spoke, hub = np.arange(1, spokes + 1), np.zeros(spokes, np.int64)
            shuffled = draw.permutation(2 * spokes + 1)
            return {
                source: np.concatenate([hub, spoke, [0]])[shuffled],
                target: np.concatenate([spoke, hub, [0]])[shuffled],
            }

        return {"knows": edges("a", "b"), "likes": edges("b", "c"), "trusts": edges("c", "a")}


class MisleadingFileSize(Case):
    """Five million rows compress to some kilobytes, so Spark takes them for a small table.

    It broadcasts them, though one in a thousand is asked for.
    """

    compressed = frozenset({"measurements"})
    asks_much = False

    def columns(self, draw: np.random.Generator) -> Mapping[str, Columns]:
        """Return measurements at every second, and events at some of them."""
        seconds = self.rows(5_000_000)
        many = self.rows(1_000_000)
        devices = max(many // 100, 1)
        return {
            "measurements": {"second": np.arange(seconds), "value": np.arange(seconds) * 3},
            "events": {
                "second": draw.integers(seconds, size=many),
                "device": draw.integers(devices, size=many),
            },
            "devices": {"device": np.arange(devices), "age": draw.integers(200, size=devices)},
        }
