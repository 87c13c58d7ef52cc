"""A filter block in an eddy: columns in, the rows that pass and the values asked for out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.batch import Rows, TupleBatch, as_array
from eddyline.engine.clock import Clock
from eddyline.engine.eddy import Eddy, Learned
from eddyline.engine.filter.content_classes import MOST_MODULES, ContentClasses, ToldApart
from eddyline.engine.filter.later_terms import LaterTerms
from eddyline.engine.modules.calls_in_rounds import CallsInRounds
from eddyline.engine.modules.selection import HeldErrors, SelectionStatistics
from eddyline.engine.policies.policy import Policy, RoutesByContent
from eddyline.engine.prior import Prior, by_number
from eddyline.engine.quantum import Quantum
from eddyline.engine.relation import CallStatistics, Relation, require_functions, require_lengths
from eddyline.engine.routing import Instrument
from eddyline.engine.settling import Verdict, cause, settle, verdicts
from eddyline.engine.signature import ENTERING
from eddyline.engine.statistics import EddyStatistics
from eddyline.engine.term_modules import TermModules
from eddyline.expressions import Call, Case, Expression, Literal, evaluate, render, require_boolean
from eddyline.expressions.terms import Term, conjuncts_of, decide, expression_of
from eddyline.expressions.vector import CollectiveFailure, Function, Vector

ALL_ROWS: Final = Literal(True, pa.bool_())  # noqa: FBT003 - SQL's TRUE
"""The predicate of a block that only computes values."""


@dataclass(frozen=True, slots=True)
class FilterPlan:
    """What a filter block does: rows are kept where ``predicate`` is TRUE.

    ``outputs`` are calls whose values are wanted for the kept rows, or for some of them.
    ``texts`` name the conjuncts as people know them, in the order of
    :func:`~eddyline.expressions.terms.conjuncts_of`; the names are those of functions
    and columns, by number. Both are for reports only and may be left out.
    ``waits`` says of each conjunct how many of the first ones a row has to pass before it comes
    to this one; without it all may be asked in any order. ``priors`` are what is known of the
    conjuncts beforehand.
    ValueError for a predicate that is not boolean, and where ``waits`` or ``priors`` are of other
    conjuncts.
    """

    predicate: Expression
    outputs: tuple[Call | Case, ...] = ()
    texts: tuple[str, ...] = ()
    function_names: tuple[str, ...] = ()
    argument_names: tuple[str, ...] = ()
    waits: tuple[int, ...] = ()
    priors: tuple[Prior | None, ...] = ()

    def __post_init__(self) -> None:
        require_boolean(self.predicate)
        if self.waits and len(self.waits) != len(conjuncts_of(self.predicate)):
            raise ValueError(f"there are not {len(self.waits)} conjuncts, one for each that waits")
        if self.priors and len(self.priors) != len(conjuncts_of(self.predicate)):
            raise ValueError(f"there are not {len(self.priors)} conjuncts, one for each prior")
        if any(first > position for position, first in enumerate(self.waits)):
            raise ValueError("a conjunct waits only for those that stand before it")

    def precedence(self) -> dict[int, int]:
        """Return for each conjunct that waits the mask of those that it waits for."""
        return {n: (1 << first) - 1 for n, first in enumerate(self.waits) if first}

    def text_of(self, term: Term) -> str:
        """Return a term as people would write it, as far as names are known."""
        if not self.function_names:
            return ""
        return render(expression_of(term), self.function_names, self.argument_names)


@dataclass(frozen=True, slots=True)
class Filtered:
    """``kept`` are the positions of the rows that pass, ascending; ``outputs`` are for them.

    ``failed`` are those of them for which a function failed, where errors are handed on. What
    their outputs are says nothing.
    """

    kept: npt.NDArray[np.int64]
    outputs: tuple[pa.Array, ...]
    failed: Mapping[int, Exception] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FilterStatistics:
    """What a filter eddy did so far.

    ``errors_dropped`` counts, for each predicate, the held errors that came to
    nothing because another predicate rejected the row.
    """

    rows_in: int
    rows_out: int
    predicates: tuple[SelectionStatistics, ...]
    calls: tuple[CallStatistics, ...]
    eddy: EddyStatistics
    errors_dropped: tuple[int, ...]


class FilterEddy:
    """Routes the conjuncts of one predicate over batches of one relation.

    The answer is that of evaluating the whole predicate on every row in Kleene's
    logic with errors as a further value between FALSE and TRUE: a row is kept
    where every conjunct is TRUE; where none is FALSE or NULL but some conjunct
    failed, the error of the first such conjunct of the first such row is raised,
    as the user's function raised it. No policy, seed or batch size changes that.
    """

    def __init__(
        self,
        plan: FilterPlan,
        functions: Sequence[Function],
        make_policy: Callable[[], Policy],
        clock: Clock,
        generator: np.random.Generator,
        *,
        quantum: Quantum | None = None,
        instrument: Instrument | None = None,
        learned: Learned | None = None,
        hands_on_errors: bool = False,
    ) -> None:
        """Make the eddy.

        Calls in ``plan`` name ``functions`` by position; ValueError for one that names
        none. ``make_policy`` is called once for the block and once for every AND and OR
        inside it. ``learned`` is what another eddy over the same plan knew at its end;
        ValueError where it has other eddies or modules. An eddy that ``hands_on_errors`` keeps
        the rows whose errors would count, those of outputs too, and reports them, since it does
        not know what else is asked about these rows.

        A function may be one that
        :class:`answers later <eddyline.engine.callers.AnswersLater>`;
        ValueError where some place in which it stands cannot get a caller.
        """
        require_functions(functions, (plan.predicate, *plan.outputs))
        terms = () if plan.predicate == ALL_ROWS else conjuncts_of(plan.predicate)
        self._terms = terms
        self._outputs = plan.outputs
        expressions = tuple(map(expression_of, terms))
        self._relation = Relation(functions, (*expressions, *plan.outputs), clock)
        self._held = HeldErrors()
        self._hands_on_errors = hands_on_errors
        self._build = TermModules(
            self._relation, make_policy, clock, generator, plan.text_of, quantum, learned
        )
        texts = plan.texts if len(plan.texts) == len(terms) else map(plan.text_of, terms)
        priors = plan.priors or (None,) * len(terms)
        self._later = LaterTerms(functions, self._relation, self._build, plan.text_of)
        self._modules = tuple(
            self._later.module(position, term, text, self._held, prior)
            for position, (term, text, prior) in enumerate(zip(terms, texts, priors, strict=True))
        )
        self._eddy = self._build.eddy(
            self._modules, instrument, plan.precedence(), by_number(priors)
        )
        self._build.require_all_known()
        self._classes = self._classes_of(plan, learned, clock)
        self._called_for_outputs = self._calls_in(plan.outputs, len(terms))
        self._called_again: dict[int, CallsInRounds | None] = {}  # by term, where it was needed
        self._rows_in = 0
        self._rows_out = 0
        self._errors_dropped = [0] * len(terms)

    @property
    def eddy(self) -> Eddy:
        """The eddy that routes the conjuncts."""
        return self._eddy

    def learned(self) -> Learned:
        """Return what this eddy and those inside it know, for the next one to start with."""
        return replace(self._build.learned(), classes=self._classes)

    @property
    def told_apart(self) -> tuple[ToldApart, ...]:
        """The columns by whose values rows were told apart, with the number of these rows."""
        return () if self._classes is None else self._classes.told_apart

    def filter(self, columns: Sequence[pa.Array], rows: int) -> Filtered:
        """Return which of ``rows`` rows pass, and the outputs for them.

        Raises what a user function raised on a row that everything else accepts;
        ValueError where a column has not so many rows.
        """
        require_lengths(columns, rows)
        numbers = self._relation.load(columns, rows)
        self._rows_in += rows
        self._held.by_row.clear()
        failed: dict[int, Exception] = {}
        start = numbers.start
        if not self._terms:
            self._rows_out += rows
            outputs = self._values(numbers, failed)
            return Filtered(np.arange(rows), outputs, _from(start, failed))
        finished = self._routed(columns, numbers)
        parts = [as_array(part) for batch in finished if (part := batch.rows[0]) is not None]
        alive: Rows = np.sort(np.concatenate(parts)) if parts else numbers[:0]
        if len(alive) == rows:
            alive = numbers
        if self._held.by_row:
            alive, failed = self._settle(alive)
        outputs = self._values(alive, failed)
        self._rows_out += len(alive)
        return Filtered(as_array(alive) - start, outputs, _from(start, failed))

    def statistics(self) -> FilterStatistics:
        """Return what was done so far."""
        return FilterStatistics(
            self._rows_in,
            self._rows_out,
            tuple(
                module.statistics(self._eddy.spent_in(position))
                for position, module in enumerate(self._modules)
            ),
            self._relation.statistics(),
            self._eddy.statistics(),
            tuple(self._errors_dropped),
        )

    def _routed(self, columns: Sequence[pa.Array], numbers: range) -> list[TupleBatch]:
        """Return the rows that no conjunct has rejected."""
        entering = TupleBatch(ENTERING, (numbers,))
        if self._classes is None:
            return self._eddy.run(entering)
        self._classes.begin(columns, numbers)
        try:
            return self._eddy.run(entering)
        finally:
            self._classes.end(self._eddy.costs())

    def _classes_of(
        self, plan: FilterPlan, learned: Learned | None, clock: Clock
    ) -> ContentClasses | None:
        """Return what tells rows apart by their values, where the policy asks for it."""
        policy, modules = self._eddy.policy, len(self._modules)
        if not isinstance(policy, RoutesByContent) or not policy.by_content:
            return None
        if not 1 < modules <= MOST_MODULES:
            return None
        known = None if learned is None else learned.classes
        if not isinstance(known, ContentClasses):
            known = ContentClasses(modules, plan.precedence())
        known.attach(policy, clock)
        self._eddy.watch_by(known)
        return known

    def _settle(self, alive: Rows) -> tuple[Rows, dict[int, Exception]]:
        """Raise what counts among the held errors, or return it; first the rows that pass."""

        def ask_again(term: int, positions: Sequence[int]) -> list[Verdict]:
            rows = as_array(alive)[list(positions)]
            self._relation.forget_collective_failures(expression_of(self._terms[term]), rows)
            if term not in self._called_again:
                number = len(self._terms) + 1 + term
                self._called_again[term] = self._calls_in(
                    [expression_of(self._terms[term])], number
                )
            if (again := self._called_again[term]) is not None:
                again.all_now(rows)
            true, errors = decide(self._terms[term], self._relation.scope(rows))
            return verdicts(true, errors)

        failed: dict[int, Exception] = {}
        rejected = settle(
            {position: dict(held) for position, held in self._held.among(alive)},
            ask_again,
            failed if self._hands_on_errors else None,
        )
        rows = as_array(alive)
        of_rows = {int(rows[position]): error for position, error in failed.items()}
        for held in self._held.by_row.values():
            for term, _ in held:
                self._errors_dropped[term] += 1
        return np.delete(rows, list(rejected)) if rejected else alive, of_rows

    def _values(self, rows: Rows, failed: dict[int, Exception]) -> tuple[pa.Array, ...]:
        """Return the outputs of kept rows; those for which one fails are put into ``failed``."""
        if not self._outputs:
            return ()
        sound = rows
        if failed:
            numbers = as_array(rows)
            sound = numbers[~np.isin(numbers, list(failed))]
        if self._called_for_outputs is not None:
            self._called_for_outputs.all_now(sound)
        outputs = [self._output(call, sound, failed) for call in self._outputs]
        if len(sound) == len(rows):
            return tuple(outputs)
        places = np.searchsorted(sound, as_array(rows))
        missing = np.isin(as_array(rows), sound, invert=True)
        return tuple(values.take(pa.array(places, mask=missing)) for values in outputs)

    def _calls_in(self, expressions: Sequence[Expression], number: int) -> CallsInRounds | None:
        """Return the maker of calls that no module makes, under a number of its own."""
        agenda = self._later.agenda
        calls = None if agenda is None else self._later.calls(expressions, agenda)
        if calls is not None:
            calls.attend(number)
        return calls

    def _output(self, call: Call | Case, rows: Rows, failed: dict[int, Exception]) -> pa.Array:
        """Return a call's values for rows that are kept; its errors count at once."""
        vector: Vector = evaluate(call, self._relation.scope(rows))
        if _any_together(vector):
            return self._asked_in_parts(call, as_array(rows), failed)
        return self._sound(vector, rows, failed)

    def _asked_in_parts(
        self, call: Call | Case, rows: npt.NDArray[np.int64], failed: dict[int, Exception]
    ) -> pa.Array:
        """Return values for rows, some of which a function has failed for together with others.

        It is asked again, about halves of the rows where it fails again, down to single rows: for
        each row that fails, as many calls as the rows can be halved.
        """
        self._relation.forget_collective_failures(call, rows)
        if self._called_for_outputs is not None:
            self._called_for_outputs.all_now(rows)
        vector = evaluate(call, self._relation.scope(rows))
        if self._hands_on_errors and len(rows) > 1 and _any_together(vector):
            halves = np.array_split(rows, 2)
            return pa.concat_arrays([self._asked_in_parts(call, h, failed) for h in halves])
        return self._sound(vector, rows, failed)

    def _sound(self, vector: Vector, rows: Rows, failed: dict[int, Exception]) -> pa.Array:
        """Return a vector's values, with its errors raised or taken note of."""
        if vector.errors and not self._hands_on_errors:
            raise cause(vector.errors[min(vector.errors)])
        for position, error in vector.errors.items():
            failed.setdefault(int(rows[position]), cause(error))
        return vector.values


def _any_together(vector: Vector) -> bool:
    """Whether a function failed for several rows together."""
    return any(isinstance(error, CollectiveFailure) for error in vector.errors.values())


def _from(start: int, failed: Mapping[int, Exception]) -> dict[int, Exception]:
    """Return what failed by the position of the row, counted from a first one."""
    return {row - start: error for row, error in failed.items()}
