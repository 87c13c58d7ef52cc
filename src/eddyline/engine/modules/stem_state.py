"""What a SteM knows: its rows, when they were built, and which probes have all their matches.

Plain data, apart from the rules of building and probing in :mod:`eddyline.engine.modules.stem`:
it can be copied and pickled, so that another SteM goes on where one has stopped. Indexes stay
out of a pickle; they are made again when they are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from eddyline.engine.batch import Rows, TupleBatch
from eddyline.engine.join_query import JoinQuery
from eddyline.engine.modules.end_of_transmission import Answers, Transmissions
from eddyline.engine.storage.indexed_store import IndexedStore
from eddyline.engine.storage.key_set import KeySet
from eddyline.engine.storage.row_store import RowAttribute
from eddyline.engine.timestamps import HighWaterMarks


@dataclass(slots=True)
class SteMTotals:
    """What a SteM did so far: see :class:`~eddyline.engine.modules.stem.SteMStatistics`."""

    builds: int = 0
    duplicates: int = 0
    probes: int = 0
    matches: int = 0
    bounced: int = 0
    pruned: int = 0
    killed: int = 0


class SteMState:
    """The state of one SteM."""

    def __init__(self, query: JoinQuery, relation: int, store: IndexedStore) -> None:
        """``store`` is where the rows of ``relation`` will be."""
        description = query.relations[relation]
        types = description.types
        self.store = store
        self.marks = HighWaterMarks()
        """Which rows were there when."""
        self.complete = False
        """Whether the scan has ended."""
        self.totals = SteMTotals()
        self.parked: list[TupleBatch] = []
        """Prior probers that wait for the end of the scan."""
        self._waiting: dict[int, list[TupleBatch]] = {}  # until the end of a transmission
        key = description.key if description.access_methods > 1 else ()
        self.keys = KeySet([types[column] for column in key]) if key else None
        """The keys built so far, where several access methods may bring the same row."""
        self._dead: RowAttribute | None = None
        self._transmissions = Transmissions()
        self.answers = {
            number: Answers([types[column] for column in lookup.bind], self._transmissions)
            for number, (looked_up, lookup) in enumerate(query.lookups)
            if looked_up == relation
        }
        """What each of its lookups was asked for, by number among all lookups."""

    @property
    def rows(self) -> int:
        """The number of rows that were built and are still here."""
        return self.marks.rows - min(self.store.first, self.marks.rows)

    @property
    def dead(self) -> npt.NDArray[np.bool_] | None:
        """Which of the stored rows match nothing any more; None where all may."""
        return None if self._dead is None else self._dead.values

    def kill(self, places: npt.NDArray[np.int64]) -> None:
        """Let stored rows match nothing any more."""
        if self._dead is None:
            self._dead = RowAttribute(self.store, np.bool_, default=False)
        self._dead.values[places] = True
        self.totals.killed += len(places)

    def wait(self, batch: TupleBatch, transmission: int) -> None:
        """Keep tuples until a transmission has ended."""
        self._waiting.setdefault(transmission, []).append(batch)

    def released_by(self, rows: Rows) -> list[TupleBatch]:
        """Return the tuples that waited for a transmission which ends now that rows are built."""
        ended = self._transmissions.built(rows)
        return [batch for number in ended for batch in self._waiting.pop(number, ())]

    def answered(self, transmission: int, rows: range) -> list[TupleBatch]:
        """Note the rows of an answer; return the tuples that waited for it, if it has none."""
        self._transmissions.came(transmission, rows)
        return [] if len(rows) else self._waiting.pop(transmission, [])

    def unpark(self) -> list[TupleBatch]:
        """Return the tuples that waited for the end of the scan, and keep them no longer."""
        parked, self.parked = self.parked, []
        return parked

    def waiting(self) -> list[TupleBatch]:
        """Return all tuples that are kept here."""
        return [*self.parked, *(batch for kept in self._waiting.values() for batch in kept)]
