"""Which version of the queries each micro-batch has run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from eddyline.spark.query_log.files import read_whole, write_new

KEPT: Final = 1_000
"""Batches of which it is remembered: more than Spark keeps (spark.sql.streaming.minBatchesToRetain
is 100), so that whatever it runs again has the same queries."""


class BatchLog:
    """The versions that micro-batches ran, a file each."""

    def __init__(self, directory: Path) -> None:
        """Look at a directory; it is made if it is not there."""
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def version(self, batch: int, current: int) -> int:
        """Return the version that a batch runs: the current one, unless it ran another before."""
        known = self.known(batch)
        if known is not None:
            return known
        write_new(self._path(batch), json.dumps({"version": current}).encode())
        if batch >= KEPT:
            self._path(batch - KEPT).unlink(missing_ok=True)
        return current

    def known(self, batch: int) -> int | None:
        """Return the version that a batch ran; None where it has not run."""
        try:
            return int(json.loads(read_whole(self._path(batch)))["version"])
        except FileNotFoundError:
            return None

    def newest(self) -> int:
        """Return the newest version that any batch ran."""
        versions = [self.known(int(path.name)) for path in self._directory.glob("[0-9]*")]
        return max((version for version in versions if version is not None), default=0)

    def _path(self, batch: int) -> Path:
        return self._directory / f"{batch:010}"
