"""What each micro-batch has run: a version of the queries, and on how much of its rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, NamedTuple

from eddyline.standing.log.files import read_whole, write_new

KEPT: Final = 1_000
"""Batches that are remembered: more than Spark keeps (spark.sql.streaming.minBatchesToRetain
is 100), so that whatever it runs again has the same queries."""


class BatchRun(NamedTuple):
    """What a micro-batch runs: a version of the queries, on so large a part of its rows."""

    version: int
    kept: float = 1.0


class BatchLog:
    """What micro-batches ran, a file each."""

    def __init__(self, directory: Path) -> None:
        """Look at a directory; it is made if it is not there."""
        self._directory = directory
        self._versions: dict[int, int] = {}  # by batch, of files that were read or written
        directory.mkdir(parents=True, exist_ok=True)

    def run(self, batch: int, wanted: BatchRun) -> BatchRun:
        """Return what a batch runs: what is wanted, unless it ran something before."""
        known = self.known(batch)
        if known is not None:
            return known
        write_new(self._path(batch), json.dumps(wanted._asdict()).encode())
        self._versions[batch] = wanted.version
        if batch >= KEPT:
            self._path(batch - KEPT).unlink(missing_ok=True)
        return wanted

    def known(self, batch: int) -> BatchRun | None:
        """Return what a batch ran; None where it has not run."""
        try:
            return BatchRun(**json.loads(read_whole(self._path(batch))))
        except FileNotFoundError:
            return None

    def newest(self) -> int:
        """Return the newest version that any batch ran; DamagedFileError."""
        return max(self.versions(), default=0)

    def versions(self) -> set[int]:
        """Return the versions that the remembered batches ran; DamagedFileError."""
        versions: dict[int, int] = {}
        for batch in [int(path.name) for path in self._directory.glob("[0-9]*")]:
            version = self._versions.get(batch)
            if version is None:
                run = self.known(batch)
                if run is None:
                    continue  # it has been forgotten since
                version = run.version
            versions[batch] = version
        self._versions = versions
        return set(versions.values())

    def _path(self, batch: int) -> Path:
        return self._directory / f"{batch:010}"
