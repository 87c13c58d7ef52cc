"""Run the main paths with every supported version of PySpark, and say how each fared.

    python scripts/check_versions.py [4.1 …]

Each minor version has an environment of its own, `.venv-pyspark-4.1`, with the newest patch
release that `make locks` has found; the version that all else is developed with is in `.venv`.
Fails if one version does, or if an environment holds another version than it should.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from eddyline.host.versions import TESTED

ROOT = Path(__file__).resolve().parent.parent

TESTS = (
    "tests/planner/test_main_paths.py",
    "tests/planner/test_outer_lookups.py",
    "tests/planner/test_settings.py",
    "tests/host/test_versions.py",
    "tests/quirks",
)


@dataclass(frozen=True)
class Result:
    """What became of one version: as it is installed, and pytest's last line."""

    wanted: str
    installed: str
    summary: str
    passed: bool
    seconds: float


def python_for(minor: str) -> Path:
    """Return the interpreter of a version's environment, which is made if it is out of date."""
    lock = Path("requirements", f"pyspark-{minor}.txt")
    if not (ROOT / lock).exists():  # the one that all else is developed with
        return ROOT / ".venv/bin/python"
    venv = ROOT / f".venv-pyspark-{minor}"
    ready = venv / ".ready"
    if not ready.exists() or ready.stat().st_mtime < (ROOT / lock).stat().st_mtime:
        script = ROOT / "scripts/create_environment.sh"
        subprocess.run([script, venv.name, lock], cwd=ROOT, check=True)
        ready.touch()
    return venv / "bin/python"


def checked(minor: str) -> Result:
    """Run the tests with one version."""
    started = time.monotonic()
    try:
        python = python_for(minor)
    except subprocess.CalledProcessError:
        return Result(minor, "-", "no environment", passed=False, seconds=0.0)
    asked = [python, "-c", "import pyspark; print(pyspark.__version__)"]
    answer = subprocess.run(asked, cwd=ROOT, check=False, capture_output=True, text=True)
    installed = answer.stdout.strip() or "-"
    if not installed.startswith(f"{minor}."):
        return Result(minor, installed, "not this version", passed=False, seconds=0.0)
    print(f"PySpark {installed}", flush=True)
    run = subprocess.Popen(
        [python, "-m", "pytest", *TESTS],
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    summary = "no tests ran"
    for line in run.stdout or ():
        print(line, end="", flush=True)
        if re.search(r"\d+ (passed|failed|error)", line):
            summary = line.strip("= \n").partition(" in ")[0]
    passed = run.wait() == 0
    return Result(minor, installed, summary, passed, time.monotonic() - started)


def main(minors: list[str]) -> int:
    """Check versions, by default all that are supported; return the exit code."""
    known = [".".join(map(str, minor)) for minor in TESTED]
    if unknown := set(minors) - set(known):
        print(f"Not supported: {', '.join(sorted(unknown))}. Supported: {', '.join(known)}.")
        return 2
    results = [checked(minor) for minor in minors or known]
    print(f"\n{'PySpark':10} {'installed':10} {'':7} {'seconds':>7}  tests")
    for each in results:
        verdict = "passed" if each.passed else "FAILED"
        row = f"{each.wanted:10} {each.installed:10} {verdict:7} {each.seconds:7.0f}"
        print(f"{row}  {each.summary}")
    return 0 if all(each.passed for each in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
