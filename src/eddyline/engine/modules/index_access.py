"""Lookups: index access modules, which fetch the rows that given tuples match.

Raman, Deshpande and Hellerstein (2003, Section 2.1.3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import pyarrow as pa

from eddyline.engine.batch import TupleBatch
from eddyline.engine.modules.lookup_requests import LookupRequests, LookupStatistics

Source: TypeAlias = Callable[[Sequence[pa.Array]], Sequence[pa.Array]]
"""What a lookup asks: takes one array for each bind column, with n distinct bindings; returns
one for each column of the relation, with every row that matches one of them, in any order."""


class IndexAccess:
    """An access method that must be given the values of its bind columns, while the eddy waits.

    A prior prober that comes here makes the source return all rows with its values, each
    distinct binding asked for once, ever, all new ones of a visit together.

    Adaptivity does not change answers: when a tuple comes, and in which company, changes
    only the call in which its rows are fetched. An error of the source is no row's; it is
    raised at once.
    """

    def __init__(self, requests: LookupRequests, source: Source) -> None:
        """Ask ``source`` for what is new."""
        self._requests = requests
        self._source = source

    @property
    def name(self) -> str:
        """The relation's name, and the columns that must be given."""
        return self._requests.name

    @property
    def rows(self) -> int:
        """Rows that came so far."""
        return self._requests.rows

    def statistics(self, seconds: float) -> LookupStatistics:
        """Return what it did so far; ``seconds`` is what its eddy measured."""
        return self._requests.statistics(seconds)

    def process(self, batch: TupleBatch) -> Sequence[TupleBatch]:
        """Return the rows fetched, and those of the tuples that go on at once."""
        asked = self._requests.new(batch)
        results = []
        if len(asked[0]):
            (number,) = self._requests.begin([len(asked[0])])
            results += self._requests.came([(number, self._source(asked))])
        results += self._requests.pass_on(batch)
        return results
