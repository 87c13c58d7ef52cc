"""What changes below a notebook's cell while this runs."""

from __future__ import annotations

import html
from io import StringIO
from typing import Final

from rich.console import Console, RenderableType

WIDTH: Final = 100
"""Columns of the text."""


class NotebookOutput:
    """One output of a cell, which is written over whenever there is something new.

    Rich would make another one each time, and asks for widgets where it is to change one.
    """

    def __init__(self) -> None:
        from IPython.display import (  # type: ignore[import-not-found]  # noqa: PLC0415 - of notebooks only
            HTML,
            display,
        )

        self._html = HTML
        self._handle = display(HTML(""), display_id=True)
        self._shown = False

    def show(self, shown: RenderableType) -> None:
        """Show this, in place of what was there."""
        self._shown = True
        written = StringIO()
        console = Console(file=written, width=WIDTH, color_system=None, force_jupyter=False)
        console.print(shown)
        text = html.escape(written.getvalue())
        self._handle.update(self._html(f'<pre style="line-height:1.3">{text}</pre>'))

    def clear(self) -> None:
        """Show nothing any more."""
        if self._shown:
            self._handle.update(self._html(""))
            self._shown = False
