"""Eddyline as an archive, for workers that have none: what tasks need of it, and nothing else."""

from __future__ import annotations

import functools
import hashlib
import io
import zipfile
from pathlib import Path
from typing import Final
from weakref import WeakSet

from pyspark.sql.connect.client import SparkConnectClient
from pyspark.sql.connect.client.artifact import InMemory, new_pyfile_artifact

import eddyline

LEFT_OUT: Final = frozenset(
    {
        "app",
        "at_work.py",
        "catalyst",
        "connect",
        "declaring",
        "explanation.py",
        "host",
        "learning",
        "monitor",
        "planner",
        "plugin",
        "simulation",
        "standing",
        "testing.py",
        "watching",
    }
)
"""Rooms, and files between them, that no task enters."""

_MOMENT: Final = (1980, 1, 1, 0, 0, 0)  # the same bytes each time

_sent: Final[WeakSet[SparkConnectClient]] = WeakSet()


@functools.cache
def archive() -> tuple[str, bytes]:
    """Return the name and the content of the archive."""
    package = Path(eddyline.__file__).parent
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(package.rglob("*.py")):
            inside = path.relative_to(package)
            if inside.parts[0] not in LEFT_OUT:
                entry = zipfile.ZipInfo(f"eddyline/{inside.as_posix()}", _MOMENT)
                entry.compress_type = zipfile.ZIP_DEFLATED
                packed.writestr(entry, path.read_bytes())
    made = content.getvalue()
    digest = hashlib.sha256(made).hexdigest()[:12]
    return f"eddyline-{eddyline.__version__}-{digest}.zip", made


def send_once(client: SparkConnectClient) -> None:
    """Send the archive to a session's workers, unless that was done.

    Not by ``addArtifacts``, which would put a file of it into this process's ``sys.path``, too.
    """
    if client in _sent:
        return
    name, content = archive()
    manager = client._artifact_manager
    artifact = new_pyfile_artifact(name, InMemory(content))
    manager._request_add_artifacts(manager._add_artifacts([artifact]))
    _sent.add(client)
