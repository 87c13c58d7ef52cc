"""Finds what a join has spilled, as long as it is there."""

from __future__ import annotations

from pathlib import Path

PROCESSES = Path("/proc")
"""Where Linux tells which files a process has open, nameless ones included."""


def spilled_files(folder: Path) -> list[str]:
    """Return the files of spills in a folder: by name, and those that processes have open."""
    found = [str(path) for path in folder.rglob("eddyline-spill-*")]
    for link in PROCESSES.glob("[0-9]*/fd/*"):
        try:
            target = str(link.readlink())
        except OSError:  # it was closed meanwhile
            continue
        if target.startswith(str(folder)) and target.endswith("(deleted)"):
            found.append(f"{link}: {target}")
    return found
