"""Build the documentation of this version into a folder that has that of other versions.

    make docs-release ARGS=pages

The folder gets a site for each minor version, such as `0.1/`; that of an earlier patch release is
replaced. `versions.json` beside them feeds the switch in the header of every page, `index.html`
leads to the newest version, and `llms.txt` is that of the newest. There is nothing but files, so
that any server of files will do.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import eddyline

ROOT: Final = Path(__file__).resolve().parent.parent

REDIRECT: Final = """\
<!doctype html>
<meta charset="utf-8">
<title>Eddyline</title>
<meta http-equiv="refresh" content="0; url={folder}/index.html">
<a href="{folder}/index.html">Eddyline {folder}</a>
"""


def minor(version: str) -> str:
    """Return the folder of a version.

    >>> minor("0.1.2")
    '0.1'
    """
    return ".".join(version.split(".")[:2])


def listed(before: list[dict[str, Any]], version: str) -> list[dict[str, Any]]:
    """Return what `versions.json` should say, newest first, in the form that the theme reads.

    >>> [each["title"] for each in listed(listed(listed([], "0.9.0"), "0.10.0"), "0.9.1")]
    ['0.10.0', '0.9.1']
    """
    own = {"version": minor(version), "title": version, "aliases": []}
    others = [each for each in before if each["version"] != own["version"]]
    return sorted(
        [own, *others],
        key=lambda each: [int(part) for part in each["version"].split(".")],
        reverse=True,
    )


def below(links: str, folder: str) -> str:
    """Return Markdown with its relative links led into a folder.

    >>> below("[a](a.html), [b](https://b.org/)", "0.1")
    '[a](0.1/a.html), [b](https://b.org/)'
    """
    return re.sub(r"\]\((?![a-z]+:)", f"]({folder}/", links)


def describe(folder: Path, version: str) -> None:
    """Write what stands beside the sites of the versions, one of which is new."""
    file = folder / "versions.json"
    versions = listed(json.loads(file.read_text("utf-8")) if file.exists() else [], version)
    newest = versions[0]["version"]
    links = (folder / newest / "llms.txt").read_text("utf-8")
    file.write_text(json.dumps(versions, indent=1) + "\n", "utf-8")
    (folder / "index.html").write_text(REDIRECT.format(folder=newest), "utf-8")
    (folder / "llms.txt").write_text(below(links, newest), "utf-8")
    (folder / ".nojekyll").touch()  # the files are the site; GitHub's generator has no part in it


def main(arguments: list[str]) -> int:
    """Build and describe; return the exit code."""
    parser = argparse.ArgumentParser(
        "make docs-release", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("folder", type=Path, help="of all versions")
    folder = parser.parse_args(arguments).folder.resolve()
    site = folder / minor(eddyline.__version__)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", site]
    subprocess.run(command, cwd=ROOT, check=True)
    describe(folder, eddyline.__version__)
    print(site)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
