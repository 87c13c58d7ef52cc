"""A limit on the results of a query in a micro-batch, kept task by task."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from eddyline.standing.tasks.counts import Counts


class ResultLimit:
    """Lets the first so many results of each query in a task pass, and counts the others.

    What passes in all tasks of a micro-batch can be as many times more. A query with fewer results
    in the whole batch loses none, and no task waits for another to know.
    """

    def __init__(self, most: int | None) -> None:
        """``most`` results of a query pass; all where it is None."""
        self._most = most
        self._passed: Counter[int] = Counter()

    def begin(self) -> None:
        """Begin with a task."""
        self._passed.clear()

    def passing(
        self, queries: npt.NDArray[np.int64], counts: Counts
    ) -> npt.NDArray[np.bool_] | None:
        """Return which results pass, given the query of each; None where all do.

        Those that pass are counted as results, the others as left out. Time grows with the
        results, and is that of sorting them where a query has too many.
        """
        if self._most is None or not len(queries):
            counts.add_results(queries)
            return None
        sizes = np.bincount(queries)
        before = np.zeros(len(sizes), np.int64)
        for query in np.flatnonzero(sizes).tolist():
            before[query] = self._passed[query]
            self._passed[query] += int(sizes[query])
        if (sizes + before).max() <= self._most:
            counts.add_results(queries)
            return None
        order = np.argsort(queries, kind="stable")
        begins = np.cumsum(sizes) - sizes
        ranks = np.empty(len(queries), np.int64)
        ranks[order] = np.arange(len(queries)) - begins[queries[order]]
        passes: npt.NDArray[np.bool_] = ranks + before[queries] < self._most
        counts.add_results(queries[passes])
        for query, number in zip(*np.unique(queries[~passes], return_counts=True), strict=True):
            counts.left_out[int(query)] += int(number)
        return passes
