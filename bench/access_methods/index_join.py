"""Index joins as encapsulated modules, which the SteM paper compares with.

Such a module holds a cache of what it has looked up, behind one queue: a tuple whose match is in
the cache waits behind others whose match is not (Raman, Deshpande and Hellerstein, 2003, 4.2).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.access_methods.sources import Column, Index
from bench.access_methods.world import World
from eddyline.engine.batch import TupleBatch, as_array
from eddyline.engine.callers import Agenda, PlannedCall
from eddyline.engine.components import required_rows
from eddyline.engine.modules.module import Answer, BoundedQueue
from eddyline.engine.routes import Routes
from eddyline.engine.signature import Signature

QUEUE = 1 << 20
"""Tuples in front of an index join: all there are.

With few, tuples would wait in the eddy instead, and of two joins one could be idle because the
next tuple is for the other one: that would be worse for the joins.
"""


class IndexJoin:
    """Joins tuples with the rows of an index, one after the other, through a cache.

    ``cache`` holds the keys looked up so far: its own, or one that several joins share.
    """

    def __init__(
        self,
        position: int,
        name: str,
        probing: tuple[int, Column],
        relation: int,
        index: Index,
        world: World,
        cache: set[int] | None = None,
        queue: int = QUEUE,
    ) -> None:
        """Make join number ``position``: ``probing`` is the relation and column of its keys."""
        self._position = position
        self._name = name
        self._probing, self._keys = probing
        self._relation = relation
        self._rows = index.rows()
        self._index = index
        self._world = world
        self._cache: set[int] = set() if cache is None else cache
        self._room = queue
        self._number = 0
        self._waiting: dict[int, TupleBatch] = {}
        self._caller = world.caller(self._find, self._seconds)

    @property
    def name(self) -> str:
        """The join as people know it."""
        return self._name

    @property
    def queue(self) -> BoundedQueue:
        """Room for tuples, the one that is worked on included."""
        return BoundedQueue(self._room)

    @property
    def agenda(self) -> Agenda:
        """Where it says that it has answers."""
        return self._caller.agenda

    def attend(self, number: int) -> None:
        """Take the number of the module in its eddy, for the agenda."""
        self._caller.attend(number)

    def offer(self, batch: TupleBatch) -> None:
        """Take tuples into the queue."""
        keys = self._keys[as_array(required_rows(batch, self._probing))].tolist()
        calls = []
        for place, key in enumerate(keys):
            self._waiting[self._number] = batch.at(np.array([place]), batch.signature)
            calls.append(PlannedCall((batch.signature, self._number), (key,)))
            self._number += 1
        self._caller.submit(calls)

    def collect(self) -> Sequence[Answer]:
        """Return the tuples that are joined, and the others as gone."""
        answers = []
        for (signature, number), row, error, seconds, _ in self._caller.collect():
            if error is not None:
                raise error
            batch = self._waiting.pop(number)
            results = [self._joined(batch, row)] if isinstance(row, int) else []
            answers.append(Answer(signature, 1, results, seconds))
        return answers

    def _joined(self, batch: TupleBatch, row: int) -> TupleBatch:
        rows = list(batch.rows)
        rows[self._relation] = np.array([row])
        signature = batch.signature.after(self._position)
        spanned = signature.spanned | 1 << self._relation
        return TupleBatch(signature._replace(spanned=spanned), tuple(rows))

    def _seconds(self, key: int) -> float:
        return 0.0 if key in self._cache else self._index.probed(self._world.clock.now(), key)

    def _find(self, key: int) -> int | None:
        self._cache.add(key)
        return self._rows.get(key)


class JoinsInTurn(Routes):
    """Tuples visit every join, as soon as they span the relation that it needs."""

    joins = True

    def __init__(self, joins: Sequence[tuple[int, int]]) -> None:
        """Give for each join the relation that it needs and the one that it adds."""
        super().__init__(len(joins))
        self._joins = tuple(joins)

    def candidates(self, signature: Signature) -> tuple[int, ...]:
        """Return the joins that may come next; empty where the tuple is finished."""
        return tuple(
            number
            for number, (needs, _) in enumerate(self._joins)
            if signature.spanned >> needs & 1 and not signature.done >> number & 1
        )

    def after(self, signature: Signature, module: int) -> Signature:
        """Return the signature that tuples get where they meet a row."""
        spanned = signature.spanned | 1 << self._joins[module][1]
        return signature.after(module)._replace(spanned=spanned)


class EitherJoin(Routes):
    """Tuples visit one of several joins with the same relation, and are finished."""

    joins = True

    def candidates(self, signature: Signature) -> tuple[int, ...]:
        """Return all joins for a tuple that has been to none."""
        return () if signature.done else self.numbers

    def after(self, signature: Signature, module: int) -> Signature:
        """Return the signature that tuples get where they meet a row."""
        return signature.after(module)._replace(spanned=signature.spanned | 0b10)
