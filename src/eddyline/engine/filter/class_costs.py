"""What a tuple of each class costs at each module, told from visits by tuples of all classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

MOST_TIMES: Final = 20.0
"""A visit counts as no more than so many times as costly as the module's usual one, by tuple."""

LEAST: Final = 1.0 / MOST_TIMES
"""Least cost of a bucket's tuple, as a part of the usual one."""

UNEXPLAINED: Final = 0.05
"""Visits that say that all buckets cost the same, beside those seen, on a clock without noise."""


@dataclass(slots=True)
class BucketCosts:
    """Sums over visits, of which linear regression makes the cost of a tuple by bucket.

    A visit is an equation: the shares of its tuples by bucket times what one of each costs is what
    it took, by tuple. ``shares`` are the sums of the squares, (modules, buckets, buckets), and
    ``costs`` those of the products with what it took, (modules, buckets); ``visits``, ``sum`` and
    ``squares`` of what they took are by module. Costs are multiples of the usual one.
    """

    shares: npt.NDArray[np.float64]
    costs: npt.NDArray[np.float64]
    visits: npt.NDArray[np.float64]
    squares: npt.NDArray[np.float64]

    @classmethod
    def none(cls, buckets: int, modules: int) -> BucketCosts:
        """Return the sums of no visits."""
        return cls(
            np.zeros((modules, buckets, buckets)),
            np.zeros((modules, buckets)),
            np.zeros(modules),
            np.zeros(modules),
        )

    def learn(
        self,
        module: int,
        tuples: npt.NDArray[np.float64],
        costs: npt.NDArray[np.float64],
    ) -> None:
        """Add visits to one module: their tuples by bucket, and the cost of a tuple of each.

        The shapes are (visits, buckets) and (visits,).
        """
        shares = tuples / tuples.sum(axis=1, keepdims=True)
        more = np.minimum(costs, MOST_TIMES) - 1.0  # than usual
        self.shares[module] += shares.T @ shares
        self.costs[module] += shares.T @ more
        self.visits[module] += len(costs)
        self.squares[module] += more @ more

    def add(self, other: BucketCosts) -> None:
        """Add other visits."""
        self.shares += other.shares
        self.costs += other.costs
        self.visits += other.visits
        self.squares += other.squares

    def fade(self, part: float) -> None:
        """Let only a part of the visits count."""
        self.shares *= part
        self.costs *= part
        self.visits *= part
        self.squares *= part

    def together(self, groups: npt.NDArray[np.intp], size: int) -> BucketCosts:
        """Return the sums by groups of buckets; ``groups`` has the group of each bucket."""
        belongs = np.zeros((len(groups), size))
        belongs[np.arange(len(groups)), groups] = 1.0
        return BucketCosts(
            belongs.T @ self.shares @ belongs,
            self.costs @ belongs,
            self.visits.copy(),
            self.squares.copy(),
        )

    def by_bucket(self) -> npt.NDArray[np.float64]:
        """Return the cost of a tuple, (buckets, modules), as a multiple of the module's usual one.

        Ridge regression: the more the visits differ that are alike, the less they say of buckets,
        and as long as they say little all cost the same.
        """
        size = self.shares.shape[1]
        noise = self.squares / np.maximum(self.visits, 1.0) + UNEXPLAINED
        ridge = noise[:, None, None] * np.eye(size)
        more = np.linalg.solve(self.shares + ridge, self.costs[:, :, None])[:, :, 0]
        return np.clip(1.0 + more.T, LEAST, MOST_TIMES)
