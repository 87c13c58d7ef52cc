"""Runs the notebooks in ``docs/notebooks`` and stores what their cells show.

Run as ``python scripts/run_notebooks.py``, or with the names of some of them; then ``scripts/draw``
makes pages of them. Each runs in a process of its own, with a Spark that has just started.

A notebook is JSON, and its cells need of IPython only how a result shows itself and a running event
loop. This is less than a hundred lines here; IPython, a kernel and nbclient would be some thirty
more pinned packages. So magics (``%pip``) and ``display`` are not known: a cell shows its last
expression.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import inspect
import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType
from typing import Any, Final

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "notebooks"


def main() -> int:
    """Run the notebooks and write their outputs into them."""
    names = [path.stem for path in sorted(FOLDER.glob("*.ipynb"))]
    parser = argparse.ArgumentParser(
        "run_notebooks", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("names", nargs="*", help=f"some of: {', '.join(names)} (default: all)")
    chosen = parser.parse_args().names or names
    if unknown := set(chosen) - set(names):
        parser.error(f"no {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    if len(chosen) > 1:
        for name in chosen:
            subprocess.run([sys.executable, __file__, name], check=True)
        return 0
    path = FOLDER / f"{chosen[0]}.ipynb"
    notebook = json.loads(path.read_text("utf-8"))
    with TemporaryDirectory() as folder, chdir(folder):
        outputs = run(notebook, path.name)
    path.write_text(with_outputs(notebook, outputs), "utf-8")
    print(f"{path.name}: {len(outputs)} cells, {path.stat().st_size / 1024:.0f} KiB")
    return 0


def run(notebook: Mapping[str, Any], title: str) -> list[list[dict[str, Any]]]:
    """Run the code cells of a notebook in one namespace; return the outputs of each.

    What a cell raises is raised; the traceback names the cell and the ``title``.
    """
    return asyncio.run(_run(notebook, title))  # as in a kernel, a loop runs where cells do


async def _run(notebook: Mapping[str, Any], title: str) -> list[list[dict[str, Any]]]:
    names: dict[str, Any] = {"__name__": "__main__"}  # so that functions travel by value
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [
        await _run_cell("".join(cell["source"]), title, number, names)
        for number, cell in enumerate(cells, start=1)
    ]


async def _run_cell(
    source: str, title: str, number: int, names: dict[str, Any]
) -> list[dict[str, Any]]:
    place = f"{title}, In [{number}]"
    tree = ast.parse(source, place)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    printed, value = StringIO(), None
    with redirect_stdout(printed):
        await _evaluated(compile(tree, place, "exec", flags), names)
        if isinstance(last, ast.Expr):
            shown = ast.Expression(last.value)
            value = await _evaluated(compile(shown, place, "eval", flags), names)
    outputs = []
    if text := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(text)})
    if value is not None:
        result = {"data": _shown(value), "execution_count": number, "metadata": {}}
        outputs.append({**result, "output_type": "execute_result"})
    return outputs


async def _evaluated(code: CodeType, names: dict[str, Any]) -> object:
    result = eval(code, names)  # noqa: S307 - our own notebooks
    return await result if code.co_flags & inspect.CO_COROUTINE else result


def _shown(value: object) -> dict[str, list[str]]:
    """Return how a value shows itself: as text and, if it has it, as HTML."""
    as_html = getattr(value, "_repr_html_", lambda: None)()
    html = {} if as_html is None else {"text/html": _lines(as_html)}
    return {**html, "text/plain": _lines(repr(value))}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def with_outputs(notebook: Mapping[str, Any], outputs: list[list[dict[str, Any]]]) -> str:
    """Return the text of a notebook with these outputs, as Jupyter writes it."""
    cells, left = [], iter(enumerate(outputs, start=1))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            number, shown = next(left)
            cells.append({**cell, "execution_count": number, "outputs": shown})
        else:
            cells.append(cell)
    changed = {**notebook, "cells": cells}
    return json.dumps(changed, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
