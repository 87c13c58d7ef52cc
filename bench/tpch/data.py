"""The tables of TPC-H as Parquet files, made once for each scale factor and kept.

``tpchgen-cli`` makes the rows that the specification's own generator makes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

TABLES = (
    "customer",
    "lineitem",
    "nation",
    "orders",
    "part",
    "partsupp",
    "region",
    "supplier",
)

REPOSITORY = Path(__file__).resolve().parents[2]


class GenerationError(RuntimeError):
    """The tables could not be made."""


def default_cache() -> Path:
    """Return the folder in which tables are kept: below the user's cache directory."""
    said = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification has relative paths ignored.
    base = said if said.is_absolute() else Path.home() / ".cache"
    return base / "eddyline" / "tpch"


def tables(scale: float, cache: Path | None = None) -> Path:
    """Return a folder with one Parquet file a table at a scale factor; make it if need be.

    Scale factor 1 is about 1 GB of text, and some 300 MB here. The folder appears
    all at once when its files are complete, so an interrupted run leaves nothing
    that looks finished, and two runs at once do no harm. Raises ValueError for a
    scale that is not above 0 and for a cache inside the repository, and
    :class:`GenerationError` if the generator is missing or fails.
    """
    if not scale > 0:
        raise ValueError(f"A scale factor is above 0, not {scale:g}.")
    cache = (default_cache() if cache is None else cache).resolve()
    if cache.is_relative_to(REPOSITORY):
        raise ValueError(f"TPC-H's tables have no place in the repository, as {cache} is.")
    folder = cache / f"sf-{scale:g}"
    if folder.exists():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".making-", dir=cache) as unfinished:
        made = Path(unfinished) / folder.name
        _generate(scale, made)
        try:
            made.rename(folder)
        except OSError:
            if not folder.exists():  # else another run has just made the same files
                raise
    return folder


def create_views(spark: SparkSession, folder: Path) -> None:
    """Let Spark's SQL see the tables in ``folder`` under their names."""
    for name in TABLES:
        spark.read.parquet(str(folder / f"{name}.parquet")).createOrReplaceTempView(name)


def _generate(scale: float, folder: Path) -> None:
    command = shutil.which("tpchgen-cli", path=sysconfig.get_path("scripts"))
    if command is None:
        raise GenerationError("The package tpchgen-cli is missing: pip install tpchgen-cli")
    ran = subprocess.run(  # noqa: S603 - a program of this environment, a number and a path
        [command, "parquet", "--quiet", f"--scale-factor={scale:g}", f"--output-dir={folder}"],
        capture_output=True,
        text=True,
        check=False,
    )
    missing = [name for name in TABLES if not (folder / f"{name}.parquet").exists()]
    if ran.returncode or missing:
        raise GenerationError(f"tpchgen-cli failed ({ran.returncode}): {ran.stderr.strip()}")
