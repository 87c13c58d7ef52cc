"""What Spark's processes write of themselves stays off the terminal; all else is handed on."""

from __future__ import annotations

import subprocess
import sys

NOISE = (
    "WARNING: Using incubator modules: jdk.incubator.vector",
    "Starting Streaming TransformWithStateInPandas Python worker.",
    "",
    "Streaming TransformWithStateInPandas Python worker received parameters for UDF.",
    "",
)

SAID = ("26/11/24 ERROR TaskSetManager: a task has failed", "", "Starting again", "")

SCRIPT = """
import subprocess, sys, threading
from eddyline.app.jvm_stderr import jvm_noise_dropped

with jvm_noise_dropped():
    print("own", file=sys.stderr)
    subprocess.run(["cat", "-"], input=sys.stdin.buffer.read(), stdout=2, check=True)
for thread in threading.enumerate():
    if thread is not threading.main_thread():
        thread.join(10)
"""


def test_noise_is_dropped() -> None:
    lines = [SAID[0], *NOISE, *SAID[1:], *NOISE, SAID[2], *NOISE[:2]]
    answer = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        check=True,
    )
    kept = [line for line in answer.stderr.splitlines() if line != "own"]
    assert kept == [SAID[0], *SAID[1:], SAID[2]]
    assert "own" in answer.stderr.splitlines()
    assert answer.stdout == ""
