"""Selection modules: predicates that let tuples pass or drop them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from eddyline.engine.batch import Rows, TupleBatch, as_array
from eddyline.engine.statistics import Spent
from eddyline.expressions import evaluate

if TYPE_CHECKING:
    from eddyline.expressions import Expression
    from eddyline.expressions.vector import Scope, Vector


@dataclass(frozen=True, slots=True)
class SelectionStatistics:
    """What a predicate did with its tuples; ``errors`` counts those held back, not raised.

    Of the ``seconds`` so many went into the first visit, with so many rows.
    """

    text: str
    rows_in: int
    passed: int
    rejected: int
    null: int
    errors: int
    seconds: float
    nested: tuple[SelectionStatistics, ...] = ()
    first_rows: int = 0
    first_seconds: float = 0.0


@dataclass(slots=True)
class SelectionTotals:
    """The running totals behind :class:`SelectionStatistics`."""

    rows_in: int = 0
    passed: int = 0
    null: int = 0
    errors: int = 0

    def frozen(
        self, text: str, spent: Spent, nested: tuple[SelectionStatistics, ...] = ()
    ) -> SelectionStatistics:
        """Return the totals so far, with the time that the eddy has measured."""
        rejected = self.rows_in - self.passed - self.null - self.errors
        return SelectionStatistics(
            text,
            self.rows_in,
            self.passed,
            rejected,
            self.null,
            self.errors,
            spent.seconds,
            nested,
            spent.first_tuples,
            spent.first_seconds,
        )


@dataclass(slots=True)
class HeldErrors:
    """Errors of rows that are not decided yet: row number -> (term, error), in any order.

    An error counts only if every other term leaves the row alive, so it travels
    beside the row instead of being raised.
    """

    by_row: dict[int, list[tuple[int, Exception]]] = field(default_factory=dict)

    def hold(self, term: int, rows: Rows, errors: Mapping[int, Exception]) -> None:
        """Hold ``errors`` (position in ``rows`` -> error) of a term."""
        for position, error in errors.items():
            self.by_row.setdefault(int(rows[position]), []).append((term, error))

    def among(self, rows: Rows) -> Iterator[tuple[int, list[tuple[int, Exception]]]]:
        """Yield position and errors of those of ``rows`` that have any, errors by term."""
        if self.by_row:
            for position, row in enumerate(as_array(rows).tolist()):
                if row in self.by_row:
                    yield position, sorted(self.by_row[row], key=lambda held: held[0])


class RowScopes(Protocol):
    """Where the values of rows are, given by number."""

    def scope(self, rows: Rows) -> Scope:
        """Return the place where expressions find the values of these rows."""
        ...

    def is_vectorized(self, expression: Expression) -> bool:
        """Tell whether an expression calls a function that sees whole vectors."""
        ...


class Selection:
    """One predicate over one relation.

    Adaptivity does not change answers: whether a row passes depends on the row
    alone, and a row whose evaluation failed passes on, with its error held.
    ``inverted`` makes it a term of a disjunction, where it is the TRUE rows that
    leave the eddy and all others that go on.
    """

    def __init__(
        self,
        position: int,
        name: str,
        expression: Expression,
        source: RowScopes,
        held: HeldErrors,
        *,
        inverted: bool = False,
    ) -> None:
        """``position`` is its number in its eddy, by which errors are held as well."""
        self._position = position
        self._name = name
        self.expression = expression
        self._source = source
        self._held = held
        self._inverted = inverted
        self.totals = SelectionTotals()

    @property
    def name(self) -> str:
        """The predicate's text."""
        return self._name

    @property
    def calls_functions_in_vectors(self) -> bool:
        """Whether a visit has a large fixed cost."""
        return self._source.is_vectorized(self.expression)

    def statistics(self, spent: Spent) -> SelectionStatistics:
        """Return what the predicate did so far; ``spent`` is what its eddy measured."""
        return self.totals.frozen(self._name, spent)

    def process(self, batch: TupleBatch) -> Sequence[TupleBatch]:
        """Return the tuples that go on, under the signature with this module's Done bit."""
        verdicts = evaluate(self.expression, self._source.scope(self._rows(batch)))
        return self.decided(batch, verdicts)

    def decided(self, batch: TupleBatch, verdicts: Vector) -> Sequence[TupleBatch]:
        """Return the tuples that go on; ``verdicts`` has a boolean, NULL or error for each."""
        values = verdicts.values
        nulls = values.null_count
        true: npt.NDArray[np.bool_] = (
            values.fill_null(fill_value=False) if nulls else values
        ).to_numpy(zero_copy_only=False)
        totals = self.totals
        totals.rows_in += len(true)
        totals.passed += int(np.count_nonzero(true))
        totals.null += nulls - len(verdicts.errors)
        goes_on = ~true if self._inverted else true
        if verdicts.errors:
            totals.errors += len(verdicts.errors)
            self._held.hold(self._position, self._rows(batch), verdicts.errors)
            goes_on = goes_on.copy()
            goes_on[list(verdicts.errors)] = True
        signature = batch.signature.after(self._position)
        if goes_on.all():
            return (batch.under(signature),) if len(true) else ()
        kept = batch.keep(goes_on, signature)
        return (kept,) if len(kept) else ()

    def _rows(self, batch: TupleBatch) -> Rows:
        rows = batch.rows[0]
        if rows is None:
            raise ValueError(f"{batch.signature} does not span the relation of {self._name}")
        return rows
