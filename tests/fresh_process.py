"""What an interpreter does that has nothing loaded yet."""

from __future__ import annotations

import os
import subprocess
import sys

from tests import quick_java


def printed_lines(code: str, *, seconds: float | None = None) -> list[str]:
    """Run code in a new interpreter with this one's path; return the lines that it printed.

    ``TimeoutExpired`` where it takes longer than so many seconds.
    """
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=seconds,
        env={"PYTHONPATH": ":".join(sys.path)}
        | {name: os.environ[name] for name in ("PATH", quick_java.VARIABLE)},
    )
    return run.stdout.splitlines()
