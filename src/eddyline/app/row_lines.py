"""Rows as lines of text, much as ``DataFrame.show`` prints them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence

from pyspark.sql import Row
from pyspark.sql.types import NumericType, StructType
from rich.cells import cell_len, set_cell_size

_NULL = "NULL"
_GAP = "  "
_WIDEST = 40  # of a column on a terminal


def table_lines(schema: StructType, rows: Sequence[Row], width: int | None) -> Iterator[str]:
    """Yield a heading, a rule, and one line a row.

    ``width`` is that of the terminal: long values are cut, and columns that do
    not fit side by side follow below. Without a width nothing is cut, and each
    row is one line.
    """
    texts = [[text_of(value) for value in row] for row in rows]
    names = [text_of(name) for name in schema.names]
    columns = list(zip(names, *texts, strict=True))
    widths = [max(map(cell_len, column)) for column in columns]
    groups = [list(range(len(widths)))]
    if width is not None:
        # A long text is not to push out all other columns, but a heading is left whole.
        widths = [
            min(widest, max(_WIDEST, cell_len(name)), width)
            for widest, name in zip(widths, names, strict=True)
        ]
        groups = list(_side_by_side(widths, width))
    right = [isinstance(field.dataType, NumericType) for field in schema.fields]

    def line(cells: Sequence[str], group: Sequence[int]) -> str:
        parts = (_fitted(cells[place], widths[place], right=right[place]) for place in group)
        return _GAP.join(parts).rstrip()

    for number, group in enumerate(groups):
        if number:
            yield ""
        yield line(names, group)
        yield _GAP.join("-" * widths[place] for place in group)
        for row in texts:
            yield line(row, group)


def text_of(value: object) -> str:
    """Return a value as one line of text, as Spark shows it.

    >>> text_of(None), text_of(True), text_of(b"ab"), text_of([1, None]), text_of({"a": 1.5})
    ('NULL', 'true', '[61 62]', '[1, NULL]', '{a -> 1.5}')
    """
    match value:
        case None:
            text = _NULL
        case bool():
            text = str(value).lower()
        case bytes() | bytearray():
            text = f"[{value.hex(' ').upper()}]"
        case dt.datetime():
            text = value.isoformat(sep=" ")
        case tuple():  # a struct
            text = f"{{{', '.join(map(text_of, value))}}}"
        case list():
            text = f"[{', '.join(map(text_of, value))}]"
        case dict():
            pairs = (f"{text_of(key)} -> {text_of(item)}" for key, item in value.items())
            text = f"{{{', '.join(pairs)}}}"
        case _:
            text = "".join(map(_printable, str(value)))
    return text


def _printable(sign: str) -> str:
    r"""Return the escape of a sign that would break the line or steer the terminal.

    >>> _printable("a"), _printable("\n"), _printable("\x1b")
    ('a', '\\n', '\\x1b')
    """
    return sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii")


def _side_by_side(widths: Sequence[int], width: int) -> Iterator[list[int]]:
    """Yield the columns in groups that fit into the width, each of one column at least.

    >>> list(_side_by_side([5, 5, 9], 12))
    [[0, 1], [2]]
    """
    group: list[int] = []
    used = 0
    for place, column in enumerate(widths):
        if group and used + len(_GAP) + column > width:
            yield group
            group, used = [], 0
        used += column + (len(_GAP) if group else 0)
        group.append(place)
    if group:
        yield group


def _fitted(text: str, width: int, *, right: bool) -> str:
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, width - 1) + "…"
    return " " * (width - length) + text if right else text + " " * (width - length)
