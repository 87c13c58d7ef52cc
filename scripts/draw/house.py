"""Draws the rooms of ``src/eddyline`` as a picture, from the contract that `make lint` checks."""

from __future__ import annotations

import ast
import tomllib
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]

PICTURE: Final = ROOT / "docs" / "pictures" / "house.svg"

CONTRACT: Final = "every-room-has-its-place"

WIDTH: Final = 1000
HEIGHT: Final = 62
GAP: Final = 10
LETTER: Final = 6.2
"""Pixels of a letter of a room's purpose, on average."""


_TOP: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
    'aria-label="{label}" '
    "font-family=\"system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\">\n"
    '<rect width="{width}" height="{height}" fill="#ffffff"/>'
)

_ROOM: Final = (
    '<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}" rx="8" fill="#eff6ff" '
    'stroke="#60a5fa" stroke-width="1.4"/>'
)

_NAME: Final = (
    '<text x="{x:.1f}" y="{y}" font-size="14" font-weight="600" fill="#1e293b" '
    'text-anchor="middle">{name}</text>'
)

_LINE: Final = (
    '<text x="{x:.1f}" y="{y}" font-size="11.5" fill="#475569" text-anchor="middle">{line}</text>'
)


def layers() -> list[list[str]]:
    """Return the rooms from the top down, those side by side that do not know one another."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (contract,) = [each for each in contracts if each["id"] == CONTRACT]
    rooms = [[each.strip() for each in layer.split("|")] for layer in contract["layers"]]
    folders = [[each for each in layer if _room(each).is_dir()] for layer in rooms]
    return [layer for layer in folders if layer]


def purpose(room: str) -> str:
    """Return the first line of a room's docstring."""
    tree = ast.parse((_room(room) / "__init__.py").read_text("utf-8"))
    return (ast.get_docstring(tree) or "").partition("\n")[0].rstrip(".")


def picture() -> str:
    """Return the picture as SVG."""
    rows = layers()
    height = len(rows) * (HEIGHT + GAP) + GAP
    names = "; above ".join(", ".join(row) for row in rows)
    label = f"The rooms of the house, from the top down: {names}"
    parts = [_TOP.format(width=WIDTH, height=height, label=label)]
    for number, row in enumerate(rows):
        width = (WIDTH - GAP) / len(row) - GAP
        for place, room in enumerate(row):
            x = GAP + place * (width + GAP)
            parts += _box(room, x, GAP + number * (HEIGHT + GAP), width)
    return "\n".join([*parts, "</svg>", ""])


def _box(room: str, x: float, y: float, width: float) -> list[str]:
    lines = wrap(purpose(room), int((width - 16) / LETTER))[:2]
    middle = x + width / 2
    top = y + (26 if len(lines) < 2 else 20)  # noqa: PLR2004 - lines of text
    parts = [_ROOM.format(x=x, y=y, width=width, height=HEIGHT)]
    parts.append(_NAME.format(x=middle, y=top, name=escape(room)))
    for number, line in enumerate(lines):
        parts.append(_LINE.format(x=middle, y=top + 17 + 14 * number, line=escape(line)))
    return parts


def _room(name: str) -> Path:
    return ROOT / "src" / "eddyline" / name


def pages() -> dict[Path, str]:
    """Return the picture as it should be."""
    return {PICTURE: picture()}
