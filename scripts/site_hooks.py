"""What MkDocs does not do by itself: roles in docstrings."""

from __future__ import annotations

import re

ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):<code>(~?)([\w.]+)</code>")
"""A reference of a docstring, as ``:class:`~eddyline.errors.EddylineError```, once it is HTML."""


def on_page_content(html: str, **_: object) -> str:
    """Show a role as the name that it refers to."""
    return ROLE.sub(lambda found: f"<code>{shown(found[1], found[2])}</code>", html)


def shown(tilde: str, name: str) -> str:
    """Return what a reader sees of a name: its last part, where a tilde asks for that.

    >>> shown("~", "eddyline.errors.EddylineError"), shown("", "eddyline.errors")
    ('EddylineError', 'eddyline.errors')
    """
    return name.rpartition(".")[2] if tilde else name
