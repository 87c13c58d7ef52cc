"""State Modules: half-joins that hold the rows of one relation and answer probes.

Raman, Deshpande and Hellerstein (2003, Section 2.1.4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.batch import Marks, Rows, TupleBatch, pick, spread
from eddyline.engine.components import ComponentStores, required_rows
from eddyline.engine.join_routes import JoinRoutes
from eddyline.engine.modules.match_finder import MatchFinder
from eddyline.engine.modules.stem_state import SteMState
from eddyline.engine.relation import Relation
from eddyline.engine.timestamps import Ticks


@dataclass(frozen=True, slots=True)
class SteMStatistics:
    """What a SteM holds and did so far; rows and bytes are of now, the others are totals.

    ``pruned`` counts tuples that did not probe since some SteM had nothing older, or since a
    selection had rejected one of their rows meanwhile, ``killed`` stored rows that a
    selection has rejected since they were built.
    """

    relation: str
    rows: int
    bytes: int
    builds: int
    duplicates: int
    probes: int
    matches: int
    bounced: int
    pruned: int
    killed: int
    complete: bool
    indexes: tuple[str, ...]


class SteMCharge(Protocol):
    """Lets virtual time pass for what SteMs do."""

    def worked(self, stem: SteM, builds: int, probes: int, matches: int) -> None:
        """Let the time of a visit pass: rows built, tuples that probed, matches found."""
        ...

    def asked(self, stem: SteM, batch: TupleBatch) -> None:
        """Let the time pass in which a SteM tells which tuples have a match."""
        ...


class SteM:
    """The rows of one relation, as far as they were built, with indexes made on demand.

    A tuple that spans only this relation is built: it is appended, gets a timestamp and
    bounces back. Any other tuple probes: it comes back once for every match, joined with
    it. Where the tuple brings values for columns that are equal in every result, a hash
    index over these columns finds the matches; else a range predicate is answered by an
    ordered index; else every row is paired, and the predicates are left to their modules.

    Adaptivity does not change answers, by two rules that are enforced here (Table 2):
    :meth:`bounces_back` and :meth:`older_than`.
    """

    def __init__(
        self,
        relation: int,
        routes: JoinRoutes,
        components: ComponentStores,
        ticks: Ticks,
        *,
        state: SteMState | None = None,
        shared: bool = False,
        nothing_to_probe: Callable[[TupleBatch], bool] | None = None,
        passed_before: Callable[[int, range, int], None] | None = None,
        still_wanted: Callable[[TupleBatch], TupleBatch] | None = None,
    ) -> None:
        """Make the SteM of a relation, empty or with the ``state`` of another over the same rows.

        ``shared``: its rows are in its store before they are built, in the order in which
        they will be (a self-join, where another relation has the same ones).
        ``nothing_to_probe`` tells of a freshly built batch that no probe of it can match;
        ``passed_before`` is told the places of rows that are built and the predicates, as a
        mask, that they have passed. ``still_wanted`` drops the tuples of a batch that
        had something rejected while they waited.
        """
        graph = routes.graph
        self.relation = relation
        self.description = graph.query.relations[relation]
        self._graph = graph
        self._access = MatchFinder(relation, graph, components)
        self._routes = routes
        self._module = routes.stem(relation)
        self._components = components
        self._ticks = ticks
        self._shared = shared
        self._progress = routes.tables[relation]
        self._nothing_to_probe = nothing_to_probe
        self._passed_before = passed_before
        self._still_wanted = still_wanted
        store = components.built[relation].store
        self.state = SteMState(graph.query, relation, store) if state is None else state
        self.charge: SteMCharge | None = None
        """Where the work of SteMs takes virtual time; None where it takes its own."""

    @property
    def name(self) -> str:
        """The relation's name."""
        return self.description.name

    @property
    def rows(self) -> Relation:
        """Where its rows are."""
        return self._components.built[self.relation]

    @property
    def complete(self) -> bool:
        """Whether it holds every match that a probe by scan has."""
        return self.state.complete

    def statistics(self) -> SteMStatistics:
        """Return what it holds and did."""
        state, totals = self.state, self.state.totals
        return SteMStatistics(
            self.name,
            state.rows,
            state.store.nbytes,
            totals.builds,
            totals.duplicates,
            totals.probes,
            totals.matches,
            totals.bounced,
            totals.pruned,
            totals.killed,
            state.complete,
            state.store.index_names(),
        )

    def process(self, batch: TupleBatch) -> Sequence[TupleBatch]:
        """Build tuples of its own relation; return others joined with their matches."""
        if self.charge is None:
            return self._processed(batch)
        totals = self.state.totals
        builds, probes, matches = totals.builds, totals.probes, totals.matches
        results = self._processed(batch)
        self.charge.worked(
            self, totals.builds - builds, totals.probes - probes, totals.matches - matches
        )
        return results

    def _processed(self, batch: TupleBatch) -> Sequence[TupleBatch]:
        if batch.signature.spanned == 1 << self.relation:
            return self._build(batch)
        if self._still_wanted is not None:
            wanted = self._still_wanted(batch)
            self.prune(len(batch) - len(wanted))
            batch = wanted
        return self._probe(batch) if len(batch) else ()

    def end(self) -> None:
        """Take the end of transmission of a scan: from now on it holds every match there is.

        Every match that is in a result, where it is the scan of a supplier.
        """
        self.state.complete = True
        self._progress.ended()

    def evict_before(self, row: int) -> None:
        """Forget the rows whose number is below ``row``; they match nothing any more."""
        self.rows.store.evict_before(row)

    def kill(self, places: npt.NDArray[np.int64]) -> None:
        """Let stored rows match nothing any more, since a selection has rejected them."""
        self.state.kill(places)

    def prune(self, tuples: int) -> None:
        """Count tuples that were spared a probe."""
        self.state.totals.pruned += tuples

    def older_than(self, batch: TupleBatch) -> npt.NDArray[np.int64]:
        """TimeStamp: the row numbers below this one count, so a result arises only once.

        Of its components the one built last finds the others ("<r, s> is returned iff
        TS(r) > TS(s) > LastMatchTS(r)"). A tuple with a component that is not built has the
        timestamp infinity.
        """
        return self.state.marks.below(batch.timestamps)

    def bounces_back(self, batch: TupleBatch) -> npt.NDArray[np.bool_]:
        """SteM BounceBack, for probing tuples: which of them come back.

        They do unless all their matches are here, or unless the missing ones will come by
        a scan (or by a supplier, where the tuple binds no lookup) and find the tuple in the
        SteMs of its own relations. In that case they still come back the first time if a
        lookup may bring the missing ones sooner (Section 4.1): whether to use it or to leave
        it to the scan is routing.
        """
        spanned, built, _, probed, _ = batch.signature
        lookups = self._routes.lookups_for(spanned, self.relation)
        may_leave = built == spanned and (self.description.scan or not lookups)
        if may_leave and (probed or not lookups):
            return np.zeros(len(batch), np.bool_)
        return ~self.has_all_matches(batch)

    def has_all_matches(self, batch: TupleBatch) -> npt.NDArray[np.bool_]:
        """Return which tuples have all their matches here, as the ends of transmission say."""
        complete = np.full(len(batch), self.state.complete)
        if not self.state.complete:
            for number in self._routes.lookups_for(batch.signature.spanned, self.relation):
                complete |= self.state.answers[number].complete(self.bindings(batch, number))
            if self.state.keys is not None:
                self._note_unique(batch, complete)
        return complete

    def _note_unique(self, batch: TupleBatch, found: npt.NDArray[np.bool_]) -> None:
        """Add the tuples that bring a whole key which is here: there is no second match.

        So where a scan has brought the one row, no lookup is asked for it.
        """
        columns = self._values(batch, self.description.key)
        if columns is None or self.state.keys is None:
            return
        types = [self.description.types[column] for column in self.description.key]
        if [column.type for column in columns] == types:  # labels of structs may differ
            found |= self.state.keys.find(columns) >= 0

    def bindings(self, batch: TupleBatch, lookup: int) -> list[pa.Array]:
        """Return the values that tuples have for the bind columns of a lookup.

        ValueError where they do not bring them all.
        """
        _, description = self._routes.lookups[lookup]
        values = self._values(batch, description.bind)
        if values is None:
            raise ValueError(f"{batch.signature} does not bind a lookup of {self.name}")
        return values

    def _values(self, batch: TupleBatch, wanted: Sequence[int]) -> list[pa.Array] | None:
        """Return the values that tuples bring for columns of this relation, or None."""
        keys = self._graph.keys(batch.signature.spanned, self.relation)
        probing = {key.stored: key.probing for key in keys}
        if any(column not in probing for column in wanted):
            return None
        return [self._components.column(batch, probing[column]) for column in wanted]

    def may_match(self, batch: TupleBatch) -> npt.NDArray[np.bool_]:
        """Return which tuples may have a match among all rows: certain but for text keys."""
        if self.charge is not None:
            self.charge.asked(self, batch)
        return self._access.may_match(batch, self.state.dead)

    def _build(self, batch: TupleBatch) -> Sequence[TupleBatch]:
        rows = required_rows(batch, self.relation)
        released = []
        if self._shared:
            if not isinstance(rows, range) or rows.start != self.state.marks.rows:
                raise ValueError(f"rows of {self.name} are shared and must be built in their order")
            numbers = rows
        else:
            source = self._components.passing[self.relation]
            came, rows = rows, self._without_duplicates(source, rows)
            count = len(self.description.types)
            columns = [source.column(column, rows) for column in range(count)]
            numbers = self.rows.append(columns, len(rows))
            released = self.state.released_by(came)
        if not len(numbers):
            return released
        if self._passed_before is not None and batch.signature.done:
            first = self.rows.store.first
            places = range(numbers.start - first, numbers.stop - first)
            self._passed_before(self.relation, places, batch.signature.done)
        self.state.totals.builds += len(numbers)
        tick = self._ticks.next()
        self.state.marks.built(tick, numbers.stop)
        components = list(batch.rows)
        components[self.relation] = numbers
        signature = self._routes.after(batch.signature, self._module)
        built = TupleBatch(signature, tuple(components), tick)
        if self._nothing_to_probe is not None and self._nothing_to_probe(built):
            self.state.totals.pruned += len(built)
            return released
        return [built, *released]

    def _without_duplicates(self, source: Relation, rows: Rows) -> Rows:
        """SteM BounceBack, for build tuples: one that is here already is absorbed.

        Only another access method can have brought it. Returns the rows whose key is new.
        """
        keys = self.state.keys
        if keys is None:
            return rows
        fresh = keys.add([source.column(column, rows) for column in self.description.key])
        self.state.totals.duplicates += len(rows) - len(fresh)
        return pick(rows, fresh)

    def _probe(self, batch: TupleBatch) -> Sequence[TupleBatch]:
        signature = batch.signature
        store = self.rows.store
        high = self.older_than(batch) - store.first
        low = np.array([0]) if batch.last_match is None else _places(batch.last_match, store.first)
        matches, probed = self._access.matches(batch, low, high, self.state.dead)
        results: list[TupleBatch] = []
        rest: TupleBatch | None = None
        if probed < len(batch):
            batch, rest = batch.cut(probed)
        self.state.totals.probes += len(batch)
        self.state.totals.matches += len(matches.places)
        if len(matches.places):
            joined = [
                None if rows is None else spread(rows, matches.positions) for rows in batch.rows
            ]
            joined[self.relation] = matches.places + store.first if store.first else matches.places
            results.append(
                TupleBatch(
                    self._routes.after(signature, self._module),
                    tuple(joined),
                    _spread_marks(batch.timestamps, matches.positions),
                )
            )
        back = self.bounces_back(batch)
        if not signature.probed:
            self._progress.probed(len(batch), int(np.count_nonzero(back)))
        elif not signature.done >> self._routes.first_lookup:  # was to none
            self._progress.went_on(len(batch))
        if back.any():
            results += self._bounce(batch.keep(back, signature))
        if rest is not None:
            results.append(rest)
        return results

    def _bounce(self, batch: TupleBatch) -> list[TupleBatch]:
        """Turn tuples into prior probers; return them, or keep them until the scan has ended.

        They are kept where there is nothing else for them: no lookup, or none that was chosen.
        """
        self.state.totals.bounced += len(batch)
        before = batch.signature
        signature = before._replace(probed=1 << self.relation)
        prior = TupleBatch(signature, batch.rows, batch.timestamps, self.state.marks.rows)
        if not before.probed and self._routes.lookups_for(before.spanned, self.relation):
            self._progress.bounced(len(prior))
            return [prior]
        self.state.parked.append(prior)
        return []

    def release_when_complete(self, batch: TupleBatch, lookup: int) -> list[TupleBatch]:
        """Take prior probers that were probed into a lookup; return those with all matches here.

        The others come out once the answers to them are built.
        """
        complete = self.has_all_matches(batch)
        positions = np.flatnonzero(~complete)
        if len(positions):
            waiting = batch.at(positions, batch.signature)
            numbers = self.state.answers[lookup].transmission(self.bindings(waiting, lookup))
            for number in np.unique(numbers).tolist():
                self.state.wait(waiting.keep(numbers == number, batch.signature), number)
        return [batch.keep(complete, batch.signature)] if complete.any() else []


def _places(marks: Marks, first: int) -> npt.NDArray[np.int64]:
    """Return row numbers as places from 0 on."""
    return np.maximum(np.atleast_1d(np.asarray(marks, np.int64)) - first, 0)


def _spread_marks(marks: Marks, positions: npt.NDArray[np.int64]) -> Marks:
    return marks[positions] if isinstance(marks, np.ndarray) else marks
