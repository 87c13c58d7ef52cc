"""What MkDocs does not do by itself: the list of decisions, and roles in docstrings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DECISIONS = "decisions/index.md"

ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):<code>(~?)([\w.]+)</code>")
"""A reference of a docstring, as ``:class:`~eddyline.errors.EddylineError```, once it is HTML."""


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:  # noqa: ANN401 - MkDocs' own
    """List the decisions on their page."""
    if page.file.src_uri != DECISIONS:
        return markdown
    folder = Path(page.file.abs_src_path).parent
    return "\n".join([markdown, "", *listed(folder)])


def listed(folder: Path) -> list[str]:
    """Return a line with a link for each decision in a folder, in their order."""
    return [
        f"- [{page.read_text('utf-8').splitlines()[0].removeprefix('# ')}]({page.name})"
        for page in sorted(folder.glob("[0-9]*.md"))
    ]


def on_page_content(html: str, **_: object) -> str:
    """Show a role as the name that it refers to."""
    return ROLE.sub(lambda found: f"<code>{shown(found[1], found[2])}</code>", html)


def shown(tilde: str, name: str) -> str:
    """Return what a reader sees of a name: its last part, where a tilde asks for that.

    >>> shown("~", "eddyline.errors.EddylineError"), shown("", "eddyline.errors")
    ('EddylineError', 'eddyline.errors')
    """
    return name.rpartition(".")[2] if tilde else name
