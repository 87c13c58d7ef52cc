"""What is compiled is kept where there is a place for it, and works where there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import eddyline

PROBE = """
import numpy as np
from eddyline.engine.storage import kernels

spans = np.array([[1, 2, 6], [3, 4, 24]], dtype=np.int64)
print(kernels.KEPT, kernels.apart(spans, 0, 1))
"""

NO_LOCATOR = {"NUMBA_CACHE_LOCATOR_CLASSES": "IPythonCacheLocator"}
"""Numba finds no folder for a module that is a file, as where all folders are read-only."""

NO_HOME = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null/cache"}
"""Packages from an archive would be kept below the home folder, and there is none."""


def printed(packages: Path, changes: dict[str, str]) -> str:
    paths = [path for path in sys.path if path not in {"", str(Path(eddyline.__file__).parents[1])}]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(packages), *paths])} | changes
    run = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, check=True, env=environment
    )
    return run.stdout.strip()


@pytest.fixture
def probe(tmp_path: Path) -> Path:
    """The package as an archive, as `--py-files` takes it."""
    source = Path(eddyline.__file__).parents[1]
    archive = shutil.make_archive(str(tmp_path / "eddyline"), "zip", source, "eddyline")
    return Path(archive)


def test_a_place_is_found_for_an_archive(probe: Path, tmp_path: Path) -> None:
    assert printed(probe, {"XDG_CACHE_HOME": str(tmp_path / "cache")}) == "True True"


def test_an_archive_without_a_home_is_compiled_each_time(probe: Path) -> None:
    assert printed(probe, NO_HOME) == "False True"


def test_where_numba_finds_no_folder_it_is_compiled_each_time() -> None:
    assert printed(Path(eddyline.__file__).parents[1], NO_LOCATOR) == "False True"
