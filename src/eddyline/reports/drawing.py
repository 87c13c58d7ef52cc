"""Writing SVG: elements, text, the palette, and what makes a picture accessible.

Colours are written as plain attributes, so that a picture looks right wherever it is shown, and as
classes, so that a page around it can override them (CSS wins over attributes): ``ink``, ``muted``,
``grid``, ``paper``, ``rest``, and ``c0`` to ``c5`` for the series.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2s
from html import escape

from eddyline.reports.wording import one_line, shortened

# On light and on dark paper. The series have Okabe and Ito's colours, distinguishable with every
# common colour blindness, without yellow and black, which vanish on white and on dark paper.
COLOURS = {
    "ink": ("#1b1f24", "#e6e9ed"),
    "muted": ("#59636e", "#9aa4af"),
    "grid": ("#dde1e6", "#343a42"),
    "paper": ("#ffffff", "#15181c"),
    "tile": ("#f4f6f8", "#1f242a"),
    "rest": ("#b4b9c0", "#5b636d"),  # "other" series, and what did not happen
    "c0": ("#0072b2", "#3d9bd6"),
    "c1": ("#d55e00", "#e8772a"),
    "c2": ("#009e73", "#1fb58b"),
    "c3": ("#cc79a7", "#d68bb5"),
    "c4": ("#e69f00", "#edb03a"),
    "c5": ("#56b4e9", "#8accf2"),
}
PALETTE = tuple(COLOURS[f"c{series}"][0] for series in range(6))
REST, INK, MUTED, GRID, PAPER = (
    COLOURS[name][0] for name in ("rest", "ink", "muted", "grid", "paper")
)

FONT = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
FONT_SIZE = 13.0
TITLE_SIZE = 15.0
LINE = 19.0  # from one line of text to the next
NARROW = 500.0  # below this width what stands beside a plot in other pictures stands below it
_BOLD = 1.1  # how much wider bold letters are
_MEAN_GLYPH = 0.56  # width of a mean letter in these fonts, as a part of the font size


def text_width(text: str, size: float = FONT_SIZE) -> float:
    """Estimate the width of a text in pixels, rather too wide than too narrow."""
    return len(text) * size * _MEAN_GLYPH


def fitted(text: str, width: float, size: float = FONT_SIZE) -> str:
    """Cut a text so that its estimated width is at most ``width`` pixels."""
    return shortened(text, max(int(width / (size * _MEAN_GLYPH)), 1))


def wrapped(text: str, width: float, size: float = FONT_SIZE, most: int = 3) -> list[str]:
    """Break a text into at most ``most`` lines of an estimated ``width`` in pixels.

    At blanks, and within words that are long. What does not fit is cut.

    >>> wrapped("flights -> planes -> ports", 120.0)
    ['flights ->', 'planes -> ports']
    >>> wrapped("flights -> planes -> ports", 120.0, most=1)
    ['flights -> plan…']
    """
    lines: list[str] = []
    rest = one_line(text)
    letters = max(int(width / (size * _MEAN_GLYPH)), 1)
    while len(rest) > letters and len(lines) < most - 1:
        end = rest.rfind(" ", 0, letters + 1)
        if end < letters / 2:
            end = letters
        lines.append(rest[:end])
        rest = rest[end:].lstrip()
    return [*lines, fitted(rest, width, size)]


def colour(series: int | None) -> tuple[str, str]:
    """Class and colour of a series by its number, which wraps around; None is the rest."""
    if series is None:
        return "rest", REST
    series %= len(PALETTE)
    return f"c{series}", PALETTE[series]


def number(value: float) -> str:
    """Write a coordinate with two decimals at most."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


@dataclass(slots=True)
class Drawing:
    """A picture of ``width`` by ``height`` pixels that elements are added to, back to front.

    ``title`` names it and ``description`` says what it shows, for those who cannot see it.
    """

    width: float
    height: float
    title: str
    description: str
    _parts: list[str] = field(default_factory=list)

    def rectangle(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        look: tuple[str, str],
        hint: str = "",
    ) -> None:
        """Add a filled rectangle; ``look`` is class and colour, ``hint`` is shown on hovering."""
        css, fill = look
        place = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
        self._parts.append(_hinted(f'<rect class="f-{css}" fill="{fill}" {place}', "rect", hint))

    def area(
        self, points: list[tuple[float, float]], look: tuple[str, str], hint: str = ""
    ) -> None:
        """Add a filled shape, edged by a thin line of paper that parts it from its neighbours."""
        css, fill = look
        head = (
            f'<path class="f-{css} edge" fill="{fill}" stroke="{PAPER}" stroke-width="0.75" '
            f'd="{_path([points])}Z"'
        )
        self._parts.append(_hinted(head, "path", hint))

    def line(
        self,
        pieces: list[list[tuple[float, float]]],
        look: tuple[str, str],
        *,
        thickness: float = 1.0,
        dash: str = "",
        hint: str = "",
    ) -> None:
        """Add a line, possibly broken into several pieces; ``dash`` is SVG's dash array."""
        css, stroke = look
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        head = (
            f'<path class="s-{css}" fill="none" stroke="{stroke}" '
            f'stroke-width="{number(thickness)}" stroke-linejoin="round"{dashes} '
            f'd="{_path(pieces)}"'
        )
        self._parts.append(_hinted(head, "path", hint))

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        anchor: str = "start",
        size: float = FONT_SIZE,
        muted: bool = False,
        bold: bool = False,
        hint: str = "",
    ) -> None:
        """Add a text whose baseline is at ``y``; ``anchor`` is "start", "middle" or "end"."""
        css, fill = ("muted", MUTED) if muted else ("ink", INK)
        weight = ' font-weight="600"' if bold else ""
        inner = f"<title>{_escaped(hint)}</title>" if hint else ""
        self._parts.append(
            f'<text class="f-{css}" fill="{fill}" x="{number(x)}" y="{number(y)}" '
            f'font-size="{number(size)}" text-anchor="{anchor}"{weight}>'
            f"{inner}{_escaped(text)}</text>"
        )

    def heading(self) -> float:
        """Add the title at the top, in as many lines as it needs; return where it ends."""
        lines = wrapped(self.title, self.width / _BOLD, TITLE_SIZE)
        for place, line in enumerate(lines):
            self.text(0, 16 + place * LINE, line, size=TITLE_SIZE, bold=True)
        return len(lines) * LINE

    def svg(self) -> str:
        """Return the picture as an ``<svg>`` element that can stand alone or inside a page."""
        body = "\n".join(self._parts)
        # Ids are global to a page. One made of the contents is the same for the
        # same picture only, so several pictures can stand on one page.
        mark = blake2s((self.title + self.description + body).encode(), digest_size=6).hexdigest()
        size = f"{number(self.width)} {number(self.height)}"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" '
            f'width="{number(self.width)}" height="{number(self.height)}" role="img" '
            f'aria-labelledby="t{mark} d{mark}" font-family="{FONT}">\n'
            f'<title id="t{mark}">{_escaped(self.title)}</title>\n'
            f'<desc id="d{mark}">{_escaped(self.description)}</desc>\n'
            f'<rect class="f-paper" fill="{PAPER}" width="100%" height="100%"/>\n'
            f"{body}\n</svg>"
        )


def _path(pieces: list[list[tuple[float, float]]]) -> str:
    return "".join("".join(_moves(piece)) for piece in pieces)


def _moves(piece: list[tuple[float, float]]) -> Iterator[str]:
    """Yield SVG's commands for a line; level and upright parts, as of steps, take half of one."""
    before: tuple[str, str] | None = None
    for x, y in ((number(x), number(y)) for x, y in piece):
        if before is None:
            yield f"M{x} {y}"
        elif before[1] == y:
            yield f"H{x}"
        elif before[0] == x:
            yield f"V{y}"
        else:
            yield f"L{x} {y}"
        before = (x, y)


def _hinted(head: str, name: str, hint: str) -> str:
    return f"{head}><title>{_escaped(hint)}</title></{name}>" if hint else f"{head}/>"


def _escaped(text: str) -> str:
    return escape(one_line(text))
