"""Which modules a tuple of a join query may visit next: Table 2, as far as it is about routing.

The constraints that bind the one who routes, with the paper's names (Raman, Deshpande and
Hellerstein, 2003, Table 2). What binds the SteM itself, SteM BounceBack and TimeStamp, is in
:mod:`eddyline.engine.modules.stem`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from eddyline.engine.clock import Clock
from eddyline.engine.join_graph import JoinGraph
from eddyline.engine.preference import Preference
from eddyline.engine.routes import Routes
from eddyline.engine.signature import Signature
from eddyline.engine.table_progress import Fetching, TableProgress
from eddyline.expressions import Call, cannot_fail


def early_predicates(graph: JoinGraph) -> Iterator[int]:
    """Yield the predicates that are checked before rows are built.

    Cheap ones over one relation are: what they reject need not be stored. One that calls a
    function may wait until its row is wanted; then it is asked once, and a row that it
    rejects is killed in its SteM. One that may fail must wait: an error is held by the number
    of its row, and a row gets another one when it is built. Rows that several relations share
    are built as they come.
    """
    query = graph.query
    for predicate, (expression, mask) in enumerate(zip(graph.predicates, graph.masks, strict=True)):
        spanned = mask or 1  # a predicate over nothing goes with the first relation
        relation = spanned.bit_length() - 1
        if (
            spanned == 1 << relation
            and not query.shares_rows(relation)
            and query.relations[relation].only_scanned
            and cannot_fail(expression)
        ):
            yield predicate


class JoinRoutes(Routes):
    """The candidates of a join query's signatures.

    Modules are numbered: first the predicates of the graph, then one SteM a relation, then
    the lookups. A tuple that spans only a SteM's relation builds into it, any other probes it.
    BoundedRepetition: each step sets a Done bit or adds a component, except that a prior
    prober goes back to one SteM, once at each end of transmission that it waits for.
    The modules are those of the graph, which none joins and none leaves.
    """

    joins = True

    def __init__(
        self, graph: JoinGraph, early: Iterable[int] = (), clock: Clock | None = None
    ) -> None:
        """``early`` are predicates over one relation that come before its rows are built.

        ``clock`` tells how fast scans are.
        """
        relations = graph.query.relations
        self.graph = graph
        self.first_stem = len(graph.predicates)
        self.first_lookup = self.first_stem + len(relations)
        self.lookups = graph.query.lookups
        super().__init__(self.first_lookup + len(self.lookups))
        self._masks = tuple(mask or 1 for mask in graph.masks)
        self._early = sum(1 << predicate for predicate in early)
        self._streamed = 0  # relations whose new tuples are not built
        self._steps: dict[tuple[Signature, int], Signature] = {}
        self._remaining: dict[Signature, tuple[int, ...]] = {}
        self._lookups_for: dict[tuple[int, int], tuple[int, ...]] = {}
        self._operations: dict[tuple[int, int], Hashable] = {}
        self.tables = tuple(TableProgress(clock, scanned=relation.scan) for relation in relations)
        """How far the access methods of each relation are."""
        self._preference: Preference | None = None
        self.partial_rows = False
        """Whether tuples are wanted that nothing can complete yet."""
        self._empty = 0  # relations that are scanned and have given no row yet

    @property
    def free(self) -> bool:
        """Whether tuples may visit the modules in any order: not where probes open others."""
        return False

    def add(self) -> int:
        """Raise ValueError: a graph has the modules that it has."""
        raise ValueError("no module can be added to those of a join query")

    def remove(self, module: int) -> None:
        """Raise ValueError: a graph has the modules that it has."""
        raise ValueError(f"module {module} is one of a join query and cannot be removed")

    def stem(self, relation: int) -> int:
        """Return the module that is a relation's SteM."""
        return self.first_stem + relation

    def stream(self, relation: int, *, streamed: bool) -> None:
        """Say whether new tuples of a relation are only streamed past the SteMs of others.

        ValueError where BuildFirst forbids that.
        """
        description = self.graph.query.relations[relation]
        if streamed and self.must_build_first(relation):
            raise ValueError(f"{description.name} has several access methods: it must be built")
        mask = 1 << relation
        wanted = self._streamed | mask if streamed else self._streamed & ~mask
        if wanted != self._streamed:
            self._streamed = wanted
            self._forget_candidates()

    def must_build_first(self, relation: int) -> bool:
        """BuildFirst: a singleton must first be built iff there are several access methods.

        An index access method alone counts as well. Where a scan is all there is, the
        rows of the largest relation can be spared the SteM (Section 3.5).
        """
        return not self.graph.query.relations[relation].only_scanned

    def lookups_for(self, spanned: int, relation: int) -> tuple[int, ...]:
        """Return the lookups of a relation that tuples bring all values for, by number."""
        known = self._lookups_for.get((spanned, relation))
        if known is None:
            known = self._lookups_for[spanned, relation] = tuple(
                number
                for number, (looked_up, lookup) in enumerate(self.lookups)
                if looked_up == relation and self.graph.binds(spanned, relation, lookup)
            )
        return known

    def is_build(self, signature: Signature, module: int) -> bool:
        """Tell whether tuples are to be built by a module: the SteM of the relation they span."""
        stem = module - self.first_stem
        return stem >= 0 and signature.spanned == 1 << stem

    def fetching(self, signature: Signature, module: int) -> Fetching | None:
        """Return the lookups that tuples bind of a SteM's relation, or of a lookup's own."""
        if module < self.first_stem:
            return None
        if module >= self.first_lookup:
            relation = self.lookups[module - self.first_lookup][0]
        else:
            relation = module - self.first_stem
        lookups = self.lookups_for(signature.spanned, relation)
        if not lookups:
            return None
        numbers = tuple(self.first_lookup + number for number in lookups)
        return Fetching(numbers, self.tables[relation])

    def want_partial_rows(self) -> None:
        """Let tuples probe a SteM that holds no row yet only where there is no other."""
        self.partial_rows = True

    def follow_stems(self, empty: Iterable[int]) -> None:
        """Take note of the relations whose SteMs hold no row yet; between two runs of the eddy."""
        if self.partial_rows:
            mask = sum(1 << relation for relation in empty)
            if mask != self._empty:
                self._empty = mask
                self._forget_candidates()

    def _forget_candidates(self) -> None:
        self.version += 1
        self._known.clear()
        self._remaining.clear()

    def prefer(self, preference: Preference | None) -> None:
        """Let tuples that satisfy a preference go first, and be worth its weight."""
        self._preference = preference
        self.version += 1

    def weight(self, signature: Signature) -> float:
        """Return the weight of the preference where tuples satisfy it, else 1."""
        preference = self._preference
        return 1.0 if preference is None else preference.weight_of(signature)

    def is_ahead(self, signature: Signature) -> bool:
        """Tell whether tuples of a signature are worth more than others are now."""
        preference = self._preference
        if preference is None or preference.weight == 1.0:
            return False
        return preference.weight_of(signature) == max(preference.weight, 1.0)

    def operation(self, signature: Signature, module: int) -> Hashable:
        """Return the module; for a SteM also the columns by which it is probed."""
        if not self.first_stem <= module < self.first_lookup:
            return module
        known = self._operations.get((signature.spanned, module))
        if known is None:
            keys = self.graph.keys(signature.spanned, module - self.first_stem)
            columns = tuple(sorted(key.stored for key in keys))
            known = module, columns or signature.spanned  # each range and product by itself
            self._operations[signature.spanned, module] = known
        return known

    def only_computes(self, module: int) -> bool:
        """Tell whether a module is a SteM, or a predicate that calls no function."""
        if module >= self.first_lookup:
            return False
        return module >= self.first_stem or not any(
            isinstance(node, Call) for node in self.graph.predicates[module].walk()
        )

    def candidates(self, signature: Signature) -> tuple[int, ...]:
        """Return the modules that may come next; empty where the tuple is finished."""
        known = self._known.get(signature)
        if known is None:
            known = self._known[signature] = tuple(self._candidates(signature))
        return known

    def after(self, signature: Signature, module: int) -> Signature:
        """Return the signature that tuples get from a module."""
        known = self._steps.get((signature, module))
        if known is None:
            known = self._steps[signature, module] = self._after(signature, module)
        return known

    def remaining(self, signature: Signature) -> tuple[int, ...]:
        """Return the modules that the tuple has yet to visit, candidates or not."""
        known = self._remaining.get(signature)
        if known is None:
            stems = range(len(self.graph.query.relations))
            builds = self._builds(signature)
            known = self._remaining[signature] = (
                *(p for p in range(self.first_stem) if not signature.done >> p & 1),
                *(
                    self.stem(r)
                    for r in stems
                    if (not signature.spanned >> r & 1) or (builds and signature.spanned == 1 << r)
                ),
            )
        return known

    def _candidates(self, signature: Signature) -> Iterable[int]:
        spanned, done = signature.spanned, signature.done
        builds = self._builds(signature)
        relation = spanned.bit_length() - 1
        if builds and self.must_build_first(relation):
            yield self.stem(relation)
            return
        early = self._early if builds else 0
        waiting = 0
        for predicate, mask in enumerate(self._masks):
            # BoundedRepetition: a tuple visits a selection once.
            if mask & ~spanned == 0 and not done >> predicate & 1:
                if builds and not early >> predicate & 1:
                    continue
                waiting |= 1 << predicate
                yield predicate
        if builds:
            if not waiting:
                yield self.stem(relation)
            return
        if signature.probed:
            yield from self._probe_completion(signature)
            return
        following = self.graph.next_relations(spanned)
        if self.partial_rows:
            following = following & ~self._empty or following
        while following:
            relation = (following & -following).bit_length() - 1
            following &= following - 1
            yield self.stem(relation)

    def _builds(self, signature: Signature) -> bool:
        """Tell whether tuples are singletons that are still to be built.

        A prior prober is not, also where its relation is no longer streamed: built now, it
        would find again what it has found.
        """
        spanned, built, _, probed, _ = signature
        return not (built or probed or spanned & (spanned - 1) or spanned & self._streamed)

    def _probe_completion(self, signature: Signature) -> Iterable[int]:
        """ProbeCompletion: of all SteMs a prior prober goes to its probe completion table's only.

        To no SteM at all before it was probed into an access method of that table.
        """
        relation = signature.probed.bit_length() - 1
        asked = signature.done >> self.first_lookup  # was probed into one of the lookups
        lookups = () if asked else self.lookups_for(signature.spanned, relation)
        if not lookups or self.graph.query.relations[relation].scan:
            yield self.stem(relation)
        for number in lookups:
            yield self.first_lookup + number

    def _after(self, signature: Signature, module: int) -> Signature:
        if module < self.first_stem or module >= self.first_lookup:
            return signature.after(module)
        mask = 1 << (module - self.first_stem)
        spanned, built, done, _, mark = signature
        done &= (1 << self.first_stem) - 1  # a lookup's bit is of this probe only
        if spanned & mask:
            return Signature(spanned, mask, done, 0, mark)
        # What a probe's index has checked needs no visit of its own.
        for predicate in self.checked_by_probe(spanned, module - self.first_stem):
            done |= 1 << predicate
        for predicate in range(self.first_stem):
            if self._early >> predicate & 1 and self._masks[predicate] == mask:
                done |= 1 << predicate
        return Signature(spanned | mask, built | mask, done, 0, mark)

    def checked_by_probe(self, spanned: int, relation: int) -> tuple[int, ...]:
        """Return the range predicates that a probe's ordered index checks."""
        if self.graph.keys(spanned, relation):
            return ()
        return tuple(edge.predicate for edge in self.graph.best_ranges(spanned, relation))
