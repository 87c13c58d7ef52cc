"""Draws the site's pages of the notebooks in ``docs/notebooks``: their cells and what these show.

A notebook is JSON, and its cells are Markdown, code, texts and HTML: this file is what we need of
mkdocs-jupyter, which would bring nbconvert, nbclient and all that these need.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs" / "notebooks"

TEXT: Final = "```{ .text .shown }"
"""How a fence of what a cell shows begins."""


def page(notebook: Mapping[str, Any], file: str) -> str:
    """Return a notebook as Markdown, with a link to its file below the title."""
    title, *parts = (part for cell in notebook["cells"] for part in drawn(cell))
    heading, _, rest = title.partition("\n")
    link = f'[Download this notebook]({file}){{ download="{file}" }}'
    head = [f"<!-- drawn by scripts/draw from {file} -->", heading, link, rest.strip("\n")]
    return "\n\n".join([*head, *parts]) + "\n"


def drawn(cell: Mapping[str, Any]) -> Iterator[str]:
    """Give the parts of a cell as Markdown."""
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        data = output.get("data", {})
        if html := "".join(data.get("text/html", ())):
            yield f'<div class="shown" data-search-exclude>\n{html.strip()}\n</div>'
        else:
            text = "".join(output.get("text") or data["text/plain"]).rstrip("\n")
            yield f"{TEXT}\n{text}\n```"


def pages() -> dict[Path, str]:
    """Return the pages as they should be."""
    return {
        path.with_suffix(".md"): page(json.loads(path.read_text("utf-8")), path.name)
        for path in sorted(FOLDER.glob("*.ipynb"))
    }
