"""A conjunction inside a disjunction, or the other way round: an eddy as a module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from eddyline.engine.batch import Rows, TupleBatch, as_array
from eddyline.engine.modules.selection import (
    HeldErrors,
    SelectionStatistics,
    SelectionTotals,
)
from eddyline.engine.signature import ENTERING
from eddyline.engine.statistics import Spent
from eddyline.expressions.vector import CollectiveFailure

if TYPE_CHECKING:
    from eddyline.engine.eddy import Eddy


@runtime_checkable
class Term(Protocol):
    """The module of a term: what its eddy can be told of it."""

    @property
    def calls_functions_in_vectors(self) -> bool:
        """Whether a visit has a large fixed cost."""
        ...

    def statistics(self, spent: Spent) -> SelectionStatistics:
        """Return what the predicate did so far; ``spent`` is what its eddy measured."""
        ...


class Nested:
    """A predicate whose terms are routed by an eddy of its own.

    In a disjunction the inner modules are inverted: TRUE rows leave, and what the
    inner eddy finishes are the rows for which no term is TRUE. So the same eddy
    learns which term accepts the most rows a second.

    Adaptivity does not change answers: TRUE, error and FALSE are ordered, AND is
    their least and OR their greatest, and neither depends on the order of terms.
    An error of a term counts for the whole only if no term decides against it.
    """

    def __init__(
        self,
        position: int,
        name: str,
        eddy: Eddy,
        inner: HeldErrors,
        held: HeldErrors,
        *,
        disjunction: bool,
        inverted: bool,
    ) -> None:
        """``position`` is its number in its eddy; ``inner`` has the errors of the terms."""
        self._position = position
        self._name = name
        self._eddy = eddy
        self._inner = inner
        self._held = held
        self._disjunction = disjunction
        self._inverted = inverted
        self.totals = SelectionTotals()

    @property
    def name(self) -> str:
        """The predicate's text."""
        return self._name

    @property
    def eddy(self) -> Eddy:
        """The eddy that routes the terms."""
        return self._eddy

    @property
    def calls_functions_in_vectors(self) -> bool:
        """Whether a visit has a large fixed cost."""
        return any(
            module.calls_functions_in_vectors
            for module in self._eddy.modules.values()
            if isinstance(module, Term)
        )

    def statistics(self, spent: Spent) -> SelectionStatistics:
        """Return what the predicate and its terms did so far; ``spent`` as its eddy measured."""
        return self.totals.frozen(
            self._name,
            spent,
            tuple(
                module.statistics(self._eddy.spent_in(place))
                for place, module in self._eddy.modules.items()
                if isinstance(module, Term)
            ),
        )

    def process(self, batch: TupleBatch) -> Sequence[TupleBatch]:
        """Return the tuples that go on, under the signature with this module's Done bit."""
        rows = batch.rows[0]
        if rows is None:
            raise ValueError(f"{batch.signature} does not span the relation of {self._name}")
        finished = [
            place
            for result in self._eddy.run(batch.under(ENTERING))
            if (place := result.rows[0]) is not None
        ]
        settled = self.settled(batch, finished)
        self.forget_errors()
        return settled

    def settled(self, batch: TupleBatch, finished: list[Rows]) -> Sequence[TupleBatch]:
        """Return which tuples go on, given what its eddy has finished of them."""
        rows = batch.rows[0]
        if rows is None:
            raise ValueError(f"{batch.signature} does not span the relation of {self._name}")
        survived = self._places(rows, finished)
        failed = self._failures(rows, survived)
        true = ~survived if self._disjunction else survived & ~failed
        goes_on = (~true if self._inverted else true) | failed
        totals = self.totals
        totals.rows_in += len(rows)
        totals.passed += int(np.count_nonzero(true))
        totals.errors += int(np.count_nonzero(failed))
        signature = batch.signature.after(self._position)
        if goes_on.all():
            return (batch.under(signature),)
        kept = batch.keep(goes_on, signature)
        return (kept,) if len(kept) else ()

    def forget_errors(self) -> None:
        """Forget the errors of terms: their tuples are settled."""
        self._inner.by_row.clear()

    @staticmethod
    def _places(rows: Rows, parts: list[Rows]) -> npt.NDArray[np.bool_]:
        """Return which of ``rows`` occur in ``parts``."""
        if not parts:
            return np.zeros(len(rows), dtype=np.bool_)
        numbers = np.concatenate([as_array(part) for part in parts])
        if isinstance(rows, range):
            mask = np.zeros(len(rows), dtype=np.bool_)
            mask[numbers - rows.start] = True
            return mask
        return np.isin(rows, numbers)

    def _failures(self, rows: Rows, survived: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return which surviving rows hold an error, and hand one error of each outwards."""
        failed = np.zeros(len(survived), dtype=np.bool_)
        errors: dict[int, Exception] = {}
        for position, held in self._inner.among(rows):
            if survived[position]:
                failed[position] = True
                # One that may go away when its row is tried alone must not hide
                # behind one that stays: the whole is then evaluated again.
                errors[position] = next(
                    (error for _, error in held if isinstance(error, CollectiveFailure)),
                    held[0][1],
                )
        if errors:
            self._held.hold(self._position, rows, errors)
        return failed
