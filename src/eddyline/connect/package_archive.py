"""Eddyline as an archive, for workers that have none: what tasks need of it, and nothing else.

It is compiled, for the Python of the client, which Spark wants to be that of the workers: each that
starts imports it in 0.16 s of CPU then, and in 0.49 s where it has to compile it.
"""

from __future__ import annotations

import functools
import hashlib
import io
import marshal
import zipfile
from importlib.machinery import SourceFileLoader
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path
from types import CodeType
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
                source = path.read_bytes()
                _add(packed, inside, source)
                _add(packed, inside.with_suffix(".pyc"), _compiled(path, inside, source))
    made = content.getvalue()
    digest = hashlib.sha256(made).hexdigest()[:12]
    return f"eddyline-{eddyline.__version__}-{digest}.zip", made


def _add(packed: zipfile.ZipFile, inside: Path, content: bytes) -> None:
    entry = zipfile.ZipInfo(f"eddyline/{inside.as_posix()}", _MOMENT)
    entry.compress_type = zipfile.ZIP_DEFLATED
    packed.writestr(entry, content)


def _compiled(path: Path, inside: Path, source: bytes) -> bytes:
    """Return a file compiled, as Python keeps it; times, which differ by zones, are not compared.

    It is compiled on the client only where that has not been done, which takes a second for all.
    """
    name = ".".join(("eddyline", *inside.with_suffix("").parts))
    code = SourceFileLoader(name, str(path)).get_code(name)
    if code is None:
        raise AssertionError("a file of the package has code")
    unchecked = (1).to_bytes(4, "little")
    header = MAGIC_NUMBER + unchecked + source_hash(source)
    return header + marshal.dumps(_at(code, f"eddyline/{inside.as_posix()}"))


def _at(code: CodeType, place: str) -> CodeType:
    """Return code that says it is of another file: not where it is on the client's machine."""
    inside = tuple(_at(one, place) if isinstance(one, CodeType) else one for one in code.co_consts)
    return code.replace(co_filename=place, co_consts=inside)


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
