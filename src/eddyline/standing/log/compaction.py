"""Compaction of the log of queries: snapshots are taken, and what nobody can need is removed.

Versions that may be asked for are the last one, and those that the remembered micro-batches have
run (:mod:`eddyline.standing.log.batch_log`): a batch that is run again, be it after a
crash, wants its own. Workers ask for the version of the batch that they work for, and no other.
All these stay within reach, each from the newest snapshot that is not after it; other files go.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

from eddyline.standing.log.change_log import ChangeLog
from eddyline.standing.log.files import DamagedFileError
from eddyline.standing.log.live_queries import LiveQueries
from eddyline.standing.log.snapshots import needed_files

EVERY: Final = 1_000
"""Versions between two snapshots, at least. To read so many changes takes a new worker 0.14 s, as
long as Spark takes to plan a batch; see ``docs/decisions/0032-compaction-of-the-log.md``."""

QUERIES_A_VERSION: Final = 10
"""With more queries than so many times EVERY snapshots are rarer, so that writing them takes no
more than a fixed time for each change, however many queries there are."""


class Compaction:
    """Takes snapshots of a log in a thread of its own, and removes files of it."""

    def __init__(
        self,
        log: ChangeLog,
        named: Callable[[], AbstractContextManager[tuple[set[int], int]]],
        every: int = EVERY,
    ) -> None:
        """Take the log, whose writer this process is.

        ``named`` gives the versions that batches have run and the last one, and lets no batch
        begin while it is open; DamagedFileError where it cannot.
        """
        self._log = log
        self._named = named
        self._every = every
        self._newest = max(log.snapshots(), default=0)
        self._thread: threading.Thread | None = None

    def consider(self, live: LiveQueries) -> None:
        """Begin to compact if it is time to: ``live`` are the queries now, and are copied."""
        queries = len(live.running) + len(live.paused)
        if live.version - self._newest < max(self._every, queries // QUERIES_A_VERSION):
            return
        if self._thread is not None and self._thread.is_alive():
            return
        self._newest = live.version
        self._thread = threading.Thread(
            target=self._compact, args=(live.copy(),), name="eddyline-compaction", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Wait for what is being done."""
        if self._thread is not None:
            self._thread.join()

    def _compact(self, live: LiveQueries) -> None:
        """Write a snapshot, and remove files; where that fails all stays as it was."""
        try:
            self._log.write_snapshot(live.snapshot())
            self._check_last_but_one()
            self._remove()
        except (OSError, DamagedFileError) as error:
            warnings.warn(
                f"The log of standing queries could not be compacted, which is tried again later; "
                f"nothing is lost: {error}",
                stacklevel=2,
            )

    def _check_last_but_one(self) -> None:
        """Set the snapshot before the newest aside if it is damaged: what it replaces stays."""
        for version in self._log.snapshots()[-2:-1]:
            try:
                self._log.read_snapshot(version)
            except DamagedFileError as error:
                aside = self._log.set_snapshot_aside(version)
                warnings.warn(f"{error}. It is now {aside.name}, and is not used.", stacklevel=2)

    def _remove(self) -> None:
        with self._named() as (versions, last):
            snapshots = self._log.snapshots()
            kept, changes = needed_files(versions, snapshots, last)
            # Changes first: a reader that finds one missing finds the snapshot to leap to.
            for version in self._log.changes():
                if version not in changes and version <= last:
                    self._log.remove(version)
            for version in snapshots:
                if version not in kept:
                    self._log.remove_snapshot(version)
