"""Pictures as images, for notebooks.

A notebook that its reader has not run is not trusted: Jupyter, and the pages that show notebooks,
take SVG elements out of it and leave their texts. They leave images.
"""

from __future__ import annotations

from base64 import b64encode

from eddyline.reports.drawing import COLOURS


def data_uri(svg: str) -> str:
    """Return an ``<svg>`` element as the address of an image.

    Its colours are those of a light or a dark page as the element says that shows it.
    """
    head, end, body = svg.partition(">")
    image = f"{head}{end}<style>{_STYLE}</style>{body}"
    return "data:image/svg+xml;base64," + b64encode(image.encode()).decode("ascii")


def _style() -> str:
    chosen = ((name, f"light-dark({light},{dark})") for name, (light, dark) in COLOURS.items())
    rules = (f".f-{name}{{fill:{value}}}.s-{name}{{stroke:{value}}}" for name, value in chosen)
    edge = "light-dark({},{})".format(*COLOURS["paper"])
    return f"svg{{color-scheme:light dark}}{''.join(rules)}.edge{{stroke:{edge}}}"


_STYLE = _style()
