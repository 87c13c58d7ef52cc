"""Tells observers what a task has done so far, while it runs.

Spark brings what tasks record to the driver when they end. Where somebody looks
(:mod:`eddyline.monitor`), the session has a setting that says where: Spark hands all settings to
every task of an action, as local properties. So a later observer needs no new plan, and where
nobody looks a task only asks for one property.

A worker process keeps one connection (:mod:`eddyline.asking.driver_channel`). Messages are lines
with a length and so many bytes: a pickled :class:`News`. Nobody answers. A message that cannot be
sent is dropped: then the driver learns of the task when it has ended.
"""

from __future__ import annotations

import contextlib
import math
import pickle
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from pyspark import TaskContext

from eddyline.asking.driver_channel import Address, Hello, Listener, connected
from eddyline.reports.merging import merge
from eddyline.reports.records import TaskRecord
from eddyline.tasks.action_settings import ACTION

LOOKING: Final = "spark.eddyline.live.token"
"""Setting: where the one who looks listens, as ``host:port:token:listener``. Spark's pages hide its
value, as they do with all that is called a token."""

EVERY: Final = 0.25
"""Seconds between two messages of a task, at the least."""

SHARE: Final = 200
"""A message is sent after so many times the time that the last one took, at the least: 0.5 %."""

LONGEST: Final = 1 << 24
"""Bytes of a message at the most; one of a large join has some 100,000."""

_DIGITS: Final = 1 << 5
"""Bytes of the line with its length."""

PATIENCE: Final = 1.0
"""Seconds to wait for the driver to take a message."""


class NewsTask(NamedTuple):
    """Which task it is: of which action (None: of none on a DataFrame) and stage."""

    action: int | None
    stage: int
    partition: int
    attempt: int  # a number that no other task of the application has


NOWHERE: Final = NewsTask(None, -1, -1, -1)
"""Stands for the place of what is no task, or of one that nobody asks."""


class News(NamedTuple):
    """What a task of a block has done so far, or in all where it has ``ended``."""

    block: str  # the key of its records
    place: NewsTask
    record: TaskRecord
    ended: bool


@dataclass(slots=True)
class _Line:
    """The connection of this process to the observer."""

    where: str
    socket: socket.socket | None


_line = _Line("", None)


class LiveNews:
    """What one task of one block tells while it runs."""

    def __init__(self, block: str, place: NewsTask, where: str) -> None:
        """Send to ``where`` somebody looks, in the words of the setting; to nobody for ``""``."""
        self.wanted: Final = bool(where)
        self._block = block
        self._place = place
        self._where = where
        self._due = time.monotonic() + EVERY if where else math.inf
        self._told: TaskRecord | None = None

    def glance(self, record: Callable[[], TaskRecord]) -> None:
        """Send what was done so far, if it is time; cheap enough to be asked after each visit."""
        started = time.monotonic()
        if started < self._due:
            return
        self._send(record(), ended=False)
        ended = time.monotonic()
        self._due = ended + max(EVERY, SHARE * (ended - started))

    def begin(self, record: Callable[[], TaskRecord]) -> None:
        """Send something at once: a task may wait long for its first answer."""
        self._due = 0.0
        self.glance(record)

    def add(self, record: TaskRecord) -> None:
        """Send what was done so far, with ``record`` as a further part, if it is time.

        For callers that are not told when the task ends: it has ended when nobody holds this any
        longer.
        """
        if not self.wanted:
            return
        told = self._told
        self._told = record if told is None else merge(told, record)
        if told is None:  # short tasks are heard of, too
            self._due = 0.0
        self.glance(lambda: self._told or record)

    def __del__(self) -> None:
        """Send what was added."""
        if self._told is not None:
            with contextlib.suppress(Exception):  # the process may end
                self._send(self._told, ended=True)

    def end(self, record: TaskRecord) -> None:
        """Send what was done in all."""
        if self.wanted:
            self._send(record, ended=True)

    def _send(self, record: TaskRecord, *, ended: bool) -> None:
        message = pickle.dumps(News(self._block, self._place, record, ended), protocol=5)
        line = _line_to(self._where)
        if line.socket is None:
            return
        try:
            line.socket.sendall(b"%d\n" % len(message) + message)
        except OSError:
            with contextlib.suppress(OSError):
                line.socket.close()
            line.socket = None  # until somebody looks from elsewhere


def live_news(block: str) -> LiveNews:
    """Return what tells of this task; nothing is wanted where nobody looks, or outside of tasks."""
    task = TaskContext.get()
    where = None if task is None else task.getLocalProperty(LOOKING)
    if task is None or not where:
        return LiveNews(block, NOWHERE, "")
    action = task.getLocalProperty(ACTION)
    place = NewsTask(
        None if action is None else int(action),
        task.stageId(),
        task.partitionId(),
        task.taskAttemptId(),
    )
    return LiveNews(block, place, where)


def _line_to(where: str) -> _Line:
    """Return the connection to the observer; it is tried once for each."""
    if _line.where != where:
        if _line.socket is not None:
            with contextlib.suppress(OSError):
                _line.socket.close()
        _line.where, _line.socket = where, _connected(where)
    return _line


def _connected(where: str) -> socket.socket | None:
    with contextlib.suppress(OSError, ValueError):
        return connected(address_of(where), {}, PATIENCE)
    return None


def setting_of(address: Address) -> str:
    """Return the setting's value for an address."""
    return f"{address.host}:{address.port}:{address.token}:{address.listener}"


def address_of(where: str) -> Address:
    """Return the address that the setting says; ValueError where it says none.

    >>> address_of("[::1]:80:a:news/1")
    Address(host='::1', port=80, listener='news/1')
    """
    host, port, token, listener = where.rsplit(":", 3)
    return Address(host.strip("[]"), int(port), token, listener)


def hearing(take: Callable[[News], None]) -> Listener:
    """Return the observer's listener, which calls ``take`` in the threads of connections.

    Messages are pickles, as is all that Spark's workers send to the driver; so they are read only
    from those who know the token.
    """

    def hear(_: Hello, connection: socket.socket) -> None:
        with connection.makefile("rb") as stream:
            while (line := stream.readline(_DIGITS)) and 0 <= int(line) <= LONGEST:
                try:
                    news = pickle.loads(stream.read(int(line)))  # noqa: S301 - who knows the token is ours
                except (EOFError, pickle.UnpicklingError, AttributeError, ImportError):
                    return  # broken off, or of another version of this package
                take(news)

    return hear
