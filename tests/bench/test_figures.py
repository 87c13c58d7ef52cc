"""Every figure about joins can be drawn, and says what it claims."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from bench.figures.__main__ import FIGURES

ABOUT_JOINS = (
    "hash-joins",
    "join-flow",
    "late-relation",
    "late-flow",
    "cost-of-adaptive-joins",
)


@pytest.mark.parametrize("name", ABOUT_JOINS)
def test_a_quick_figure_is_drawn(name: str, tmp_path: Path) -> None:
    experiment = FIGURES[name]
    advanced = []
    figure = experiment.draw(True, lambda: advanced.append(name))  # noqa: FBT003 - as Experiment has it
    assert len(advanced) == experiment.steps(True)  # noqa: FBT003 - likewise
    figure.write(tmp_path, name)
    picture = ET.fromstring((tmp_path / f"{name}.svg").read_text())  # noqa: S314 - made above
    assert picture.tag.endswith("svg")
    written = json.loads((tmp_path / f"{name}.json").read_text())
    assert written["claims"]
    assert all(claim["says"] and claim["ours"] for claim in written["claims"])
    assert {len(row) for row in figure.rows} == {len(figure.columns)}
