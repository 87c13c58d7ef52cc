"""Java for the Sparks that tests start in processes of their own: ready in a third of the time.

Such a JVM answers a query or two. Spent on code that is compiled well, and on loading Spark's
classes, a start takes 12 s of CPU; 6 with code that is compiled quickly, 3 with classes from an
archive. The archive is made beside the first tests, and kept in ``.pytest_cache``.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import pyspark

VARIABLE: Final = "SPARK_SUBMIT_OPTS"
"""What Spark's launcher takes options for the JVM from."""

QUICK: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class QuickJava:
    """Options for all JVMs of a run, in a file: those that start later have the archive as well."""

    def __init__(self, folder: Path) -> None:
        java = Path(os.environ.get("JAVA_HOME") or shutil.which("java") or "bundled").resolve()
        name = hashlib.sha256(f"{java} {pyspark.__version__} {pyspark.__file__}".encode())
        self._file = folder / f"{name.hexdigest()[:16]}.options"
        self._archive = self._file.with_suffix(".jsa")
        self._maker: subprocess.Popen[bytes] | None = None

    def use(self) -> None:
        """Have the JVMs of this process and of those below it start with the options."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        if not self._archive.exists():
            _write(self._file, QUICK)
        os.environ.setdefault(VARIABLE, f"-XX:VMOptionsFile={shlex.quote(str(self._file))}")

    def make_archive(self) -> None:
        """Begin to make the archive, unless there is one."""
        if not self._archive.exists():
            command = [sys.executable, __file__, str(self._file), str(self._archive)]
            self._maker = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )

    def end(self) -> None:
        """Wait for an archive that is being made."""
        if self._maker is not None:
            self._maker.wait()


def _write(file: Path, options: tuple[str, ...]) -> None:
    descriptor, draft = tempfile.mkstemp(dir=file.parent)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.writelines(f"{option}\n" for option in options)
    Path(draft).replace(file)


def main(file: Path, archive: Path) -> None:
    """Run what most tests run; keep the classes that this took, and have others start with them."""
    draft = archive.with_suffix(f".{os.getpid()}")
    os.environ[VARIABLE] = shlex.join([*QUICK, f"-XX:ArchiveClassesAtExit={draft}"])
    import eddyline  # noqa: PLC0415 - the variable is for the JVM that it starts

    spark = eddyline.session(master="local[1]")
    jvm = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
    with tempfile.TemporaryDirectory() as folder:
        numbers = str(Path(folder, "numbers"))
        spark.range(9).selectExpr("id", "id % 3 AS k", "'a' AS text").write.parquet(numbers)
        table = spark.read.parquet(numbers)
        spark.udf.register("even", lambda number: number % 2 == 0, "boolean")
        table.createOrReplaceTempView("numbers")
        asked = "SELECT a.k, count(*) FROM numbers a JOIN numbers b ON a.k = b.k GROUP BY a.k"
        spark.sql(asked).collect()
        eddyline.adapt(table.where("even(id)"), joins="never").collect()
    spark.stop()
    jvm.stdin.close()
    if jvm.wait() == 0 and draft.exists():
        draft.rename(archive)
        # Without a word where Java has become another one.
        _write(file, (*QUICK, f'-XX:SharedArchiveFile="{archive}"', "-Xlog:cds*=off"))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
