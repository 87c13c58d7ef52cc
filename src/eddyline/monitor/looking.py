"""Who looks at a Spark context: what is open for them, and which sessions tell."""

from __future__ import annotations

import threading
import time
import weakref
from typing import Final

from pyspark import SparkContext
from pyspark.sql import SparkSession

from eddyline.asking.driver_channel import Address, DriverChannel
from eddyline.catalyst import GONE, identity_of
from eddyline.explanation import block_report
from eddyline.host.context_channel import channel_of
from eddyline.host.per_context import PerContext
from eddyline.monitor.follower import Follower
from eddyline.monitor.query_book import QueryBook
from eddyline.planner.block_registry import registry_of
from eddyline.reports.block_report import BlockReport
from eddyline.reports.records import TaskRecord
from eddyline.tasks.live_news import LOOKING, hearing, setting_of


class Looking:
    """The account of the actions of one Spark context, kept while anybody looks and after."""

    def __init__(self, context: SparkContext) -> None:
        """Keep an account, of nothing yet."""
        self._context = weakref.ref(context)
        self._registry = registry_of(context)
        self.book: Final = QueryBook(self._report, time.time)
        self._lookers: dict[str, int] = {}  # by session
        self._channel: DriverChannel | None = None
        self._address: Address | None = None
        self._follower: Follower | None = None
        self._changing = threading.Lock()

    def begin(self, spark: SparkSession) -> None:
        """Have the actions of a session told of, from the next one on; OSError for no port."""
        with self._changing:
            address = self._address or self._open(spark)
            session = identity_of(spark)
            self._lookers[session] = self._lookers.get(session, 0) + 1
            spark.conf.set(LOOKING, setting_of(address))

    def end(self, spark: SparkSession) -> None:
        """Stop looking at a session, unless somebody else still does."""
        with self._changing:
            try:
                session = identity_of(spark)
                left = self._lookers.pop(session, 0) - 1
                if left > 0:
                    self._lookers[session] = left
                else:
                    spark.conf.unset(LOOKING)
            except GONE:  # nothing is left to be ended
                self._lookers.clear()
            if not self._lookers:
                self._close()

    def close(self) -> None:
        """Stop looking: the context has stopped."""
        with self._changing:
            self._lookers.clear()
            self._close()
        self.book.end_all()

    def _open(self, spark: SparkSession) -> Address:
        self._channel = channel_of(spark.sparkContext)
        self._address = self._channel.listen("news", hearing(self.book.take))
        self._follower = Follower(spark, self.book)
        return self._address

    def _close(self) -> None:
        if self._channel is not None and self._address is not None:
            self._channel.hang_up(self._address)
        if self._follower is not None:
            self._follower.close()
        self._channel = self._address = self._follower = None

    def _report(self, key: str, record: TaskRecord) -> BlockReport | None:
        made = self._registry.reporting(key)
        return None if made is None else block_report(*made, record)


_looking = PerContext(Looking, Looking.close)


def looking_of(context: SparkContext) -> Looking:
    """Return who looks at a Spark context."""
    return _looking.of(context)
