"""Python for standing queries: PySpark from where it is installed, and a daemon of their own.

For the first micro-batch of a job with state Spark starts a Python that only asks which state there
is, with an archive of PySpark first on its path. What is imported from there is compiled each time:
a start takes 0.9 s of CPU, and 0.2 s without the archive. Workers come from a daemon that leaves
the archive out by itself.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

_SCRIPT: Final = """\
#!/bin/sh
case "$2" in
    pyspark.sql.streaming.*) export PYTHONPATH={path} ;;
    tests.warm_daemon) shift 2; set -- -m tests.standing.warm_daemon "$@" ;;
esac
exec {python} "$@"
"""


@contextmanager
def quick_python(spark: SparkSession, folder: Path) -> Iterator[None]:
    """Have what is planned within the block use it; ``folder`` is the same for all of a session.

    Spark has workers of their own for each Python, by its path.
    """
    script = folder / "python"
    if not script.exists():
        root = Path(__file__).parents[1]
        path = os.pathsep.join(map(str, (root / "src", root)))
        python = shlex.quote(sys.executable)
        script.write_text(_SCRIPT.format(path=shlex.quote(path), python=python), encoding="utf-8")
        script.chmod(0o700)
    context = spark.sparkContext
    before, context.pythonExec = context.pythonExec, str(script)
    yield
    context.pythonExec = before
