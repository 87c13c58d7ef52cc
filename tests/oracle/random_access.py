"""Random access methods: some relations of a query are looked up, or scanned twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.engine.join_graph import JoinGraph
from eddyline.engine.join_query import JoinQuery, Lookup
from eddyline.engine.modules.concurrent_index_access import ConcurrentSource
from eddyline.engine.modules.index_access import Source
from eddyline.errors import NotExecutableError
from tests.oracle.plain_values import plain
from tests.unruly import UnrulyAgenda, UnrulyCaller


class TableLookup:
    """Answers lookups from a table; it must never be asked for the same values twice."""

    def __init__(
        self, table: pa.Table, bind: tuple[int, ...], generator: np.random.Generator
    ) -> None:
        self._table = table
        self._generator = generator
        self._strange = float(generator.choice([0.0, 0.0, 0.3]))  # rows that nobody asked for
        self._rows: dict[tuple[Any, ...], list[int]] = {}
        self.asked: set[tuple[Any, ...]] = set()
        for row, values in enumerate(_tuples([table.column(column) for column in bind])):
            if None not in values:
                self._rows.setdefault(values, []).append(row)

    def __call__(self, bindings: Sequence[pa.Array]) -> list[pa.Array]:
        rows: list[int] = []
        for values in _tuples(bindings):
            assert None not in values, "NULL is equal to nothing and needs no lookup"
            assert values not in self.asked, f"{values} was looked up twice"
            self.asked.add(values)
            rows += self._rows.get(values, [])
        others = [row for row in range(len(self._table)) if row not in set(rows)]
        rows += [row for row in others if self._generator.random() < self._strange]
        taken = self._table.take(pa.array(self._generator.permutation(np.array(rows, np.int64))))
        return [column.combine_chunks() for column in taken.columns]


def with_access_methods(query: JoinQuery, generator: np.random.Generator) -> JoinQuery:
    """Return the query with other ways to the rows of some relations; it stays executable."""
    shared = {
        query.store_of(r) for r, d in enumerate(query.relations) if d.same_rows_as is not None
    }
    for number, relation in enumerate(query.relations):
        if relation.same_rows_as is not None or number in shared or generator.random() < 0.4:
            continue
        joined = [
            place.column
            for places in JoinGraph(query).classes
            for place in places
            if place.relation == number and len({other.relation for other in places}) > 1
        ]
        wanted = int(generator.choice([0, 1, 1, 1, 2])) if joined else 0
        lookups = tuple(
            Lookup(
                tuple(
                    dict.fromkeys(
                        int(column)
                        for column in generator.choice(joined, int(generator.choice([1, 1, 1, 2])))
                    )
                )
            )
            for _ in range(wanted)
        )
        scan = not lookups or bool(generator.random() < 0.4)
        mirrors = int(scan and generator.random() < 0.2)
        several = scan + mirrors + len(lookups) > 1
        changed = replace(
            relation,
            scan=scan,
            mirrors=mirrors,
            lookups=lookups,
            key=(0,) if several or generator.random() < 0.3 else (),
        )
        relations = (*query.relations[:number], changed, *query.relations[number + 1 :])
        try:
            JoinGraph(changed_query := replace(query, relations=relations))
        except NotExecutableError:
            continue
        query = changed_query
    return query


def with_some_later(
    sources: Mapping[tuple[int, int], TableLookup], generator: np.random.Generator
) -> dict[tuple[int, int], Source | ConcurrentSource]:
    """Return sources of which some, or all, answer later and in any order."""
    agenda = UnrulyAgenda(generator, float(generator.choice([0.0, 0.7, 1.0])))
    part = float(generator.choice([0.0, 0.5, 1.0]))
    found: dict[tuple[int, int], Source | ConcurrentSource] = {}
    for place, source in sources.items():
        found[place] = source
        if generator.random() < part:
            caller = UnrulyCaller(source, agenda, int(generator.choice([1, 3, 16])))
            found[place] = ConcurrentSource(caller, int(generator.choice([1, 1, 4])))
    return found


def _tuples(columns: Sequence[pa.Array | pa.ChunkedArray]) -> list[tuple[Any, ...]]:
    values = [[plain(value) for value in column.to_pylist()] for column in columns]
    return list(zip(*values, strict=True))
