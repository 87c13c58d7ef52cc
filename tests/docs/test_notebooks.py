"""The notebooks of the documentation run, and show what is stored in them."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

import eddyline

pytestmark = pytest.mark.slow(20)

ROOT: Final = Path(__file__).parents[2]

NOTEBOOKS: Final = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))

RUNNER: Final = runpy.run_path(str(ROOT / "scripts/run_notebooks.py"))

TIME: Final = re.compile(r"\d[\d.,]* (?:ns|us|µs|ms|s)\b")

BLOCK: Final = re.compile(r"\bBlock [0-9a-f]{16}\b")
"""A block by its identity, in which the bytecode of its functions is, and so Python's version."""

VARIES: Final = "varies"
"""A tag of cells that show figures of a run, such as reports: only what frames them is compared."""

FRAME: Final = re.compile(r"<style>(?!\s*@container).*?</style>|<h[12]>.*?</h[12]>", re.DOTALL)

OF_A_MACHINE: Final = re.compile(r"/(?:tmp|home|root|work|Users|var)/|127\.0\.0\.1:\d|localhost")

LARGEST: Final = 200_000
"""Bytes of a notebook."""

RUN_AGAIN: Final = "run: make notebooks"


def stored(path: Path) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return notebook


def outputs(cell: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return what a cell shows, by kind, without what differs from run to run."""
    varies = VARIES in cell["metadata"].get("tags", ())
    return [
        {kind: framed(text) if varies else settled(text) for kind, text in texts(output)}
        for output in cell["outputs"]
    ]


def texts(output: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    shown = output.get("data") or {output["name"]: output["text"]}
    for kind, lines in shown.items():
        yield kind, "".join(lines)


def settled(text: str) -> str:
    return BLOCK.sub("Block …", TIME.sub("… s", text))


def framed(text: str) -> str:
    return settled(
        "".join(found for found in FRAME.findall(text) if "@container" not in found[:60])
    )


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The session that the notebooks find; without what one that fails leaves behind."""
    yield spark
    for query in spark.streams.active:
        query.stop()
    eddyline.disable(spark)
    spark.catalog.clearCache()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.usefixtures("session")
def test_a_notebook_shows_what_is_stored(path: Path) -> None:
    notebook = stored(path)
    again = json.loads(RUNNER["with_outputs"](notebook, RUNNER["run"](notebook, path.name)))
    cells: Sequence[tuple[Any, Any]] = list(zip(notebook["cells"], again["cells"], strict=True))
    for before, after in cells:
        assert before.get("execution_count") == after.get("execution_count"), RUN_AGAIN
        if before["cell_type"] == "code":
            assert outputs(after) == outputs(before), RUN_AGAIN


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_small_and_says_nothing_of_a_machine(path: Path) -> None:
    assert path.stat().st_size < LARGEST
    cells = stored(path)["cells"]
    assert 8 <= len(cells) <= 15
    for cell in cells:
        for output in cell.get("outputs", ()):
            for _, text in texts(output):
                assert not OF_A_MACHINE.search(text)


def test_every_notebook_is_listed() -> None:
    assert len(NOTEBOOKS) == 3
    for page in (
        ROOT / "mkdocs.yml",
        ROOT / "docs" / "index.md",
        ROOT / "docs/platforms/jupyter.md",
    ):
        text = page.read_text("utf-8")
        assert all(f"notebooks/{path.stem}.md" in text for path in NOTEBOOKS), page


def shown_by(*sources: str) -> list[list[Any]]:
    """Run cells; return what each shows, as text."""
    cells = [{"cell_type": "code", "source": [source]} for source in sources]
    done = RUNNER["run"]({"cells": cells}, "a test")
    return [[dict(texts(output)) for output in cell] for cell in done]


def test_a_cell_shows_what_it_prints_and_its_last_expression() -> None:
    assert shown_by("a = 1\nprint(a)\na + 1", "a", "a = 2", "None") == [
        [{"stdout": "1\n"}, {"text/plain": "2"}],
        [{"text/plain": "1"}],
        [],
        [],
    ]


def test_a_value_shows_itself_as_html() -> None:
    source = "class A:\n    _repr_html_ = lambda _: '<b>a</b>'\n    __repr__ = lambda _: 'a'\nA()"
    assert shown_by(source) == [[{"text/html": "<b>a</b>", "text/plain": "a"}]]


def test_cells_run_beside_a_running_loop_and_may_wait_for_it() -> None:
    sources = "import asyncio\nloop = asyncio.get_running_loop()", "await asyncio.sleep(0, 5)"
    assert shown_by(*sources)[1] == [{"text/plain": "5"}]


def test_a_failing_cell_is_named() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        shown_by("a = 1", "a / 0")
    assert str(caught.traceback[-1].frame.code.raw.co_filename) == "a test, In [2]"
