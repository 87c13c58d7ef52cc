"""Compiles the package's Java, as Spark's JVM does when a query first needs it.

So a mistake is said with its line and column by ``make lint``, and not by somebody's first query.
The plug-in's jar is built by Janino, too, as where there is no ``javac``.
"""

from __future__ import annotations

import os
from typing import Final

from pyspark import SparkContext

from eddyline.catalyst.pipeline import mistakes_in_java
from eddyline.host.java import java_for_launch
from eddyline.host.session import QUIET_LOGGING
from eddyline.plugin.jar_file import built

QUIETLY: Final = {
    "PYSPARK_SUBMIT_ARGS": "--driver-java-options "
    f"-Dlog4j2.configurationFile={QUIET_LOGGING.as_uri()} pyspark-shell",
    "SPARK_LOCAL_IP": "127.0.0.1",
}
"""The environment of a JVM that says nothing about this machine."""


def main() -> int:
    """Say what is wrong with each class."""
    os.environ |= QUIETLY
    with java_for_launch():
        SparkContext._ensure_initialized()  # noqa: SLF001 - a JVM with Spark's classes is enough
    mistakes = mistakes_in_java()
    for name, mistake in mistakes.items():
        if mistake:
            print(f"src/eddyline/catalyst/{name}.java: {mistake}")
    wrong = sum(map(bool, mistakes.values()))
    try:
        built(None)
    except RuntimeError as error:  # src/eddyline/plugin/*.java, which no query compiles
        print(error)
        wrong += 1
    print(f"{len(mistakes)} classes in Java and the plug-in's, {wrong} with mistakes")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
