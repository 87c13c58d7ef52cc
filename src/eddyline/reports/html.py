"""The report as HTML: a fragment for a notebook, or a page that needs nothing else.

Whoever imports this module waits for jinja2, some 60 ms, so it is imported when a
page is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from jinja2 import Environment, PackageLoader, StrictUndefined

from eddyline.reports.asked_tables import AskedTable
from eddyline.reports.block_report import BlockReport
from eddyline.reports.called_functions import CalledFunction, in_all
from eddyline.reports.drawing import COLOURS
from eddyline.reports.html_tables import asked_columns, called_columns, left_columns
from eddyline.reports.html_view import block_view
from eddyline.reports.images import data_uri
from eddyline.reports.plain_spark import compared
from eddyline.reports.wording import CALLED_AT_THE_DRIVER, LOOKED_UP, NO_BLOCKS, one_line, shortened

_COLOURS = "".join(f"--{name}:light-dark({a},{b});" for name, (a, b) in COLOURS.items())

_TEXT_MOST = 90  # letters of a predicate's text; the rest is shown on hovering


def page(
    blocks: Sequence[BlockReport],
    left: Sequence[tuple[str, str]],
    called: Sequence[CalledFunction] = (),
    asked: Sequence[AskedTable] = (),
) -> str:
    """Return a whole HTML document."""
    return _rendered("page.html.j2", blocks, left, called, asked, images=False)


def fragment(
    blocks: Sequence[BlockReport],
    left: Sequence[tuple[str, str]],
    called: Sequence[CalledFunction] = (),
    asked: Sequence[AskedTable] = (),
) -> str:
    """Return the report as one element that brings its style along.

    Its pictures are images, which stay in a notebook that is not trusted; in a page they are part
    of it and say more on hovering.
    """
    return _rendered("fragment.html.j2", blocks, left, called, asked, images=True)


def _rendered(
    template: str,
    blocks: Sequence[BlockReport],
    left: Sequence[tuple[str, str]],
    called: Sequence[CalledFunction],
    asked: Sequence[AskedTable],
    *,
    images: bool,
) -> str:
    return _TEMPLATES.get_template(template).render(
        compared=compared(blocks),
        blocks=[block_view(block) for block in blocks],
        left=left_columns(left) if left else (),
        called=called_columns(called) if called else (),
        called_heading=CALLED_AT_THE_DRIVER,
        spent=in_all(called),
        asked=asked_columns(asked) if asked else (),
        asked_heading=LOOKED_UP,
        no_blocks=NO_BLOCKS,
        images=images,
        colours=_COLOURS,
    )


def _environment() -> Environment:
    templates = Environment(
        loader=PackageLoader("eddyline.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters["data_uri"] = data_uri
    templates.filters["one_line"] = one_line
    templates.filters["shortened"] = partial(shortened, limit=_TEXT_MOST)
    return templates


_TEMPLATES = _environment()
