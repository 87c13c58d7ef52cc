"""Every Python example of the documentation runs, page by page, in order, in one namespace.

An example that cannot run here says why, in a comment before it: ``<!-- not run: … -->``. What
stands behind ``<!-- prints -->`` after an example is what it prints, but for what was measured,
and up to a line ``…``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

import eddyline
from tests.docs.beforehand import BEFOREHAND

pytestmark = pytest.mark.slow(25)

ROOT: Final = Path(__file__).parents[2]

PAGES: Final = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "platforms").glob("*.md")),
]

BLOCK: Final = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+?) -->\n)?^```python\n(?P<code>.*?)^```$"
    r"(?:\n\n<!-- prints -->\n```text\n(?P<printed>.*?)^(?:…\n)?```$)?",
    re.DOTALL | re.MULTILINE,
)

MEASURED: Final = re.compile(r"\d[\d.,]*[kM]?(?: (?:us|ms|s|min)\b)?")

MOST_NOT_RUN: Final = 8
"""Examples that need what is not here: a service by its name, a cluster, a stream without end."""


@dataclass(frozen=True, slots=True)
class Example:
    """The code of one example, the line of its page where it begins, and what is said of it.

    That is why it is not run, or how what it prints begins.
    """

    page: Path
    line: int
    code: str
    reason: str | None
    printed: str | None

    def run(self, names: dict[str, Any]) -> None:
        """Run it; a traceback shows the page."""
        lines = "\n" * self.line + self.code  # so that numbers of lines are those of the page
        exec(compile(lines, str(self.page), "exec"), names)  # noqa: S102 - our own examples


def without_figures(text: str) -> list[str]:
    """Lines without what was measured; one that is a number alone was not."""
    lines = (line if line.isdecimal() else MEASURED.sub("#", line) for line in text.splitlines())
    return list(lines)


def examples(page: Path) -> Iterator[Example]:
    text = page.read_text("utf-8")
    for found in BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("code"))
        yield Example(page, line, found["code"], found["reason"], found["printed"])


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder that relative paths are below, in Python and in the JVM."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    hadoop = jvm.org.apache.hadoop.fs
    files = hadoop.FileSystem.getLocal(spark.sparkContext._jsc.hadoopConfiguration())
    before = files.getWorkingDirectory()
    monkeypatch.chdir(tmp_path)
    files.setWorkingDirectory(hadoop.Path(str(tmp_path)))
    yield tmp_path
    files.setWorkingDirectory(before)


def pages_with_examples() -> list[str]:
    pages = [page for page in PAGES if any(each.reason is None for each in examples(page))]
    return [str(page.relative_to(ROOT)) for page in pages]


@pytest.mark.parametrize("page", pages_with_examples())
@pytest.mark.usefixtures("folder")
def test_examples_run(page: str, spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "__main__", "spark": spark}
    if prepared := BEFOREHAND.get(page):
        names |= prepared(spark)
    try:
        for example in examples(ROOT / page):
            if example.reason is None:
                capsys.readouterr()
                example.run(names)
                if example.printed is not None:
                    shown = without_figures(example.printed)
                    assert without_figures(capsys.readouterr().out)[: len(shown)] == shown
    finally:
        if isinstance(rules := names.get("rules"), eddyline.StandingQueries):
            rules.stop()
        eddyline.disable(spark)  # what the guide switches on is for all tests' session


def test_few_examples_are_not_run() -> None:
    marked = [each for page in PAGES for each in examples(page) if each.reason is not None]
    assert 0 < len(marked) <= MOST_NOT_RUN


def test_the_first_page_says_what_its_example_prints() -> None:
    (example,) = examples(ROOT / "docs" / "index.md")
    assert example.printed is not None
    assert len(example.code.splitlines()) == 10


def test_every_block_of_python_is_found() -> None:
    for page in PAGES:
        assert page.read_text("utf-8").count("```python\n") == len(list(examples(page)))
