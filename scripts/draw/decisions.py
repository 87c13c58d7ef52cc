"""Draws the table of decisions in ``docs/decisions/index.md`` from the records themselves."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs" / "decisions"

INDEX: Final = FOLDER / "index.md"

MARK: Final = "<!-- drawn by scripts/draw -->\n"

LINK: Final = r"\[\d+\]\(\d{4}-[\w-]+\.md\)"

HEAD: Final = re.compile(
    r"# (?P<number>\d+)\. (?P<title>.+)\n\n"
    rf"\*\*Status\.\*\* (?P<status>Accepted|(?:Amended|Superseded) by {LINK}(?: and {LINK})*)"
    r" · (?P<date>\d{4}-\d\d-\d\d)\n\n"
    r"\*\*Summary\.\*\* (?P<summary>(?:.+\n)+)\n"
)
"""How a record begins."""


@dataclass(frozen=True, slots=True)
class Record:
    """What a decision record says of itself; ``status`` may have links."""

    file: str
    number: int
    title: str
    date: str
    status: str
    summary: str


def record(page: Path) -> Record:
    """Return what a record says of itself; ValueError if it does not begin as records do."""
    head = HEAD.match(page.read_text("utf-8"))
    if head is None:
        raise ValueError(f"{page.name} does not begin with a title, a status, a date and a summary")
    number = int(head["number"])
    if not page.name.startswith(f"{number:04d}-"):
        raise ValueError(f"{page.name} has the number {number} in its title")
    summary = " ".join(head["summary"].split())
    return Record(page.name, number, head["title"], head["date"], head["status"], summary)


def records() -> list[Record]:
    """Return all records, in their order."""
    return [record(page) for page in sorted(FOLDER.glob("[0-9]*.md"))]


def table() -> str:
    """Return the table of all records, as Markdown."""
    rows = ["| no. | decision | date | status | in one line |", "|---|---|---|---|---|"]
    rows += [
        f"| {each.number} | [{each.title}]({each.file}) | {each.date} | {each.status} "
        f"| {each.summary} |"
        for each in records()
    ]
    return "\n".join([*rows, ""])


def pages() -> dict[Path, str]:
    """Return the index as it should be."""
    text = INDEX.read_text("utf-8")
    return {INDEX: "".join([*text.partition(MARK)[:2], "\n", table()])}
