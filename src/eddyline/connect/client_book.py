"""What is kept for one client: the blocks that it has sent, and what their tasks have reported."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final
from weakref import WeakKeyDictionary

from pyspark.sql.connect.client import SparkConnectClient

from eddyline.blocks.column_types import spark_type
from eddyline.blocks.filter_block import FilterBlock
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.connect.messages import python_functions
from eddyline.digest import digest
from eddyline.expressions import call_of
from eddyline.latest import Latest
from eddyline.learning.learned_store import LearnedStore
from eddyline.quirks import arrow_columns
from eddyline.reports.records import TaskRecord
from eddyline.tasks.filter_task import FusedFilter, OneValue, result_type
from eddyline.tasks.our_functions import pickled
from eddyline.tasks.remembered_call import RememberedCall
from eddyline.tasks.sent_records import METRICS, RecordsToClient, records_in
from eddyline.tasks.task_records import Records, RecordsParam, record_key, recorded

BLOCKS: Final = 256
"""The latest blocks of a client that can be explained and reported."""

BYTES: Final = 1 << 25
"""Bytes of the functions of all these together."""


@dataclass(frozen=True, eq=False)
class SentBlock:
    """A block as it was sent: its function, pickled, and how it is routed."""

    block: FilterBlock
    options: RoutingOptions
    command: bytes

    @property
    def size(self) -> int:
        """The bytes of its function, and of those that this calls."""
        functions = self.block.functions
        return len(self.command) + sum(len(one) for each in functions for one in each.commands)


class ClientBook:
    """The blocks and the records of one client; they end with it.

    ``enabled`` are the options of what adapts all its queries; None where nothing does.
    """

    def __init__(self) -> None:
        """Know of nothing."""
        self.records: Final[Records] = {}
        self.learned: Final = LearnedStore()
        self._param = RecordsParam(lambda: self._learn)
        self._blocks = Latest[bytes, SentBlock](BLOCKS, lambda sent: sent.size, BYTES)
        self._by_key = Latest[str, FilterBlock](BLOCKS)
        self._runs = itertools.count(1)
        self._version: tuple[int, int] | None = None
        self.enabled: RoutingOptions | None = None

    def next_run(self) -> int:
        """Return a number that no other rewriting of this client has had."""
        return next(self._runs)

    def version(self, ask: Callable[[], tuple[int, int]]) -> tuple[int, int]:
        """Return the version of the server's Spark, which is asked for once."""
        if self._version is None:
            self._version = ask()
        return self._version

    def filtering(self, block: FilterBlock, options: RoutingOptions) -> bytes:
        """Return the function of a block of filters, pickled as Spark keeps functions.

        Its tasks are told what was learned so far.
        """
        block = replace(block, priors=self.learned.told(block))
        function = FusedFilter(block, options, RecordsToClient())
        return self._kept(
            block, options, pickled(arrow_columns.by_task(function), result_type(block))
        )

    def asking(self, block: FilterBlock, options: RoutingOptions) -> bytes:
        """Return the function of a block of one value that is asked for, likewise."""
        function = OneValue(FusedFilter(block, options, RecordsToClient()))
        returned = block.functions[call_of(block.outputs[0]).function].return_type
        made = pickled(arrow_columns.by_task(function), spark_type(returned))
        return self._kept(block, options, made)

    def remembering(self, block: FilterBlock, options: RoutingOptions) -> bytes:
        """Return the function of a block of one value, likewise."""
        function = RememberedCall(block, options, RecordsToClient())
        returned = spark_type(block.functions[0].return_type)
        return self._kept(block, options, pickled(arrow_columns.by_batch(function), returned))

    def _learn(self, records: Records) -> None:
        """Learn of what tasks have reported."""
        for key, record in records.items():
            block = self._by_key.get(key)
            if block is not None:
                self.learned.reported(block, record)

    def _kept(self, block: FilterBlock, options: RoutingOptions, command: bytes) -> bytes:
        self._blocks.put(digest(command), SentBlock(block, options, command))
        self._by_key.put(record_key(block.identity, options), block)
        return command

    def blocks_in(self, message: Any) -> Iterator[SentBlock]:  # noqa: ANN401 - messages have no common type here
        """Yield the distinct blocks in a message, those of relations from the top."""
        commands = (function.python_udf.command for function in python_functions(message))
        found = (self._blocks.get(digest(command)) for command in commands)
        yield from dict.fromkeys(sent for sent in found if sent is not None)

    def record(self, sent: SentBlock, *, every_action: bool) -> TaskRecord | None:
        """Return what the tasks of a block have reported; None where none has."""
        key = record_key(sent.block.identity, sent.options)
        return recorded(self.records, key, earlier=every_action)

    def hear_all(self, observed: Any) -> bool:  # noqa: ANN401 - one of several kinds of items
        """Take what metrics say; whether all of them are ours."""
        ours = True
        for metric in observed.metrics:
            told = records_in(metric.binary)
            for records in told or ():
                self._param.addInPlace(self.records, records)
            ours &= told is not None
        return ours


_books: Final[WeakKeyDictionary[SparkConnectClient, ClientBook]] = WeakKeyDictionary()
_beginning: Final = threading.Lock()


def book_of(client: SparkConnectClient) -> ClientBook:
    """Return the book of a client, which hears from now on what tasks report."""
    with _beginning:
        book = _books.get(client)
        if book is None:
            book = _books[client] = ClientBook()
            _listen(client, book)
    return book


def _listen(client: SparkConnectClient, book: ClientBook) -> None:
    """Have a book hear what comes along with the answers to any action of a client.

    Our metrics go no further: they would stand beside those that the user observes.
    """
    fetch = client._execute_and_fetch_as_iterator

    def listening(*arguments: Any, **named: Any) -> Iterator[Any]:  # noqa: ANN401 - as it is
        for item in fetch(*arguments, **named):
            if getattr(item, "name", "") != METRICS or not book.hear_all(item):
                yield item

    client._execute_and_fetch_as_iterator = listening  # type: ignore[method-assign]
