"""A join block in an eddy: rows of several relations in, joined rows out.

Over 450 lines, most of them one class: what it hands on to is in the files beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from eddyline.engine.batch import TupleBatch
from eddyline.engine.clock import Clock
from eddyline.engine.components import ComponentStores
from eddyline.engine.eddy import Eddy, Learned
from eddyline.engine.join.join_results import Joined, JoinResults, PartialResults
from eddyline.engine.join.join_state import JoinState
from eddyline.engine.join.join_statistics import JoinStatistics, statistics_of
from eddyline.engine.join.lookups import NO_LOOKUPS, LookupSource, let_rest, made_lookups
from eddyline.engine.join.reading_order import ReadingOrder, StalledError
from eddyline.engine.join.shortcuts import SemijoinReduction, Shortcuts
from eddyline.engine.join_graph import JoinGraph
from eddyline.engine.join_query import JoinQuery
from eddyline.engine.join_routes import JoinRoutes, early_predicates
from eddyline.engine.modules.join_selection import JoinSelection
from eddyline.engine.modules.scan_access import Arrival, ScanAccess
from eddyline.engine.modules.stem import SteM
from eddyline.engine.policies.policy import Policy, begin_with
from eddyline.engine.preference import PREFERRED, Preference, sorting
from eddyline.engine.prior import by_number
from eddyline.engine.quantum import Quantum
from eddyline.engine.relation import (
    Relation,
    require_answers_at_once,
    require_functions,
    require_lengths,
)
from eddyline.engine.routing import Instrument
from eddyline.engine.signature import Signature
from eddyline.engine.term_modules import ROW_VISIT_COST, RoutedTerm, TermModules, TuplesInHand
from eddyline.expressions import Call, Expression
from eddyline.expressions.terms import Leaf, Term, expression_of, terms_of
from eddyline.expressions.vector import Function

STEM_VISIT_COST = 150e-6
"""Guess of the seconds that a visit to a SteM costs however few tuples come; then measured.

Rather too high: what a first look's tuples cost beside the visit then looks small for every
SteM, and what they return decides.
"""

LOOKUP_VISIT_COST = 1e-3
"""The same for a lookup, whose source may be far away."""

PASSING = 1 << 19
"""Rows of a relation that are kept though they are not built, for tuples that wait for a lookup.

Then the eddy waits until none does, and forgets them.
"""

BACKLOG = 1 << 17
"""Tuples that may wait for room in a lookup's queue while more is read.

Some of them need not ask any more once another has, and other modules go on with theirs.
"""


class JoinEddy:
    """Runs a select-project-join query by routing tuples among selections, SteMs and lookups.

    The answer is the bag of rows of the cross product for which every predicate is TRUE;
    where none is FALSE or NULL for such a row but some failed, an error of the failed ones
    is raised, as the user's function raised it. No policy, seed, batch size or order of
    arrival changes that.
    """

    def __init__(
        self,
        query: JoinQuery,
        functions: Sequence[Function],
        make_policy: Callable[[], Policy],
        clock: Clock,
        generator: np.random.Generator,
        *,
        lookups: Mapping[tuple[int, int], LookupSource] = NO_LOOKUPS,
        quantum: Quantum | None = None,
        instrument: Instrument | None = None,
        learned: Learned | None = None,
        state: JoinState | None = None,
    ) -> None:
        """Make the eddy with empty SteMs; calls in ``query`` name ``functions`` by position.

        ValueError for a call that names none, and for functions that answer later: in a join
        they cannot.
        ``lookups`` are what the lookups of the query ask, by number of relation and of the
        lookup among the relation's; ValueError where one is missing or too many.
        ``learned`` is what another eddy over the same query knew at its end; ValueError where
        it has other eddies or modules. With ``state`` it goes on where another eddy over the
        same query has stopped, whose state it was; ValueError where it cannot be.
        """
        require_answers_at_once(functions)
        require_functions(functions, (*query.predicates, *query.outputs))
        self.query = query
        self.graph = JoinGraph(query)
        self.reading = ReadingOrder()
        count = len(query.relations)
        self._numbers = range(count)
        self._own = tuple(
            r for r in self._numbers if query.store_of(r) == r and query.relations[r].scan
        )
        # A row that is joined with many is asked for by each of them: named twice, what it
        # is asked for is remembered. What a selection asks of one relation it remembers itself.
        by_tuple = [
            predicate
            for predicate, mask in zip(self.graph.predicates, self.graph.masks, strict=True)
            if mask & (mask - 1)
        ]
        uses = (*self.graph.predicates, *query.outputs, *query.outputs, *by_tuple)
        self._shared = {r for r in self._numbers if query.shares_rows(r)}
        self._supplied: list[int] = []  # relations that end as soon as no lookup is under way
        self._state = JoinState.of(self.graph) if state is None else state
        if not self._state.fits(self.graph):
            raise ValueError("the state is that of another query")
        built = [Relation(functions, uses, clock, part) for part in self._state.built]
        passing = [
            built[r] if r in self._shared else Relation(functions, uses, clock, part)
            for r, part in enumerate(self._state.passing)
        ]
        self._components = ComponentStores(query, built, passing)
        self.routes = JoinRoutes(self.graph, early_predicates(self.graph), clock)
        self._preferences = 0  # so far
        self.between_steps: Callable[[], None] = lambda: None
        """Called where :meth:`prefer` may be, however long the eddy goes on by itself."""
        self.stems = tuple(
            SteM(
                r,
                self.routes,
                self._components,
                self._state.ticks,
                state=self._state.stems[r],
                shared=r in self._shared,
                nothing_to_probe=self._nothing_to_probe,
                passed_before=self._passed_before,
                still_wanted=self._still_wanted,
            )
            for r in self._numbers
        )
        self._shortcuts = Shortcuts(self.routes, self.stems, self._shared, self.reading)
        in_hand = TuplesInHand(built[0].is_vectorized)
        self._terms = TermModules(
            in_hand, make_policy, clock, generator, self._text_of_term, quantum, learned
        )
        known_before = by_number(query.priors)
        self._selections = tuple(
            JoinSelection(
                number,
                self._text(number),
                term,
                self.graph.masks[number],
                self._components,
                self.routes,
                self._kill,
                self._state.selections[number],
                RoutedTerm(term, self._text(number), in_hand, self._terms, known_before.get(number))
                if _is_worth_routing(term)
                else None,
            )
            for number, term in enumerate(map(terms_of, self.graph.predicates))
        )
        self._lookups = made_lookups(lookups, self._components, self.routes, self.stems)
        chosen, known = self._terms.known()
        self._eddy = Eddy(
            (*self._selections, *self.stems, *self._lookups),
            chosen,
            clock,
            generator,
            routes=self.routes,
            quantum=quantum,
            visit_costs=[
                *([ROW_VISIT_COST] * len(self._selections)),
                *([STEM_VISIT_COST] * count),
                *([LOOKUP_VISIT_COST] * len(self._lookups)),
            ],
            learned=known,
            instrument=instrument,
        )
        self._terms.add(self._eddy)
        if known is None:
            begin_with(chosen, known_before)
        self._terms.require_all_known()
        self._reduction = SemijoinReduction(self.graph, self.stems)
        self._results = JoinResults(query, self._components, self._selections)

    @property
    def eddy(self) -> Eddy:
        """The eddy that routes."""
        return self._eddy

    @property
    def state(self) -> JoinState:
        """What it holds, for another eddy over the same query to go on with.

        It changes as rows come: copy or pickle it to keep it, and that between arrivals, when
        the iterators of :meth:`push` and :meth:`end` are exhausted.
        """
        return self._state

    def renew(
        self, functions: Sequence[Function], clock: Clock, instrument: Instrument | None = None
    ) -> None:
        """Go on with other functions, which do the same, another clock and instrument.

        For a SteM that outlives the task in which it was built.
        """
        for relation in (*self._components.built, *self._components.passing):
            relation.renew(functions, clock)
        for table in self.routes.tables:
            table.clock = clock
        self._terms.renew(clock)
        self._eddy.renew(clock, instrument)

    def note_partial_results(self) -> PartialResults:
        """Note partial results from now on, and return where."""
        noted = PartialResults(self.graph, self._components)
        self._eddy.witness = noted.note
        return noted

    def learned(self) -> Learned:
        """Return what this eddy knows, for the next one to start with."""
        return self._terms.learned()

    def want_partial_rows(self) -> None:
        """Join rows of some relations also while nothing can become of them.

        That is while another relation, which is scanned, has given none: then its SteM comes
        last on the way of every tuple. For those who watch rows of some relations arise, with
        an instrument (Raman, Deshpande and Hellerstein, 2003, Section 3.4).
        """
        self.routes.want_partial_rows()

    def prefer(self, predicate: Expression | None, weight: float = PREFERRED) -> None:
        """Let rows that satisfy a predicate come first from now on; None: no row before others.

        In place of what was preferred before, and between the steps of :meth:`run` as well. The
        predicate is over columns of the query; what it says of R.a it says of S.b where R.a =
        S.b (Raman, Deshpande and Hellerstein, 2003, Section 4.6). ``weight`` is what such a row
        is worth beside any other; one below 1 lets these come last. The rows are the same.
        ValueError for what :class:`~eddyline.engine.preference.Preference` refuses.
        """
        preference = None
        if predicate is not None:
            self._preferences += 1
            preference = Preference(self._preferences, predicate, weight)
        self.routes.prefer(preference)
        self._eddy.sort_by(sorting(preference, self.graph, self._components))

    def run(
        self, inputs: Sequence[ScanAccess], wait: Callable[[], None] | None = None
    ) -> Iterator[Joined]:
        """Read the inputs, one a relation, to their end and yield joined rows as they arise.

        ``wait`` is called where no input has anything to give, and no lookup has anything to
        answer; without it StalledError is raised then. A relation that shares another's rows
        has no input of its own, and one that is only looked up has none: what stands in its
        place is not read. ValueError where something else than one input a relation is given.
        """
        if len(inputs) != len(self._numbers):
            raise ValueError(f"{len(self._numbers)} relations cannot have {len(inputs)} inputs")
        return self._read(inputs, wait)

    def _read(
        self, inputs: Sequence[ScanAccess], wait: Callable[[], None] | None
    ) -> Iterator[Joined]:
        own = self._own
        sources = [inputs[r] for r in own]
        read = [0] * len(own)
        for number, r in enumerate(own):
            if sources[number].ended:
                yield from self.end(r)
        while order := self.reading.order(sources, read):
            self.between_steps()
            for number in order:
                arrival = sources[number].poll()
                ended = sources[number].ended
                if arrival is not None:
                    read[number] += arrival.rows
                    self._expect(own[number], sources[number].expected_rows)
                    if arrival.rows:
                        yield from self.push(own[number], arrival)
                if ended:
                    yield from self.end(own[number])
                if arrival is not None or ended:
                    break
            else:
                yield from self._stalled(wait)
            while self._eddy.backlog > BACKLOG:
                yield from self._advanced(more=True)
        yield from self.finish()

    def _expect(self, relation: int, rows: float | None) -> None:
        for alias in self._numbers:
            if self.query.store_of(alias) == relation:
                self.routes.tables[alias].expects(rows)

    def _stalled(self, wait: Callable[[], None] | None) -> Iterator[Joined]:
        """Wait for a lookup to answer, where one has to, else as the caller says."""
        if self._eddy.away:
            yield from self._advanced(more=True)
        elif wait is None:
            raise StalledError("no input has rows to give, and some have not ended")
        else:
            wait()

    def finish(self) -> Iterator[Joined]:
        """Wait for what lookups have still to answer, and yield what arises by it."""
        while True:
            yield from self._end_supplied()
            if not self._eddy.away:
                return
            yield from self._advanced()

    def push(self, relation: int, arrival: Arrival) -> Iterator[Joined]:
        """Take rows of a relation and yield what they join to with those that came before.

        Where a lookup answers later, it comes later: with one of the next, or by :meth:`finish`.

        ValueError for a relation that has no scan of its own, and for rows that are not its.
        """
        if relation not in self._own:
            raise ValueError(f"relation {relation} has no scan of its own; {self._own} have")
        described = self.query.relations[relation]
        if len(arrival.columns) != len(described.types):
            raise ValueError(
                f"{described.name} has {len(described.types)} columns, not {len(arrival.columns)}"
            )
        require_lengths(arrival.columns, arrival.rows)
        return self._pushed(relation, arrival)

    def _pushed(self, relation: int, arrival: Arrival) -> Iterator[Joined]:
        self.routes.follow_stems(self._shortcuts.empty())
        for table in self.routes.tables:
            table.began()
        aliases = [r for r in self._numbers if self.query.store_of(r) == relation]
        first = self._components.passing[relation]
        if first.store.stop - first.store.first > PASSING:
            yield from self.finish()
        if len(aliases) > 1 or self._waits_for_more(relation):
            numbers = first.append(arrival.columns, arrival.rows)
        else:
            numbers = first.load(arrival.columns, arrival.rows)
        for alias in aliases:
            self._state.read[alias] += arrival.rows
            self.routes.tables[alias].came(arrival.rows)
            streamed = self._shortcuts.may_stream(alias)
            self.routes.stream(alias, streamed=streamed)
            rows: list[range | npt.NDArray[np.int64] | None] = [None] * len(self._numbers)
            rows[alias] = numbers
            batch = TupleBatch(Signature(1 << alias, done=arrival.done), tuple(rows))
            if streamed and self._nothing_to_probe(batch):
                self.stems[alias].prune(len(batch))
                continue
            if not streamed and self._shortcuts.may_be_reduced(alias):
                reduced = self._reduction.reduced(batch, alias)
                self.stems[alias].prune(len(batch) - len(reduced))
                batch = reduced
            yield from self._emitted(self._eddy.feed(batch))

    def end(self, relation: int) -> Iterator[Joined]:
        """Take the end of transmission of a relation's scan; yield what waited for it."""
        ended = [alias for alias in self._numbers if self.query.store_of(alias) == relation]
        for supplied, suppliers in self.graph.suppliers.items():
            if any(suppliers >> alias & 1 for alias in ended):
                self._supplied.append(supplied)
        for r in ended:
            yield from self._ended(r)
        yield from self._end_supplied()

    def _end_supplied(self) -> Iterator[Joined]:
        """End relations whose suppliers have ended, once no lookup is under way."""
        while self._supplied and not self._eddy.away:
            yield from self._ended(self._supplied.pop())

    def _ended(self, relation: int) -> Iterator[Joined]:
        self.stems[relation].end()
        for batch in self.stems[relation].state.unpark():
            yield from self._emitted(self._eddy.feed(batch, new=False))

    def statistics(self) -> JoinStatistics:
        """Return what was done so far."""
        return statistics_of(
            self._components,
            self._state.read,
            self._results.rows,
            self.stems,
            self._lookups,
            self._selections,
            self._eddy,
        )

    def _text(self, predicate: int) -> str:
        return self.graph.texts[predicate] or f"predicate {predicate}"

    def _text_of_term(self, term: Term) -> str:
        return self.query.text_of(expression_of(term))

    def _waits_for_more(self, relation: int) -> bool:
        """Tell whether unfinished tuples hold rows of a relation that were not built."""
        return bool(self._eddy.away) or self._shortcuts.is_held_unbuilt(relation)

    def _nothing_to_probe(self, batch: TupleBatch) -> bool:
        return self._shortcuts.nothing_to_probe(batch)

    def _passed_before(self, relation: int, places: range, done: int) -> None:
        """Take over, for rows built now, which predicates they passed before they came."""
        for number, selection in enumerate(self._selections):
            if done >> number & 1 and selection.relations == 1 << relation:
                selection.accept_built(places)

    def _still_wanted(self, batch: TupleBatch) -> TupleBatch:
        """Drop the tuples that hold a row which a selection has rejected by now.

        They were made before the row was asked about. Where a row with a large fan-out turns
        out to be unwanted, its other tuples need not fan out again: 1.8 million matches
        instead of 11.6 where a predicate rejects the 30 first of 10,000 keys by Zipf's law.
        """
        for selection in self._selections:
            rejected = selection.has_rejected(batch)
            if rejected is not None:
                batch = batch.keep(~rejected, batch.signature)
        return batch

    def _kill(self, relation: int, places: npt.NDArray[np.int64]) -> None:
        self.stems[relation].kill(places)

    def _advanced(self, *, more: bool = False) -> Iterator[Joined]:
        """Wait for an answer; ``more`` rows may come before there is one."""
        if not more:
            let_rest(self._eddy)
        self.between_steps()
        yield from self._emitted(self._eddy.advance())

    def _emitted(self, finished: list[TupleBatch]) -> Iterator[Joined]:
        if not self._eddy.away:
            for r in {looked_up for looked_up, _ in self.routes.lookups}:
                self._components.passing[r].evict()  # built by now, every one
        yield from self._results.joined(finished)


def _is_worth_routing(term: Term) -> bool:
    """Tell whether some terms of a predicate call functions and need not be asked."""
    return not isinstance(term, Leaf) and any(
        isinstance(node, Call) for node in expression_of(term).walk()
    )
