"""The constants of queries, for rows that are each of one of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.standing.log.live_queries import StandingQuery
from eddyline.standing.log.query_constants import Constants, constants_of


class RowConstants:
    """The constants of groups, computed once for each group that is asked about."""

    def __init__(self) -> None:
        self._known: dict[int, Constants] = {}

    def keep_only(self, queries: Collection[StandingQuery]) -> None:
        """Forget those of groups that have no query among these."""
        groups = {id(query.group) for query in queries}
        self._known = {key: values for key, values in self._known.items() if key in groups}

    def of(
        self, queries: Sequence[StandingQuery], numbers: npt.NDArray[np.int64]
    ) -> dict[int, pa.Array]:
        """Return for each row the constants of its query, by the numbers that they have.

        ``queries`` have one template, and ``numbers`` say which of them each row is of.
        """
        if not queries[0].template.constants:
            return {}
        firsts: dict[int, int] = {}
        constants: list[Constants] = []
        rows_before = 0
        for key, group in {id(query.group): query.group for query in queries}.items():
            firsts[key], rows_before = rows_before, rows_before + len(group.names)
            if key not in self._known:
                self._known[key] = constants_of(group)
            constants.append(self._known[key])
        places = {q.number: firsts[id(q.group)] + q.position for q in queries}
        distinct, back = np.unique(numbers, return_inverse=True)
        rows = pa.array(np.array([places[n] for n in distinct.tolist()])[back])
        return {
            -1 - number: pa.concat_arrays(parts).take(rows)
            for number, parts in enumerate(zip(*constants, strict=True))
        }
