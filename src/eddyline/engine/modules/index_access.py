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
from eddyline.engine.components import ComponentStores
from eddyline.engine.join_routes import JoinRoutes
from eddyline.engine.modules.stem import SteM
from eddyline.engine.signature import Signature
from eddyline.errors import LookupAnswerError


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


class LookupRequests:
    """Asks for each distinct binding once, and lets rows into the eddy that match what was asked.

    Rows enter as singletons, which must be built first. A tuple that has asked goes by
    ProbeCompletion (Raman, Deshpande and Hellerstein, 2003, Table 2): see :meth:`pass_on`.
    """

    def __init__(
        self, position: int, routes: JoinRoutes, components: ComponentStores, stem: SteM
    ) -> None:
        """``position`` is the number of the module; it fetches rows for ``stem``."""
        self._position = position
        self._number = position - routes.first_lookup
        self.relation, self._lookup = routes.lookups[self._number]
        self._routes = routes
        self._components = components
        self._stem = stem
        self._answers = stem.state.answers[self._number]
        self._types = components.query.relations[self.relation].types
        self._probes = self._calls = self._strange = 0
        self.rows = 0
        """Rows that came so far."""

    @property
    def name(self) -> str:
        """The relation's name, and the columns that must be given."""
        columns = ", ".join(str(column) for column in self._lookup.bind)
        return f"{self._stem.name}({columns})"

    @property
    def competing(self) -> bool:
        """Whether the relation has another access method."""
        return self._stem.description.access_methods > 1

    def statistics(self, seconds: float) -> LookupStatistics:
        """Return what was done so far; ``seconds`` is what the eddy measured."""
        return LookupStatistics(
            self._stem.name,
            self._lookup.bind,
            self._probes,
            self._calls,
            len(self._answers),
            self.rows,
            self._strange,
            seconds,
        )

    def new(self, batch: TupleBatch) -> list[pa.Array]:
        """Mark as asked for, and return, the distinct bindings of tuples that are new.

        :meth:`begin` must be told next how they are asked for.
        """
        self._probes += len(batch)
        self._routes.tables[self.relation].went_on(len(batch))
        missing = np.flatnonzero(~self._stem.has_all_matches(batch))
        bindings = self._stem.bindings(batch.at(missing, batch.signature), self._number)
        new = pa.array(self._answers.ask(bindings))
        return [column.take(new) for column in bindings]

    def begin(self, sizes: Sequence[int]) -> list[int]:
        """Return a number for each call that asks for new bindings, of these ``sizes``."""
        self._calls += len(sizes)
        return self._answers.begin(sizes)

    def came(self, answers: Sequence[tuple[int, object]]) -> list[TupleBatch]:
        """Take the source's answers to calls; return what enters or goes on because of them.

        Each answer comes with the number of its call, and all are taken together: one by one,
        5,000 of them took 2 s, in eights 0.4. LookupAnswerError where one is no rows of the
        relation.
        """
        checked = [self._checked(answer) for _, answer in answers]
        numbers = np.array([number for number, _ in answers])
        sizes = np.array([len(columns[0]) for columns in checked])
        columns = [pa.concat_arrays(parts) for parts in zip(*checked, strict=True)]
        columns, sizes = self._matching(columns, numbers, sizes)
        rows = self._components.passing[self.relation].append(columns, len(columns[0]))
        self.rows += len(rows)
        released = []
        stop = rows.start
        for number, size in zip(numbers.tolist(), sizes.tolist(), strict=True):
            start, stop = stop, stop + size
            released += self._stem.state.answered(number, range(start, stop))
        return [self._singletons(rows), *released] if rows else released

    def pass_on(self, batch: TupleBatch) -> list[TupleBatch]:
        """Return which of the tuples that came here go on at once.

        They have been probed into an access method of their probe completion table now. One
        whose components are all in SteMs can be removed: the matches find it there once
        they are built. Another is bounced back as soon as all its matches are built, to probe
        the SteM again from its LastMatchTimeStamp on.
        """
        signature = batch.signature
        if signature.built == signature.spanned:
            return []
        back = batch.under(self._routes.after(signature, self._position))
        return self._stem.release_when_complete(back, self._number)

    def _checked(self, answer: object) -> Sequence[pa.Array]:
        """Return the columns of an answer; LookupAnswerError where it is something else."""
        columns = list(answer) if isinstance(answer, Sequence | pa.RecordBatch) else [answer]
        arrays = [column for column in columns if isinstance(column, pa.Array)]
        sizes = [len(array) for array in arrays]
        fits = len(arrays) == len(columns) and [a.type for a in arrays] == list(self._types)
        if not fits or len(set(sizes)) != 1:
            types = [str(c.type) if isinstance(c, pa.Array) else type(c).__name__ for c in columns]
            raise LookupAnswerError(
                f"a lookup of {self._stem.name} must answer with columns of types "
                f"{list(map(str, self._types))} and of one length, not "
                f"{types} of lengths {sizes}"
            )
        return arrays

    def _matching(
        self, columns: list[pa.Array], numbers: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
    ) -> tuple[list[pa.Array], npt.NDArray[np.int64]]:
        """Return the rows that match a binding of their call, and how many each call keeps.

        A source may be generous: one that does not tell "a" from "A" would give a row twice,
        once for either, and nothing but a key could tell that it is one row.
        """
        bindings = [columns[column] for column in self._lookup.bind]
        calls = np.repeat(np.arange(len(numbers)), sizes)
        matches = self._answers.transmission(bindings) == numbers[calls]
        strange = int(np.count_nonzero(~matches))
        if not strange:
            return columns, sizes
        self._strange += strange
        kept = pa.array(np.flatnonzero(matches))
        return [column.take(kept) for column in columns], np.bincount(
            calls[matches], minlength=len(numbers)
        )

    def _singletons(self, rows: range) -> TupleBatch:
        components: list[Rows | npt.NDArray[np.int64] | None] = [None] * len(
            self._components.query.relations
        )
        components[self.relation] = rows
        return TupleBatch(Signature(1 << self.relation), tuple(components))


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
