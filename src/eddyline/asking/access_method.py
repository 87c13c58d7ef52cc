"""An access method of a table: sources that are asked for the rows of its keys."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random

import numpy as np
import pyarrow as pa

from eddyline.asking.limits import Limits, OnError
from eddyline.asking.lookup_source import (
    Key,
    LookedUpTable,
    LookupConnection,
    LookupSource,
    NoAnswerError,
)
from eddyline.asking.price import FREE, Price
from eddyline.asking.shared_method import SharedMethod
from eddyline.asking.shared_statistics import SharedLookupStatistics
from eddyline.asking.source_rows import RowReader, described, failed
from eddyline.asking.way_to_answers import Found, WayToAnswers
from eddyline.engine.storage.key_set import KeySet
from eddyline.errors import LookupFailedError
from eddyline.keeping.kept_answers import GivenAnswer, KeptAnswers

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class AccessMethod:
    """An access method as it was registered: what is asked for which table, within which limits.

    ``mirrors`` give the same rows for the same keys, each within limits of its own. A request has
    a ``price``.
    """

    table: LookedUpTable
    source: LookupSource
    limits: Limits
    mirrors: tuple[AccessMethod, ...] = ()
    kept: KeptAnswers | None = None
    price: Price = FREE

    @property
    def width(self) -> int:
        """Calls that may be on their way at a time, to all sources together."""
        return self.limits.max_in_flight + sum(mirror.width for mirror in self.mirrors)

    @property
    def keys_per_call(self) -> int:
        """Keys that a call takes, to the source that takes most."""
        return max(self.source.keys_per_call, *(mirror.keys_per_call for mirror in self.mirrors), 1)

    def shared(self, job: str, random: Random, now: Callable[[], float]) -> SharedTable:  # noqa: ARG002 - lookups keep no books
        """Return what asks for one job."""
        singly = self.keys_per_call == 1
        sources = [
            AskedSource(method, random, now, singly=singly) for method in (self, *self.mirrors)
        ]
        if self.kept is None:
            return SharedTable(self.table, sources, now, price=self.price)
        kept = KeptRows(self.kept)
        for source in sources:
            source.keep = kept.keep
        return SharedTable(self.table, sources, now, kept.find, price=self.price)


@dataclass(frozen=True, slots=True)
class KeptRows:
    """The rows of a table's keys in a ledger."""

    answers: KeptAnswers

    def find(self, keys: Sequence[Key]) -> Sequence[Found | None]:
        """Return the rows of keys that are kept."""
        return [None if kept is None else Found(kept.rows) for kept in self.answers.find(keys)]

    async def keep(self, keys: Sequence[Key], found: Sequence[Found]) -> None:
        """Keep rows; not those that have another key than was asked for."""
        await self.answers.keep(
            [
                GivenAnswer(key, answer.rows)
                for key, answer in zip(keys, found, strict=True)
                if not answer.respelled
            ]
        )


class AskedSource(WayToAnswers[Key]):
    """A source of a table; it is opened with the first key that it gets."""

    def __init__(
        self, method: AccessMethod, random: Random, now: Callable[[], float], *, singly: bool
    ) -> None:
        """``singly`` tells that no source of the table takes several keys a call."""
        source = method.source
        super().__init__(source.label, source.keys_per_call, method.limits, random, now)
        self._table = method.table
        self._source = source
        self._singly = singly
        self._reader = RowReader(method.table)
        self._connection: LookupConnection | None = None

    async def close(self) -> None:
        """Close the connection, until it is asked again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._forgive()
            await connection.close()

    def failed(self, keys: Sequence[Key], why: str) -> LookupFailedError:
        """Return the error that names the source and the keys."""
        return failed(self._table, self.label, keys, why)

    def settled(self, keys: Sequence[Key], error: Exception) -> Sequence[Found] | Exception:
        """Return what ``on_error`` says: the error, a row of NULLs for each key, or none."""
        if self._limits.on_error is OnError.FAIL:
            return error
        _log.warning("%s", error)
        if self._limits.on_error is OnError.SKIP:
            return [Found(self._reader.batch((), keys))] * len(keys)
        names = self._table.bind_names
        return [
            Found(self._reader.batch([dict(zip(names, key, strict=True))], [key])) for key in keys
        ]

    async def _fetch(self, keys: Sequence[Key]) -> Sequence[Found]:
        if self._connection is None:
            self._connection = self._source.connect(self._table, self.gate)
        rows = await self._connection.fetch(keys)
        answered = answered_keys(self._table, rows, keys, singly=self._singly)
        if answered.unmatched.num_rows:
            self._note_unmatched(answered, keys)
        if answered.nothing_matches and not self._singly:
            why = why_unmatched(self._table, answered.unmatched, none=True, singly=self._singly)
            raise NoAnswerError(why, of_keys=False)
        return [Found(rows_of_key, respelled=answered.respelled) for rows_of_key in answered.rows]

    def _note_unmatched(self, answered: AnsweredKeys, keys: Sequence[Key]) -> None:
        """Count the rows of an answer that belong to none of its keys, and warn of the first."""
        if not self.unmatched and (self._singly or not answered.nothing_matches):
            why = why_unmatched(self._table, answered.unmatched, none=False, singly=self._singly)
            _log.warning("%s", self.failed(keys, why))
        self.unmatched += answered.unmatched.num_rows


class SharedTable(SharedMethod[Key]):
    """The rows of a table's keys, for everybody who asks."""

    def __init__(
        self,
        table: LookedUpTable,
        sources: Sequence[AskedSource],
        now: Callable[[], float],
        kept: Callable[[Sequence[Key]], Sequence[Found | None]] | None = None,
        *,
        price: Price,
    ) -> None:
        super().__init__(sources, now, identity=_canonical, kept=kept)
        self._table = table
        self._price = price
        self._refused: set[Key] = set()  # whose rows are spelled otherwise

    def statistics(self) -> SharedLookupStatistics:
        """Return what was asked so far, and what that has cost."""
        asked = super().statistics()
        return replace(asked, spent=asked.requests * self._price.of(()), unit=self._price.unit)

    def rows(self, keys: Sequence[Key], *, exact: bool = False) -> list[asyncio.Future[Found]]:
        """Return for each key its rows to come, or the failure; from the event loop only.

        Where they are to be ``exact``, without rows that have the key in another spelling: where
        another way leads to the same rows, a lookup by that one would not find them under this key,
        and no way finds them, so that all give the same answer.
        """
        answers = super().rows(keys)
        if not exact:
            return answers
        return [
            self._exactly(_canonical(key), answer)
            for key, answer in zip(keys, answers, strict=True)
        ]

    def _exactly(self, key: Key, answer: asyncio.Future[Found]) -> asyncio.Future[Found]:
        exact: asyncio.Future[Found] = asyncio.get_running_loop().create_future()

        def settle(done: asyncio.Future[Found]) -> None:
            if exact.cancelled():
                return
            if done.cancelled():
                exact.cancel()
            elif (error := done.exception()) is not None:
                exact.set_exception(error)
                exact.exception()  # nobody may ask for it any more
            else:
                exact.set_result(self._refuse(key, done.result()))

        if answer.done():
            settle(answer)
        else:
            answer.add_done_callback(settle)
        return exact

    def _refuse(self, key: Key, found: Found) -> Found:
        if not found.respelled:
            return found
        if key not in self._refused:
            if not self.statistics().unmatched:
                why = why_unmatched(self._table, found.rows, none=False, singly=True)
                _log.warning("%s", failed(self._table, self._table.name, [key], why))
            self._refused.add(key)
            self._ways[0].unmatched += found.rows.num_rows
        return Found(found.rows.slice(0, 0), found.seconds)


def _canonical(key: Key) -> Key:
    """Return a key with the one NaN in place of any, so that it is found again."""
    return tuple(
        math.nan if isinstance(value, float) and math.isnan(value) else value for value in key
    )


@dataclass(frozen=True, slots=True)
class AnsweredKeys:
    """The rows of an answer by key.

    ``rows`` are those of each key, ``unmatched`` are the rows of none. For a single key all rows
    may have another spelling; they are ``respelled`` then.
    """

    rows: tuple[pa.RecordBatch, ...]
    unmatched: pa.RecordBatch
    respelled: bool = False
    foreign: bool = False

    @property
    def nothing_matches(self) -> bool:
        """Whether there are rows, and none is of any key."""
        return (
            self.unmatched.num_rows > 0
            and not self.foreign
            and not any(batch.num_rows for batch in self.rows)
        )


def answered_keys(
    table: LookedUpTable, batch: pa.RecordBatch, keys: Sequence[Key], *, singly: bool
) -> AnsweredKeys:
    """Sort the rows that a source has given for distinct keys, by their bind columns.

    A source may spell a key in another way than it was asked for: as ``A`` for ``a``, with blanks
    at its end, by the number that a name stands for. Where keys are asked for ``singly``, the rows
    can only belong to the key, if they are all of one, without NULL, and none is as it was asked
    for. Where a call may take several keys, nobody knows, and the row is unmatched: even in a call
    for only one, since it must make no difference which keys go together. Takes time in proportion
    to rows and keys.

    >>> table = LookedUpTable("t", ("k", "v"), (pa.string(), pa.int64()), (0,))
    >>> rows = pa.RecordBatch.from_pylist([{"k": "A", "v": 1}], schema=table.schema)
    >>> answered_keys(table, rows, [("a",)], singly=True).respelled
    True
    >>> answered_keys(table, rows, [("a",), ("b",)], singly=False).nothing_matches
    True
    """
    if not batch.num_rows:
        return AnsweredKeys((batch,) * len(keys), batch)
    types = [table.types[column] for column in table.bind]
    wanted = KeySet(types)
    wanted.add([pa.array([k[n] for k in keys], kind) for n, kind in enumerate(types)])
    given = [batch.column(column) for column in table.bind]
    of_rows = wanted.find(given)
    order = np.argsort(of_rows, kind="stable")
    in_order = batch.take(pa.array(order))
    ends = np.searchsorted(of_rows[order], np.arange(-1, len(keys)), side="right").tolist()
    rows = tuple(in_order.slice(start, stop - start) for start, stop in pairwise(ends))
    whole = not any(column.null_count for column in given)  # NULL is equal to nothing
    if singly and whole and ends[-1] == ends[0] and len(KeySet(types).add(given)) == 1:
        return AnsweredKeys((batch,), batch.slice(0, 0), respelled=True)
    # More keys than were asked for, or none at all: a source that gives all that it has.
    foreign = not whole or len(KeySet(types).add(given)) > len(keys)
    return AnsweredKeys(rows, in_order.slice(0, ends[0]), foreign=foreign)


def why_unmatched(
    table: LookedUpTable, unmatched: pa.RecordBatch, *, none: bool, singly: bool
) -> str:
    """Say what came instead of what was asked for, and what to do; ``none`` matches any key."""
    columns = [unmatched.column(column).slice(0, 1).to_pylist() for column in table.bind]
    (came,) = zip(*columns, strict=True)
    rows = unmatched.num_rows
    what = (
        f"of the rows that came ({rows:,}) none has a key that was asked for"
        if none
        else f"rows came ({rows:,}) with keys that were not asked for, and are left out"
    )
    advice = (
        " Let the source give each key as it was asked for, or ask for one at a time "
        "(keys_per_call=1): then an answer can only belong to that key."
        if not singly
        else ""
    )
    return f"{what}; the first came with {described(table, [came])}.{advice}"
