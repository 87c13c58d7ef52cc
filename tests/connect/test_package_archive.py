"""The package as a client sends it; a worker imports it in ``test_connect.py``."""

from __future__ import annotations

import io
import marshal
import zipfile
from importlib.util import source_hash
from pathlib import Path
from zipimport import zipimporter

import pytest

import eddyline
from eddyline.quirks.pyspark_at_hand import MINOR
from tests.connect.connect_server import lacking

if lacking() or MINOR < (4, 1):
    pytest.skip(f"Spark Connect's client lacks {lacking()}", allow_module_level=True)

from eddyline.connect.package_archive import archive


def test_workers_need_not_compile_it() -> None:
    packed = zipfile.ZipFile(io.BytesIO(archive()[1]))
    names = set(packed.namelist())
    sources = {name for name in names if name.endswith(".py")}
    assert names - sources == {f"{name}c" for name in sources}
    here = str(Path(eddyline.__file__).parent).encode()
    for name in sources:
        compiled = packed.read(f"{name}c")
        assert compiled[8:16] == source_hash(packed.read(name))
        assert here not in compiled  # no place on the client's machine goes along
        assert marshal.loads(compiled[16:]).co_filename == name  # noqa: S302 - it is ours


def test_what_is_compiled_is_imported(tmp_path: Path) -> None:
    """Whatever time it is where the worker is; only what is compiled for another Python is not."""
    packed = zipfile.ZipFile(io.BytesIO(archive()[1]))
    code = packed.read("eddyline/digest.pyc")
    for header, known in ((code[:4], True), (b"????", False)):
        path = tmp_path / f"{known}.zip"
        with zipfile.ZipFile(path, "w") as made:
            made.writestr("digest.py", "digest = None")
            made.writestr("digest.pyc", header + code[4:])
        code_there = zipimporter(str(path)).get_code("digest")
        assert ("hashlib" in code_there.co_names) == known
