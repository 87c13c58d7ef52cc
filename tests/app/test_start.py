"""What Ctrl-C leaves of the connection to the JVM."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

SCRIPT = """
    import os, signal, threading
    from rich.console import Console
    from eddyline.app.start import running_spark

    with running_spark(Console(quiet=True)) as spark:
        jvm = spark._jvm
        threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            jvm.java.lang.Thread.sleep(3_000)
        except KeyboardInterrupt as error:
            held = error.__traceback__  # as it is while blocks are left: so are the connections
            print(jvm.java.lang.Math.abs(-5), spark.range(7).count())
"""


def test_an_interrupted_call_is_not_answered_by_the_next() -> None:
    done = subprocess.run(
        [sys.executable, "-c", dedent(SCRIPT)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "5 7\n", done.stderr
