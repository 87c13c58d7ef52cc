"""Who looks at a Spark context: what is open for them, and which sessions tell."""

from __future__ import annotations

import threading
import time
import weakref
from typing import Final

from pyspark import SparkContext
from pyspark.sql import SparkSession

from eddyline.catalyst import GONE, identity_of
from eddyline.host.per_context import PerContext
from eddyline.host.session import local_cores
from eddyline.monitor.follower import Follower
from eddyline.monitor.news_receiver import NewsReceiver
from eddyline.monitor.query_book import QueryBook
from eddyline.planner.block_registry import registry_of
from eddyline.planner.block_reports import block_report
from eddyline.planner.declare.lookup_tables import DRIVER_HOST
from eddyline.reports.block_report import BlockReport
from eddyline.reports.records import TaskRecord
from eddyline.tasks.live_news import LOOKING, setting_of

PORT: Final = "spark.eddyline.live.port"
"""Setting: the port at the driver where tasks tell; any free one by default."""


class Looking:
    """The account of the actions of one Spark context, kept while anybody looks and after."""

    def __init__(self, context: SparkContext) -> None:
        """Keep an account, of nothing yet."""
        self._context = weakref.ref(context)
        self._registry = registry_of(context)
        self.book: Final = QueryBook(self._report, time.time)
        self._lookers: dict[str, int] = {}  # by session
        self._receiver: NewsReceiver | None = None
        self._follower: Follower | None = None
        self._changing = threading.Lock()

    def begin(self, spark: SparkSession) -> None:
        """Have the actions of a session told of, from the next one on; OSError for no port."""
        with self._changing:
            if self._receiver is None:
                self._open(spark)
            if self._receiver is None:
                raise AssertionError("it has just been opened")
            session = identity_of(spark)
            self._lookers[session] = self._lookers.get(session, 0) + 1
            spark.conf.set(LOOKING, setting_of(self._receiver.address))

    def end(self, spark: SparkSession) -> None:
        """Look at a session no more, unless somebody else does."""
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
        """Look no more: the context has stopped."""
        with self._changing:
            self._lookers.clear()
            self._close()
        self.book.end_all()

    def _open(self, spark: SparkSession) -> None:
        context = spark.sparkContext
        settings = context.getConf()
        if local_cores(str(context.master)) is not None:
            host = shown = "127.0.0.1"
        else:
            host = "0.0.0.0"  # noqa: S104 - executors are elsewhere, and bring a token
            shown = str(settings.get(DRIVER_HOST, "127.0.0.1"))
        port = int(settings.get(PORT, "0") or 0)
        self._receiver = NewsReceiver(self.book.take, host, port, shown)
        self._follower = Follower(spark, self.book)

    def _close(self) -> None:
        for each in (self._receiver, self._follower):
            if each is not None:
                each.close()
        self._receiver = self._follower = None

    def _report(self, key: str, record: TaskRecord) -> BlockReport | None:
        made = self._registry.reporting(key)
        return None if made is None else block_report(*made, record)


_looking = PerContext(Looking, Looking.close)


def looking_of(context: SparkContext) -> Looking:
    """Return who looks at a Spark context."""
    return _looking.of(context)
