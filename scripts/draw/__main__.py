"""Draws the pages and pictures that are made of the code, the records and the measured figures.

Run as ``python scripts/draw``, or with the names of some of them; with ``--check`` it writes
nothing, names those that are out of date and ends with 1 if there are any.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]

DRAWN: Final = (
    "decisions",
    "figures",
    "first_page",
    "house",
    "llms",
    "measured",
    "notebooks",
    "reference",
)
"""Modules of this folder; each has ``pages()``, files with the text that they should have."""


def main() -> int:
    """Draw the pages, or check them."""
    parser = argparse.ArgumentParser("draw", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help=f"some of: {', '.join(DRAWN)} (default: all)")
    parser.add_argument("--check", action="store_true", help="only say which are out of date")
    options = parser.parse_args()
    if unknown := set(options.names) - set(DRAWN):
        parser.error(f"no {', '.join(sorted(unknown))}; there are {', '.join(DRAWN)}")
    stale = 0
    for name in options.names or DRAWN:  # one after the other: some are drawn from what others are
        for page, text in import_module(name).pages().items():
            if page.exists() and page.read_text("utf-8") == text:
                continue
            stale += 1
            print(page.relative_to(ROOT))
            if not options.check:
                page.write_text(text, "utf-8")
    return int(options.check and stale > 0)


if __name__ == "__main__":
    raise SystemExit(main())
