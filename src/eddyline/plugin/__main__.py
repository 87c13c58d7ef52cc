"""Answers the driver's JVM that has started this process, until that ends."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys


def main() -> int:
    """Make this a process that disturbs nobody, and serve."""
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what is printed is no row of a query
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the application
    of_spark = os.environ.pop("EDDYLINE_SPARKS_PYTHON", "")
    if importlib.util.find_spec("pyspark") is None:
        sys.path += of_spark.split(os.pathsep)
    from eddyline.plugin.serving import serve  # noqa: PLC0415 - it needs PySpark

    return serve()


if __name__ == "__main__":
    raise SystemExit(main())
