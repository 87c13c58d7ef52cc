"""Draws the table of measured figures from ``docs/measured.json`` into the pages that show it.

Run as ``python scripts/draw_measured.py``; with ``--check`` it only says whether the pages are
current. New figures are written into the file by hand, from what ``make bench`` prints, together
with the commit that was measured.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]

FIGURES: Final = ROOT / "docs" / "measured.json"

PAGES: Final = (ROOT / "README.md", ROOT / "docs" / "measured.md")

BEGIN: Final = "<!-- drawn: measured figures, from docs/measured.json -->\n"

END: Final = "<!-- end: measured figures -->\n"


def table() -> str:
    """Return the figures as a table in Markdown."""
    rows = json.loads(FIGURES.read_text("utf-8"))["rows"]
    lines = ["| workload | plain Spark | best by hand | measured with |", "|---|---|---|---|"]
    for row in rows:
        commit = f" at {row['commit']}" if row["commit"] else ""
        cells = row["what"], row["plain"] or "", row["hand"] or "", f"`{row['command']}`{commit}"
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def drawn(text: str) -> str:
    """Return a page with the table as it is now; ValueError for one without a place for it."""
    head, begin, rest = text.partition(BEGIN)
    if not begin or END not in rest:
        raise ValueError(f"a page has no {BEGIN.strip()} … {END.strip()}")
    return f"{head}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


def main() -> int:
    """Draw the table, or check it."""
    stale = 0
    for page in PAGES:
        text = page.read_text("utf-8")
        now = drawn(text)
        stale += text != now
        if "--check" not in sys.argv:
            page.write_text(now, "utf-8")
            print(page.relative_to(ROOT))
    return int("--check" in sys.argv and stale > 0)


if __name__ == "__main__":
    raise SystemExit(main())
