"""What a Python has installed, without Eddyline."""

from __future__ import annotations

import sysconfig
from pathlib import Path


def linked_packages(folder: Path) -> Path:
    """Return a folder with links to all packages but ours; ``.pth`` files do nothing there."""
    folder.mkdir()
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if not package.name.startswith("eddyline"):
            (folder / package.name).symlink_to(package)
    return folder
