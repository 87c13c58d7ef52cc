"""Pages that are drawn by a script are as it would draw them now."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import eddyline

ROOT: Final = Path(__file__).parents[1]

DECISIONS: Final = ROOT / "docs" / "decisions"


def test_what_is_drawn_is_current() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "draw"), "--check"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), f"run: make draw\n{done.stderr}"


def test_every_decision_has_a_status_and_a_date_and_is_listed() -> None:
    rows = re.findall(
        r"^\| \d+ \| .*\|$", (DECISIONS / "index.md").read_text("utf-8"), re.MULTILINE
    )
    pages = sorted(DECISIONS.glob("[0-9]*.md"))
    assert len(rows) == len(pages) > 50
    for row, page in zip(rows, pages, strict=True):
        number, title, date, status, summary = (cell.strip() for cell in row.split("|")[1:-1])
        assert number == str(int(page.name[:4]))
        assert title.endswith(f"]({page.name})")
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", date)
        assert status.split()[0] in {"Accepted", "Amended", "Superseded"}
        assert len(summary) < 130


def test_a_status_names_decisions_that_are_there() -> None:
    text = (DECISIONS / "index.md").read_text("utf-8")
    for number, page in re.findall(r"\[(\d+)\]\(([\w-]+\.md)\)", text):
        assert (DECISIONS / page).is_file()
        assert page.startswith(f"{int(number):04d}-")


def test_a_measured_figure_stands_in_the_section_that_it_sums_up() -> None:
    text = (ROOT / "docs" / "measured.md").read_text("utf-8")
    for row in json.loads((ROOT / "docs" / "measured.json").read_text("utf-8"))["rows"]:
        section = text.partition(f"\n## {row['section']}\n")[2].partition("\n## ")[0]
        for figure in re.findall(r"\d[\d.,]*\d", f"{row['plain']} {row['hand']} {row['commit']}"):
            assert figure in section, (row["what"], figure)


def test_the_front_page_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").split()) <= 900


def test_pages_name_this_version() -> None:
    version = eddyline.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    for page in (ROOT / "README.md", ROOT / "docs" / "clusters.md"):
        wheels = re.findall(r"eddyline-([\w.]+?)-py3", page.read_text("utf-8"))
        assert set(wheels) == {version}, page


WRITTEN: Final = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.name != "reference.md"),
    *sorted((ROOT / "docs" / "platforms").glob("*.md")),
]


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_prose_is_wrapped(page: Path) -> None:
    prose = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    lines = [line for line in prose.splitlines() if not line.startswith(("|", "#", "!", "<!--"))]
    assert [line for line in lines if len(line) > 100] == []


def test_files_that_the_recipes_name_are_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = set(re.findall(r"`((?:[\w-]+/)+[\w.-]+)`", text))
    assert len(named) > 20
    roots = (ROOT, ROOT / "src", ROOT / "src" / "eddyline", ROOT / "tests" / "planner")
    assert {name for name in named if not any((root / name).exists() for root in roots)} == set()
