"""Lookups: index access modules, which fetch the rows that given tuples match.

Raman, Deshpande and Hellerstein (2003, Section 2.1.3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.batch import Rows, TupleBatch
from eddyline.engine.join.components import ComponentStores
from eddyline.engine.join.join_routes import JoinRoutes
from eddyline.engine.modules.stem import SteM
from eddyline.engine.signature import Signature
from eddyline.engine.storage.key_set import KeySet
from eddyline.errors import EddylineError

Source: TypeAlias = Callable[[Sequence[pa.Array]], Sequence[pa.Array]]
"""What a lookup asks: takes one array for each bind column, with n distinct bindings; returns
one for each column of the relation, with every row that matches one of them, in any order."""


class LookupAnswerError(EddylineError, ValueError):
    """A source has answered a lookup with something else than rows of its relation."""


@dataclass(frozen=True, slots=True)
class LookupStatistics:
    """What a lookup did so far.

    ``probes`` are tuples that came to it, ``bindings`` the distinct ones that it asked its
    source for, in ``calls`` calls; ``rows`` came in answer, without those ``strange`` ones
    that match no binding asked for.
    """

    relation: str
    bind: tuple[int, ...]
    probes: int
    calls: int
    bindings: int
    rows: int
    strange: int
    seconds: float


class IndexAccess:
    """An access method of a relation that must be given the values of its bind columns.

    A prior prober that comes here makes the source return all rows with its values, each
    distinct binding asked for once, ever. The rows enter the eddy as singletons, which must
    be built first. So much for the matches; the tuple itself goes by ProbeCompletion
    (Table 2). It has been probed into an access method of its probe completion table now,
    so if all its components are in SteMs it can be removed: the matches find it there once
    they are built. Else it is bounced back as soon as all its matches are built, to probe
    the SteM again from its LastMatchTimeStamp on.

    Adaptivity does not change answers: when a tuple comes, and in which company, changes
    only the call in which its rows are fetched. An error of the source is no row's; it is
    raised at once.
    """

    def __init__(
        self,
        position: int,
        source: Source,
        routes: JoinRoutes,
        components: ComponentStores,
        stem: SteM,
    ) -> None:
        """Make module number ``position``, which fetches rows for ``stem``."""
        self._position = position
        self._number = position - routes.first_lookup
        self._relation, self._lookup = routes.lookups[self._number]
        self._source = source
        self._routes = routes
        self._components = components
        self._stem = stem
        self._types = components.query.relations[self._relation].types
        self._probes = self._calls = self._rows = self._strange = 0

    @property
    def name(self) -> str:
        """The relation's name, and the columns that must be given."""
        columns = ", ".join(str(column) for column in self._lookup.bind)
        return f"{self._stem.name}({columns})"

    @property
    def rows(self) -> int:
        """Rows that came so far."""
        return self._rows

    def statistics(self, seconds: float) -> LookupStatistics:
        """Return what it did so far; ``seconds`` is what its eddy measured."""
        return LookupStatistics(
            self._stem.name,
            self._lookup.bind,
            self._probes,
            self._calls,
            len(self._stem.state.answers[self._number]),
            self._rows,
            self._strange,
            seconds,
        )

    def process(self, batch: TupleBatch) -> Sequence[TupleBatch]:
        """Return the rows fetched, and those of the tuples that go on at once."""
        self._probes += len(batch)
        results = []
        missing = np.flatnonzero(~self._stem.has_all_matches(batch))
        if len(missing):
            rows = self._fetch(batch.at(missing, batch.signature))
            if rows:
                results.append(self._singletons(rows))
        signature = batch.signature
        if signature.built != signature.spanned:
            back = batch.under(self._routes.after(signature, self._position))
            results += self._stem.release_when_complete(back, self._number)
        return results

    def _fetch(self, batch: TupleBatch) -> range:
        """Ask for what was not asked for yet; return the numbers of the rows that came."""
        bindings = self._stem.bindings(batch, self._number)
        answers = self._stem.state.answers[self._number]
        new = answers.ask(bindings)
        if not len(new):
            return range(0)
        taken = pa.array(new)
        asked = [column.take(taken) for column in bindings]
        self._calls += 1
        columns = self._matching(self._checked(self._source(asked)), asked)
        rows = self._components.passing[self._relation].append(columns, len(columns[0]))
        self._rows += len(rows)
        answers.begin(rows)
        return rows

    def _checked(self, answer: object) -> Sequence[pa.Array]:
        """Return the columns of an answer; LookupAnswerError where it is something else."""
        columns = list(answer) if isinstance(answer, Sequence | pa.RecordBatch) else [answer]
        arrays = [column for column in columns if isinstance(column, pa.Array)]
        sizes = [len(array) for array in arrays]
        fits = len(arrays) == len(columns) and [a.type for a in arrays] == list(self._types)
        if not fits or len(set(sizes)) != 1:
            found = [str(c.type) if isinstance(c, pa.Array) else type(c).__name__ for c in columns]
            raise LookupAnswerError(
                f"a lookup of {self._stem.name} must answer with columns of types "
                f"{list(map(str, self._types))} and of one length, not "
                f"{found} of lengths {sizes}"
            )
        return arrays

    def _matching(
        self, columns: Sequence[pa.Array], asked: Sequence[pa.Array]
    ) -> Sequence[pa.Array]:
        """Keep the rows that match a binding asked for.

        A source may be generous: one that does not tell "a" from "A" would give a row twice,
        once for either, and nothing but a key could tell that it is one row.
        """
        wanted = KeySet([column.type for column in asked])
        wanted.add(asked)
        matches = wanted.find([columns[column] for column in self._lookup.bind]) >= 0
        strange = int(np.count_nonzero(~matches))
        if not strange:
            return columns
        self._strange += strange
        kept = pa.array(np.flatnonzero(matches))
        return [column.take(kept) for column in columns]

    def _singletons(self, rows: range) -> TupleBatch:
        components: list[Rows | npt.NDArray[np.int64] | None] = [None] * len(
            self._components.query.relations
        )
        components[self._relation] = rows
        return TupleBatch(Signature(1 << self._relation), tuple(components))
