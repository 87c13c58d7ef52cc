"""Selections over joined tuples: one predicate, checked once for what it depends on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from eddyline.distinct_values import distinct
from eddyline.engine.batch import TupleBatch, as_array
from eddyline.engine.components import ComponentStores, required_rows
from eddyline.engine.modules.selection import SelectionStatistics, SelectionTotals
from eddyline.engine.routes import Routes
from eddyline.engine.settling import Held, Verdict, verdicts
from eddyline.engine.statistics import Spent
from eddyline.engine.storage.row_store import RowAttribute, RowStore
from eddyline.expressions import Call
from eddyline.expressions.terms import Term, decide, expression_of
from eddyline.expressions.vector import Scope

if TYPE_CHECKING:
    from eddyline.engine.term_modules import RoutedTerm

_Key = TypeVar("_Key")

UNKNOWN, TRUE, NOT_TRUE, FAILED = range(4)
"""What is known of a predicate for one row."""

Kill = Callable[[int, npt.NDArray[np.int64]], None]
"""Takes a relation and places of rows in its SteM that a selection has rejected."""


class RowVerdicts:
    """What a predicate over one relation says of its rows, as far as it was asked.

    A row that is joined with many others is asked about once: the verdict is the row's.
    """

    def __init__(self, store: RowStore) -> None:
        self._store = store
        self._verdicts = RowAttribute(store, np.uint8, UNKNOWN)
        self._first = 0
        self.held: dict[int, Held] = {}  # by row number

    def all(self) -> npt.NDArray[np.uint8]:
        """Return the verdicts of all rows that are here, to be read and written."""
        first = self._store.first
        if first > self._first:
            self.held = {row: held for row, held in self.held.items() if row >= first}
            self._first = first
        return self._verdicts.values


TupleKey: TypeAlias = tuple[tuple[bool, int], ...]
"""What identifies the part of a tuple that a predicate looks at: built or not, and row number."""


@dataclass(slots=True)
class SelectionState:
    """What a predicate has said so far: of rows, if it looks at one relation only.

    ``held`` are failures for tuples of several relations; ``rejects`` tells whether it ever
    rejected a row.
    """

    built: RowVerdicts | None = None
    passing: RowVerdicts | None = None
    held: dict[TupleKey, Held] = field(default_factory=dict)
    rejects: bool = False

    @classmethod
    def of(
        cls, relations: int, built: Sequence[RowStore], passing: Sequence[RowStore]
    ) -> SelectionState:
        """Return a state with nothing known; ``relations`` is the mask of those it looks at."""
        if relations & (relations - 1):
            return cls()
        single = max(relations.bit_length() - 1, 0)
        return cls(RowVerdicts(built[single]), RowVerdicts(passing[single]))


class JoinSelection:
    """One predicate over the components of joined tuples.

    Over one relation it asks once for each row and remembers; a stored row that fails is
    killed in its SteM, so that no later tuple is joined with it at all. Over several
    relations it asks once for each tuple: tuples are distinct, and visit it once.

    Adaptivity does not change answers: whether a tuple passes depends on its components
    alone; a tuple whose evaluation failed passes on, with its error held.
    """

    def __init__(
        self,
        position: int,
        name: str,
        term: Term,
        relations: int,
        components: ComponentStores,
        routes: Routes,
        kill: Kill,
        state: SelectionState,
        routed: RoutedTerm | None = None,
    ) -> None:
        """Make module number ``position``; ``relations`` is the mask of those it looks at.

        ``routed`` decides the term where it is worth routing tuples among its parts.
        """
        self._position = position
        self._name = name
        self._term = term
        self._components = components
        self._routes = routes
        self._kill = kill
        self._routed = routed
        self.relations = relations or 1
        numbers = range(self.relations.bit_length())
        self._over = tuple(r for r in numbers if self.relations >> r & 1)
        self._calls = any(isinstance(node, Call) for node in expression_of(term).walk())
        self.totals = SelectionTotals()
        self._single = self._over[0] if len(self._over) == 1 else None
        self.state = state

    @property
    def name(self) -> str:
        """The predicate's text."""
        return self._name

    @property
    def calls_functions_in_vectors(self) -> bool:
        """Whether a visit has a large fixed cost."""
        return self._components.built[0].is_vectorized(expression_of(self._term))

    def statistics(self, spent: Spent) -> SelectionStatistics:
        """Return what the predicate did so far; ``spent`` is what its eddy measured."""
        nested = () if self._routed is None else self._routed.nested()
        return self.totals.frozen(self._name, spent, nested)

    def has_rejected(self, batch: TupleBatch) -> npt.NDArray[np.bool_] | None:
        """Return which tuples hold a row that it has rejected for another tuple; None for none.

        Such a tuple was made before its row was asked about, and waits for other modules.
        """
        spanned, _, done, _, _ = batch.signature
        if not self.state.rejects or done >> self._position & 1 or not spanned & self.relations:
            return None
        verdicts = self._verdicts(batch)
        if verdicts is None or self._single is None:
            return None
        rejected: npt.NDArray[np.bool_] = (
            verdicts.all()[self._components.places(batch, self._single)] == NOT_TRUE
        )
        return rejected if rejected.any() else None

    def process(self, batch: TupleBatch) -> Sequence[TupleBatch]:
        """Return the tuples that go on, under the signature with this module's Done bit."""
        signature = self._routes.after(batch.signature, self._position)
        if self._single is not None and (self._calls or batch.signature.built & self.relations):
            goes_on = self._by_row(batch, self._single)
        else:
            goes_on = self._by_tuple(batch)
        if goes_on.all():
            return (batch.under(signature),) if len(goes_on) else ()
        kept = batch.keep(goes_on, signature)
        return (kept,) if len(kept) else ()

    def accept_built(self, places: range) -> None:
        """Note as passed the rows at these places of the SteM: they passed elsewhere."""
        if self.state.built is not None:
            self.state.built.all()[places.start : places.stop] = TRUE

    def held(self, batch: TupleBatch) -> Iterator[tuple[int, Held]]:
        """Yield position and what is held of the tuples for which the predicate failed."""
        if self._single is not None:
            verdicts = self._verdicts(batch)
            if verdicts is not None and verdicts.held:
                for position, row in enumerate(as_array(required_rows(batch, self._single))):
                    if int(row) in verdicts.held:
                        yield position, verdicts.held[int(row)]
        if self.state.held:
            for position, key in enumerate(self._keys(batch)):
                if key in self.state.held:
                    yield position, self.state.held[key]

    def ask_again(self, batch: TupleBatch) -> list[Verdict]:
        """Evaluate the predicate anew for tuples that failed only as part of a vector.

        Return whether each passes, or its error.
        """
        self._components.forget_collective_failures(expression_of(self._term), batch)
        outcomes = verdicts(*decide(self._term, self._components.scope(batch)))
        of_rows = self._verdicts(batch) if self._single is not None else None
        if of_rows is not None and self._single is not None:
            known = of_rows.all()
            places = self._components.places(batch, self._single)
            rows = as_array(required_rows(batch, self._single))
            for place, row, verdict in zip(places, rows.tolist(), outcomes, strict=True):
                known[place] = NOT_TRUE if verdict is False else TRUE if verdict is True else FAILED
                _settle(of_rows.held, row, verdict)
        else:
            for key, verdict in zip(self._keys(batch), outcomes, strict=True):
                _settle(self.state.held, key, verdict)
        return outcomes

    def _decided(self, scope: Scope) -> tuple[npt.NDArray[np.bool_], dict[int, Exception]]:
        if self._routed is None:
            return decide(self._term, scope)
        return self._routed.decide(scope)

    def _verdicts(self, batch: TupleBatch) -> RowVerdicts | None:
        return self.state.built if batch.signature.built & self.relations else self.state.passing

    def _by_row(self, batch: TupleBatch, relation: int) -> npt.NDArray[np.bool_]:
        verdicts = self._verdicts(batch)
        if verdicts is None:
            raise ValueError(f"{self._name} looks at several relations")
        store = self._components.of(batch.signature, relation).store
        places = self._components.places(batch, relation)
        known = verdicts.all()
        unknown = places[known[places] == UNKNOWN]
        if len(unknown):
            if batch.signature.spanned != self.relations:
                unknown = distinct(unknown)
            self._ask(batch, relation, unknown, known, verdicts, store.first)
        states = known[places]
        goes_on: npt.NDArray[np.bool_] = (states == TRUE) | (states == FAILED)
        self._count(len(places), int(np.count_nonzero(goes_on)))
        return goes_on

    def _ask(
        self,
        batch: TupleBatch,
        relation: int,
        places: npt.NDArray[np.int64],
        known: npt.NDArray[np.uint8],
        verdicts: RowVerdicts,
        first: int,
    ) -> None:
        rows = places + first
        components: list[npt.NDArray[np.int64] | None] = [None] * len(batch.rows)
        components[relation] = rows
        signature = batch.signature._replace(spanned=self.relations)
        scope = self._components.scope(TupleBatch(signature, tuple(components)))
        true, errors = self._decided(scope)
        known[places] = np.where(true, TRUE, NOT_TRUE)
        self.state.rejects = self.state.rejects or not true.all()
        if errors:
            self.totals.errors += len(errors)
            failed = np.fromiter(errors, np.int64, len(errors))
            known[places[failed]] = FAILED
            verdicts.held.update({int(rows[at]): error for at, error in errors.items()})
        if batch.signature.built & self.relations:
            rejected = places[known[places] == NOT_TRUE]
            if len(rejected):
                self._kill(relation, rejected)

    def _by_tuple(self, batch: TupleBatch) -> npt.NDArray[np.bool_]:
        true, errors = self._decided(self._components.scope(batch))
        if errors:
            self._hold(batch, errors)
            true = true.copy()
            true[list(errors)] = True
        passed = int(np.count_nonzero(true)) - len(errors)
        self.totals.errors += len(errors)
        self._count(len(true), passed)
        return true

    def _hold(self, batch: TupleBatch, errors: Mapping[int, Exception]) -> None:
        for position, key in enumerate(self._keys(batch)):
            if position in errors:
                self.state.held[key] = errors[position]

    def _keys(self, batch: TupleBatch) -> Iterator[TupleKey]:
        """Yield what identifies the part of each tuple that the predicate looks at."""
        built = batch.signature.built
        columns = [
            [(bool(built >> r & 1), row) for row in as_array(required_rows(batch, r)).tolist()]
            for r in self._over
        ]
        return zip(*columns, strict=True)

    def _count(self, tuples: int, passed: int) -> None:
        self.totals.rows_in += tuples
        self.totals.passed += passed


def _settle(held: dict[_Key, Held], key: _Key, verdict: Verdict) -> None:
    """Write down how a failure has turned out, for tuples that have passed with it.

    Others with the same row may stand at the end already: a rejection must be known there.
    """
    if verdict is True:
        held.pop(key, None)
    else:
        held[key] = verdict
