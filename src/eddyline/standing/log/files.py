"""Files that are there as a whole or not at all."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

_MAGIC: Final = b"eddyline 1 "


class DamagedFileError(Exception):
    """A file was cut off, or changed by others."""


def write_new(path: Path, content: bytes) -> None:
    """Write a file that is not there yet; FileExistsError where it is.

    It is on disk when this returns, and nobody ever sees a part of it.
    """
    digest = hashlib.sha256(content).hexdigest().encode()
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(_MAGIC + digest + b"\n" + content)
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)  # unlike a rename, this fails where the file is there
    finally:
        temporary.unlink(missing_ok=True)
    _sync_directory(path.parent)


def read_whole(path: Path) -> bytes:
    """Return what was written; FileNotFoundError, or DamagedFileError where it is not that."""
    line, _, content = path.read_bytes().partition(b"\n")
    if not line.startswith(_MAGIC):
        raise DamagedFileError(f"{path} is no file of this version of Eddyline, or was cut off")
    if hashlib.sha256(content).hexdigest().encode() != line.removeprefix(_MAGIC):
        raise DamagedFileError(f"{path} is damaged: it was cut off or changed")
    return content


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
