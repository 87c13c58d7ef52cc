"""Progress in a notebook."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

import eddyline
from eddyline.monitor.progress_lines import ProgressLines
from eddyline.monitor.screen import _Notebook
from eddyline.watching.watch import _screen
from tests.monitor.test_progress_lines import QUERY


class Shown:
    """What is displayed, and what becomes of it."""

    def __init__(self) -> None:
        self.outputs: list[str] = []

    def display(self, shown: object, **_options: object) -> Shown:
        self.outputs.append(str(shown))
        return self

    def update(self, shown: object) -> None:
        self.outputs[0] = str(shown)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """What a notebook shows; this is one now."""
    shown = Shown()
    display = ModuleType("IPython.display")
    monkeypatch.setattr(display, "display", shown.display, raising=False)
    monkeypatch.setattr(display, "HTML", str, raising=False)
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    return shown


def test_one_output_is_written_over_and_no_other_is_made(shown: Shown) -> None:
    assert Console().is_jupyter
    notebook = _Notebook()
    for _ in range(3):
        notebook.show(ProgressLines([QUERY], 110.0))
    (output,) = shown.outputs
    assert "count at a_long_name_of_a_script.py:123" in output
    assert "3/12" in output
    notebook.clear()
    assert shown.outputs == [""]


def test_who_watches_has_one_output_too(shown: Shown) -> None:
    console = Console()
    assert console.is_jupyter
    with _screen(console) as show:
        show("one")
        show("two & three")
    assert shown.outputs == ['<pre style="line-height:1.3">two &amp; three\n</pre>']


def test_what_is_no_console(spark: SparkSession) -> None:
    with pytest.raises(TypeError, match=r"rich\.console\.Console, not 'stderr'"):
        eddyline.progress(spark, console="stderr")  # type: ignore[arg-type]
