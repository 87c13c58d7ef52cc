"""Which events the micro-batches of a job had, as its checkpoint says.

A batch mostly has one file of each stream, as ``maxFilesPerTrigger`` wants it. But where a job ends
after Spark has noted a file as seen, and before it has noted the batch, the next batch has that
file and one more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

FilesByStream: TypeAlias = Mapping[str, range]
"""The files of each stream that a batch had, by number."""


def events_taken(checkpoint: Path) -> list[FilesByStream]:
    """Return what each batch had that has been planned, in the order of batches."""
    streams = _streams(checkpoint)
    taken: list[FilesByStream] = []
    following = dict.fromkeys(streams, 0)
    numbers = (int(path.name) for path in (checkpoint / "offsets").glob("[0-9]*"))
    for batch in sorted(numbers):
        if batch != len(taken):
            raise ValueError(f"of batch {len(taken)} nothing is known any more")
        ends = _ends(checkpoint / "offsets" / f"{batch}")
        files = {}
        for name, end in zip(streams, ends, strict=True):
            files[name] = range(following[name], end + 1)
            following[name] = end + 1
        taken.append(files)
    return taken


def is_at_its_end(checkpoint: Path, files: int, further: int = 0) -> bool:
    """Tell whether a job has done so many files of each stream, and ``further`` batches."""
    done = max((int(path.name) for path in (checkpoint / "commits").glob("[0-9]*")), default=-1)
    last = done - further
    return last >= 0 and all(end == files - 1 for end in _ends(checkpoint / "offsets" / f"{last}"))


def _streams(checkpoint: Path) -> list[str]:
    """Return the names of a job's streams: the directories that its sources read."""
    names = []
    sources = sorted((checkpoint / "sources").iterdir(), key=lambda path: int(path.name))
    for source in sources:
        noted = next(source.glob("[0-9]*")).read_text()
        path = re.search(r'"path":"([^"]*)"', noted)
        if path is None:
            raise ValueError(f"{source} names no file")
        names.append(Path(path.group(1)).parent.name)
    return names


def _ends(offsets: Path) -> list[int]:
    """Return the last file of each source that a batch had, -1 for none."""
    lines = offsets.read_text().splitlines()[2:]
    return [int(json.loads(line)["logOffset"]) if line != "-" else -1 for line in lines]
