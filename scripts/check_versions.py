"""Run tests with every supported version of PySpark, and say how each fared.

    python scripts/check_versions.py [4.1 …] [python-3.13 …] [pandas-3]

What is tested is the wheel in ``dist``, not the source tree: all tests with PySpark 4.0 and the
oldest Python at hand, and the main paths otherwise. Each minor version of PySpark has an
environment of its own, with the newest patch release that ``make locks`` has found and the oldest
Python at hand; the newest PySpark, and the oldest that takes it, also have one with the newest
Python at hand, and the newest PySpark one with pandas 3. A word leaves the environments that have
it in their names. Fails if one environment does, or holds other versions than it should.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from eddyline.host.versions import TESTED

ROOT: Final = Path(__file__).resolve().parent.parent

TESTS: Final = (
    "tests/planner/test_main_paths.py",
    "tests/planner/test_outer_lookups.py",
    "tests/planner/test_settings.py",
    "tests/plugin/test_sql_clients.py",
    "tests/plugin/test_unaware_script.py",
    "tests/host/test_versions.py",
    "tests/quirks",
)

ALL_TESTS: Final = ("--numprocesses", "2", "--dist", "loadfile", "--no-loadscope-reorder", "tests")
"""What ``make test`` runs, but for the examples in docstrings, which are the source tree's."""

WITH_ALL_TESTS: Final = "4.0"
"""The oldest PySpark that has nearly all that the newest has; `make test` runs on the newest."""

PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
"""The versions of Python that Eddyline is made for, oldest first."""

NEWEST_PYTHON: Final = {"3.5": "3.11", "4.0": "3.13"}
"""The newest Python that a PySpark is made for, where that is not the newest of all."""

ASKED: Final = """
import json, sys, eddyline, pandas, pyspark
print(json.dumps({
    "python": "%d.%d" % sys.version_info[:2],
    "pyspark": pyspark.__version__,
    "pandas": pandas.__version__,
    "package": eddyline.__file__,
}))
"""


@dataclass(frozen=True)
class Environment:
    """What is tested together."""

    pyspark: str
    python: str
    pandas: str = "2"
    tests: Sequence[str] = TESTS

    @property
    def name(self) -> str:
        """As people say which to run: ``pyspark-4.3-python-3.11-pandas-3``."""
        other = "" if self.pandas == "2" else f"-pandas-{self.pandas}"
        return f"pyspark-{self.pyspark}-python-{self.python}{other}"

    @property
    def folder(self) -> Path:
        """Where it is."""
        return ROOT / f".venv-{self.name}"

    @property
    def lock(self) -> Path:
        """What is in it: a file of its own, or the one that all else is made with."""
        other = "" if self.pandas == "2" else f"-pandas-{self.pandas}"
        own = Path("requirements", f"pyspark-{self.pyspark}{other}.txt")
        return own if (ROOT / own).exists() else Path("requirements/dev.txt")

    def make(self, interpreter: str, wheel: Path) -> None:
        """Bring it up to date, and install the wheel; CalledProcessError where that fails."""
        ready = self.folder / ".ready"
        if not ready.exists() or ready.stat().st_mtime < (ROOT / self.lock).stat().st_mtime:
            subprocess.run(
                [ROOT / "scripts/create_environment.sh", self.folder.name, self.lock],
                cwd=ROOT,
                env={**os.environ, "PYTHON": interpreter},
                check=True,
            )
            ready.touch()
        pip = [self.folder / "bin/python", "-m", "pip", "install", "--quiet", "--no-index"]
        subprocess.run([*pip, "--no-deps", "--force-reinstall", wheel], cwd=ROOT, check=True)

    def difference(self) -> str:
        """Return what is in it that should not be, or nothing."""
        run = [self.folder / "bin/python", "-c", ASKED]
        answer = subprocess.run(run, cwd=ROOT, check=False, capture_output=True, text=True)
        if answer.returncode:
            return (answer.stderr.strip().splitlines() or ["it does not start"])[-1]
        found = json.loads(answer.stdout)
        for what in ("python", "pyspark", "pandas"):
            if not f"{found[what]}.".startswith(f"{getattr(self, what)}."):
                return f"{what} is {found[what]}"
        if not Path(found["package"]).is_relative_to(self.folder):
            return "the package is not the wheel's"
        return ""


@dataclass(frozen=True)
class Result:
    """What became of an environment: pytest's last line, or why there is none."""

    name: str
    summary: str
    passed: bool
    seconds: float


def checked(environment: Environment, interpreter: str, wheel: Path) -> Result:
    """Run the tests in one environment."""
    started = time.monotonic()
    print(environment.name, flush=True)
    try:
        environment.make(interpreter, wheel)
    except subprocess.CalledProcessError:
        return Result(environment.name, "could not be made", passed=False, seconds=0.0)
    if difference := environment.difference():
        return Result(environment.name, difference, passed=False, seconds=0.0)
    run = subprocess.Popen(
        [environment.folder / "bin/python", "-m", "pytest", *environment.tests],
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
    return Result(environment.name, summary, passed, time.monotonic() - started)


def interpreters() -> dict[str, str]:
    """Return the Pythons at hand by their versions, oldest first: on the path, and pyenv's."""
    found = {}
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    for version in PYTHONS:
        named = [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python"))]
        for program in filter(None, named):
            code = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"
            # A name on the path may be a launcher without a Python behind it.
            said = subprocess.run(
                [program, "-c", code], check=False, capture_output=True, text=True
            )
            if said.stdout.strip() == version:
                found[version] = str(program)
                break
    return found


def environments(pythons: Sequence[str]) -> Iterator[Environment]:
    """Return all that are tested, for the Pythons at hand, oldest first."""
    minors = [".".join(map(str, minor)) for minor in TESTED]
    for minor in minors:
        if PYTHONS.index(pythons[0]) <= PYTHONS.index(NEWEST_PYTHON.get(minor, PYTHONS[-1])):
            tests = ALL_TESTS if minor == WITH_ALL_TESTS else TESTS
            yield Environment(minor, pythons[0], tests=tests)
    if pythons[-1] != pythons[0]:
        newest = PYTHONS.index(pythons[-1])
        takes_it = [
            minor
            for minor in minors
            if newest <= PYTHONS.index(NEWEST_PYTHON.get(minor, PYTHONS[-1]))
        ]
        yield Environment(takes_it[0], pythons[-1])
        yield Environment(takes_it[-1], pythons[-1])
    yield Environment(minors[-1], pythons[-1], pandas="3")


def main(words: Sequence[str]) -> int:
    """Check environments, by default all; return the exit code."""
    wheels = sorted((ROOT / "dist").glob("eddyline-*.whl"))
    if len(wheels) != 1:
        print(f"There should be one wheel in dist, and there are {len(wheels)}: run make wheel")
        return 2
    pythons = interpreters()
    if not pythons:
        print(f"No Python of {', '.join(PYTHONS)} that can make an environment")
        return 2
    known = list(environments(list(pythons)))
    chosen = [each for each in known if not words or any(word in each.name for word in words)]
    if not chosen:
        print(f"Not supported: {' '.join(words)}. Supported: {', '.join(x.name for x in known)}")
        return 2
    results = [checked(each, pythons[each.python], wheels[0]) for each in chosen]
    print(f"\n{wheels[0].name}\n{'environment':38} {'':7} {'seconds':>7}  tests")
    for each in results:
        verdict = "passed" if each.passed else "FAILED"
        print(f"{each.name:38} {verdict:7} {each.seconds:7.0f}  {each.summary}")
    return 0 if all(each.passed for each in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
