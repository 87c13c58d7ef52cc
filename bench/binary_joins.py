"""Joins as the eddy of 2000 has them: binary pipelined hash joins, each with both its tables.

Kept for comparison with SteMs. Such a module swallows a tuple that it has no match for yet:
the tuple stays in one of its hash tables, and no other join sees it before a match comes in
(Avnur and Hellerstein, 2000, Sections 3.1 and 4.5.1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from eddyline.engine.batch import TupleBatch, as_array, spread
from eddyline.engine.components import required_rows
from eddyline.engine.routes import Routes
from eddyline.engine.signature import Signature


class Side(NamedTuple):
    """One input of a binary join: a relation, and its join key by row number."""

    relation: int
    keys: npt.NDArray[np.int64]


class Stored(NamedTuple):
    """A tuple in a hash table: its signature and a row number for each relation, or -1."""

    signature: Signature
    rows: tuple[int, ...]


class BinaryRoutes(Routes):
    """A tuple may visit every join that it has not done and of which it spans one side."""

    joins = True

    def __init__(self, joins: Sequence[tuple[int, int]]) -> None:
        """Give the two relations of each join."""
        super().__init__(len(joins))
        self._masks = tuple(1 << left | 1 << right for left, right in joins)

    def candidates(self, signature: Signature) -> tuple[int, ...]:
        """Return the joins that may come next; empty where the tuple is finished."""
        known = self._known.get(signature)
        if known is None:
            known = self._known[signature] = tuple(
                join
                for join, mask in enumerate(self._masks)
                if signature.spanned & mask and not signature.done >> join & 1
            )
        return known

    def after(self, signature: Signature, module: int) -> Signature:
        """Return the signature that tuples get where they meet a single row."""
        spanned = signature.spanned | self._masks[module]
        return signature.after(module)._replace(spanned=spanned)


class BinaryJoin:
    """A pipelined hash join (Wilschut and Apers, 1991) of tuples that span its two sides.

    A tuple is put into the hash table of its side and probes that of the other one: so each
    pair is met once, by the later of the two. "The Done bits and Ready bits of the two input
    tuples are ORed" (Section 3.2).
    """

    def __init__(
        self,
        position: int,
        name: str,
        left: Side,
        right: Side,
        charge: Callable[[int, int, int], None],
    ) -> None:
        """Make join number ``position``; each visit's builds, probes and matches are charged."""
        self._position = position
        self._name = name
        self._sides = (left, right)
        self._tables: tuple[dict[int, list[Stored]], dict[int, list[Stored]]] = ({}, {})
        self._charge = charge

    @property
    def name(self) -> str:
        """The join as people know it."""
        return self._name

    def process(self, batch: TupleBatch) -> Sequence[TupleBatch]:
        """Put tuples into one table, probe the other one and return what matches."""
        spanned = batch.signature.spanned
        number = 0 if spanned >> self._sides[0].relation & 1 else 1
        side, own, other = self._sides[number], self._tables[number], self._tables[1 - number]
        components = [None if rows is None else as_array(rows).tolist() for rows in batch.rows]
        found: dict[Signature, tuple[list[int], list[tuple[int, ...]]]] = {}
        keys = side.keys[as_array(required_rows(batch, side.relation))].tolist()
        for position, key in enumerate(keys):
            rows = tuple(-1 if column is None else column[position] for column in components)
            own.setdefault(key, []).append(Stored(batch.signature, rows))
            for stored in other.get(key, ()):
                positions, matches = found.setdefault(stored.signature, ([], []))
                positions.append(position)
                matches.append(stored.rows)
        matched = sum(len(positions) for positions, _ in found.values())
        self._charge(len(keys), len(keys), matched)
        return [
            self._joined(batch, signature, np.array(positions), np.array(matches))
            for signature, (positions, matches) in found.items()
        ]

    def _joined(
        self,
        batch: TupleBatch,
        stored: Signature,
        positions: npt.NDArray[np.int64],
        matches: npt.NDArray[np.int64],
    ) -> TupleBatch:
        own = batch.signature
        signature = Signature(own.spanned | stored.spanned, 0, own.done | stored.done)
        rows = [
            spread(ours, positions)
            if ours is not None
            else matches[:, relation]
            if stored.spanned >> relation & 1
            else None
            for relation, ours in enumerate(batch.rows)
        ]
        return TupleBatch(signature.after(self._position), tuple(rows))
