"""What was learned, in a file: from one application to the next."""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from weakref import WeakSet

from eddyline.learning.learned_store import LearnedStore

_log = logging.getLogger("eddyline")

FORMAT: Final = 1
"""Goes up when what stands in a file changes its meaning; files of other formats are not read."""

OFTEN: Final = 30.0
"""Seconds between two writes while queries run; 2,000 predicates and functions take some 20 ms."""


_written_at_the_end: Final[WeakSet[LearnedStore]] = WeakSet()


def keep_learned(store: LearnedStore, path: Path) -> None:
    """Let a store begin with what a file says, and be written there from now on."""
    store.save()  # where it was kept before
    file = LearnedFile(path, store.as_data)
    file.read(store.take_up)
    store.keeper = file
    if not _written_at_the_end:
        atexit.register(_write_all)
    _written_at_the_end.add(store)


def _write_all() -> None:
    for store in list(_written_at_the_end):
        store.save()


class LearnedFile:
    """A file that what is learned is written to, now and then and at the end.

    It never stands half-written: it is written beside, and put in its place. Of several
    applications that use one file, the last one to write wins.
    """

    def __init__(
        self,
        path: Path,
        data: Callable[[], Mapping[str, Any]],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Write what ``data`` returns; ``now`` tells the time in seconds."""
        self.path: Final = path
        self._data = data
        self._now = now
        self._written = now()
        self._is_new = False  # whether something was learned since
        self._warned = False
        self._writing = threading.Lock()

    def read(self, take_up: Callable[[Mapping[str, Any]], None]) -> None:
        """Hand over what stands in the file.

        Nothing where there is none yet. A file that cannot be read, or ``take_up`` cannot use, is
        left aside with a warning, and overwritten once something was learned.
        """
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
            if not isinstance(data, Mapping) or data.get("format") != FORMAT:
                raise ValueError(f"it is no file of format {FORMAT}")  # noqa: TRY301 - as of any other content
            take_up(data)
        except FileNotFoundError:
            _log.info("Nothing was learned before: there is no %s", self.path)
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            self._warn("What was learned before is not known: %s: %s", error)

    def changed(self) -> None:
        """Take note that something was learned; write it, if the last time is long ago."""
        self._is_new = True
        if self._now() - self._written >= OFTEN:
            self.save()

    def save(self) -> None:
        """Write what is known, if it is new; where that fails, say so once."""
        with self._writing:
            if not self._is_new:
                return
            self._is_new = False
            self._written = self._now()
            beside = self.path.with_name(f"{self.path.name}.{os.getpid()}.new")
            try:
                text = json.dumps({"format": FORMAT, **self._data()}, indent=1)
                beside.write_text(text, encoding="utf-8")
                beside.replace(self.path)
            except OSError as error:
                with contextlib.suppress(OSError):
                    beside.unlink()
                self._warn("What was learned cannot be kept: %s: %s", error)

    def _warn(self, message: str, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            _log.warning(message, self.path, error)
