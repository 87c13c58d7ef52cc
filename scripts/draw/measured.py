"""Draws the table of measured figures from ``docs/measured.json`` into the pages that show it.

New figures are written into the file by hand, from what ``make bench`` prints, together with the
commit that was measured.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]

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


def pages() -> dict[Path, str]:
    """Return the pages that show the table as they should be."""
    return {page: drawn(page.read_text("utf-8")) for page in PAGES}
