"""What the sections of the HTML report are made of: tables, texts and times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from eddyline.reports.wording import duration, one_line, shortened

TEXT_MOST = 90
"""Letters of a predicate's text; the rest is shown on hovering."""

BAR_TEXT_MOST = 40
"""The same beside a bar."""

WIDTH = 900.0
"""Pixels of a picture."""


def table(names: Sequence[str], rows: Iterable[Sequence[str]], *, words: Sequence[int]) -> str:
    """Return a table from cells of HTML; columns ``words`` are text, the others figures."""
    css = [' class="w"' if column in words else "" for column in range(len(names))]
    head = "".join(
        f'<th scope="col"{look}>{name}</th>' for name, look in zip(names, css, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td{look}>{cell}</td>" for cell, look in zip(row, css, strict=True))
        + "</tr>"
        for row in rows
    )
    inner = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="wide">{inner}</div>'


def tiles(contents: Iterable[tuple[str, str, str]]) -> str:
    """Return a row of tiles: a name, a figure and a note each, as HTML."""
    return (
        '<dl class="tiles">'
        + "".join(
            f"<div><dt>{name}</dt><dd><b>{value}</b><span>{note}</span></dd></div>"
            for name, value, note in contents
        )
        + "</dl>"
    )


def text(words: str, limit: int = TEXT_MOST) -> str:
    """Return a text, cut where it is long and whole on hovering."""
    whole, short = one_line(words), shortened(words, limit)
    hint = "" if whole == short else f' title="{escape(whole)}"'
    return f"<span{hint}>{escape(short)}</span>"


def time(seconds: float) -> str:
    """Return a time."""
    return units(duration(seconds))


def units(words: str) -> str:
    """Return a text with the signs for units that a page can show."""
    return words.replace(" us", " µs")
