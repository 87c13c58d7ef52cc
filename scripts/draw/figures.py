"""Draws the page of the papers' figures, ``docs/figures.md``, from what ``make figures`` recorded.

``make figures ARGS=--record`` writes ``docs/figures.json``: what was run, and what came of each
claim. Pictures and notes are those that a figure's texts ask for, in ``bench/figures/texts``.
"""

from __future__ import annotations

import json
import re
import textwrap
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]

RECORDED: Final = ROOT / "docs" / "figures.json"

TEXTS: Final = ROOT / "bench" / "figures" / "texts"

PAGE: Final = ROOT / "docs" / "figures.md"

INTRODUCTION: Final = """\
`make figures` draws figures of the papers again, and compares the papers' claims with what was \
measured: {figures} figures in about {minutes} minutes, into `bench/results`. What is \
claimed of each, and the conditions under which that holds, are in `bench/figures/texts`; \
`make figures ARGS=--record` draws this page. {pictures} figures are shown, all from simulations, \
which a seed repeats to the last decision.

Figures on the virtual clock are run with five seeds, of data and of chance. What is given here is \
the median, from the least to the greatest in parentheses, and a claim holds if it does with most \
seeds. Figures that are timed take turns in one run. There the medians of all turns are given and \
judged, with the least and the greatest turn. Where not all seeds or turns agree, the last column \
says how many do. With `--quick` there are less data and one seed, and the output says of which \
figures this is too little to judge claims by."""


def texts() -> dict[str, Any]:
    """Return what figures say, by name."""
    return {
        name: text
        for path in sorted(TEXTS.glob("*.toml"))
        for name, text in tomllib.loads(path.read_text("utf-8")).items()
    }


def page(recorded: Mapping[str, Any], said: Mapping[str, Any]) -> str:
    """Return the page."""
    seconds = sum(figure["seconds"] for figure in recorded.values())
    shown = sum(bool(said[name].get("picture")) for name in recorded)
    introduction = INTRODUCTION.format(
        figures=len(recorded), minutes=max(round(seconds / 60), 1), pictures=shown
    )
    parts = [
        "<!-- drawn by scripts/draw from figures.json -->",
        "# Figures of the papers",
        *map(_wrapped, introduction.split("\n\n")),
        _overview(recorded),
        *_not_recorded(recorded, said),
    ]
    for name, figure in recorded.items():
        parts += _section(name, figure, said[name])
    return "\n\n".join(parts) + "\n"


def _not_recorded(recorded: Mapping[str, Any], said: Mapping[str, Any]) -> Iterator[str]:
    """Say which figures are missing here."""
    if missing := [f"`{name}`" for name in said if name not in (*recorded, "bounds")]:
        yield _wrapped(f"Not recorded with several seeds yet: {', '.join(missing)}.")


def _overview(recorded: Mapping[str, Any]) -> str:
    """Return how many claims hold, by paper."""
    papers: dict[str, list[Mapping[str, Any]]] = {}
    for figure in recorded.values():
        papers.setdefault(_paper(figure), []).append(figure)
    rows = []
    for paper, figures in papers.items():
        claims = [claim for figure in figures for claim in figure["claims"]]
        cells = [paper, str(len(figures))]
        for sources in (["paper"], ["target", "ours"]):
            of_source = [claim for claim in claims if claim["source"] in sources]
            cells.append(f"{sum(claim['holds'] for claim in of_source)} of {len(of_source)}")
        rows.append(cells)
    return _table(["paper", "figures", "its claims that hold", "targets and claims of ours"], rows)


def _paper(figure: Mapping[str, Any]) -> str:
    """Return the paper without what is meant of it: authors and year."""
    found = re.match(r".*?, \d{4}", figure["paper"])
    if found is None:
        raise ValueError(f"{figure['paper']} has no year")
    return found[0]


def _section(name: str, figure: Mapping[str, Any], said: Mapping[str, Any]) -> Iterator[str]:
    """Give the parts of a figure's section."""
    runs = "; ".join(filter(None, [figure["size"], figure["repeats"], f"{figure['seconds']} s"]))
    yield f"## {figure['title']}"
    yield _wrapped(f"{figure['paper']}; `make figures ARGS={name}`. {runs[:1].upper()}{runs[1:]}.")
    if said.get("picture"):
        yield f"![{figure['title']}](pictures/{name}.svg)"
    if said.get("table"):
        head, *rows = figure["table"]
        yield _table(head, rows)
    rows = [
        [claim["source"], claim["says"], _here(claim), _verdict(claim)]
        for claim in figure["claims"]
    ]
    yield _table(["who", "says", "here", ""], rows)
    for paragraph in filter(None, said.get("note", "").split("\n\n")):
        yield _wrapped(paragraph)


def _here(claim: Mapping[str, Any]) -> str:
    return f"{claim['ours']}<br>{claim['remark']}" if claim["remark"] else str(claim["ours"])


def _verdict(claim: Mapping[str, Any]) -> str:
    verdict = str(claim["verdict"])
    return verdict if claim["holds"] else verdict.replace("differs", "**differs**")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in lines)


def _wrapped(paragraph: str) -> str:
    return textwrap.fill(
        " ".join(paragraph.split()), 100, break_long_words=False, break_on_hyphens=False
    )


def pages() -> dict[Path, str]:
    """Return the page as it should be."""
    return {PAGE: page(json.loads(RECORDED.read_text("utf-8")), texts())}
