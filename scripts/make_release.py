"""Build what a release consists of, into dist/, and check it.

    make release                  of a version whose section of CHANGELOG.md has a date
    make release ARGS=--draft     before it has one

The source distribution is made first and the wheel of that, so that what others build of it is the
same. Both are looked at by twine, as the index will; their checksums are in `SHA256SUMS`, and the
version's section of the changelog is in `NOTES.md`.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import eddyline

ROOT: Final = Path(__file__).resolve().parent.parent
DIST: Final = ROOT / "dist"
VENV: Final = ".venv-release"
LOCK: Final = "requirements/release.txt"


def notes(changes: str, version: str, *, draft: bool) -> str:
    r"""Return a version's section of the changelog; ValueError where it is missing or has no date.

    A ``draft`` needs no date.

    >>> notes("# Changes\n\n## 0.2 (2026-12-01)\n\n- New.\n\n## 0.1\n", "0.2", draft=False)
    '- New.\n'
    """
    found = re.search(
        rf"^## {re.escape(version)}(?: \((?P<date>[^)]*)\))?\n(?P<text>.*?)(?=^## |\Z)",
        changes,
        re.DOTALL | re.MULTILINE,
    )
    if found is None:
        raise ValueError(f"CHANGELOG.md has no section of {version}.")
    if not draft and not re.fullmatch(r"\d{4}-\d\d-\d\d", found["date"] or ""):
        raise ValueError(f"CHANGELOG.md gives {version} no date, as in ## {version} (2026-12-01).")
    return found["text"].strip() + "\n"


def python_of_release() -> Path:
    """Return the interpreter of the environment that builds; it is made where it is out of date."""
    ready, lock = ROOT / VENV / ".ready", ROOT / LOCK
    if not ready.exists() or ready.stat().st_mtime < lock.stat().st_mtime:
        subprocess.run([ROOT / "scripts/create_environment.sh", VENV, LOCK], cwd=ROOT, check=True)
        ready.touch()
    return ROOT / VENV / "bin/python"


def main(arguments: list[str]) -> int:
    """Build and check; return the exit code."""
    parser = argparse.ArgumentParser("make release", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--draft", action="store_true", help="the changelog may lack the date")
    options = parser.parse_args(arguments)
    try:
        text = notes(
            (ROOT / "CHANGELOG.md").read_text("utf-8"), eddyline.__version__, draft=options.draft
        )
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    python = python_of_release()
    for old in (DIST, ROOT / "build"):
        shutil.rmtree(old, ignore_errors=True)
    eddyline.jar()  # is built where the sources have changed, and goes into both
    # The wheel is made of the source distribution.
    command = [python, "-m", "build", "--no-isolation", "--outdir", DIST]
    subprocess.run(command, cwd=ROOT, check=True)
    packages = sorted(path for path in DIST.iterdir() if path.suffix in {".whl", ".gz"})
    subprocess.run([python, "-m", "twine", "check", "--strict", *packages], check=True)
    sums = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in packages)
    (DIST / "SHA256SUMS").write_text("".join(sums))
    (DIST / "NOTES.md").write_text(text, "utf-8")
    print(*(path.name for path in sorted(DIST.iterdir())), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
