"""What an interpreter does that has nothing loaded yet."""

from __future__ import annotations

import subprocess
import sys


def printed_lines(code: str) -> list[str]:
    """Run code in a new interpreter with this one's path; return the lines that it printed."""
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    return run.stdout.splitlines()
