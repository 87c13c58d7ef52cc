"""On a narrow terminal names stay and figures go."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from eddyline.reports.terminal_tables import FittingTable


def shown(width: int, name: str = "is_fraud(text)") -> list[str]:
    table = FittingTable(["#", "Predicate"], ["Seen", "TRUE", "Time"])
    table.add_row("1", name, "1,234,567", "20.0 %", "12.3 ms")
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    head, _, row = console.file.getvalue().splitlines()
    return [" ".join(head.split()), " ".join(row.split())]


@pytest.mark.parametrize(
    ("width", "figures"),
    [
        (28, 1),
        (35, 1),
        (36, 2),
        (44, 2),
        (45, 3),
        (200, 3),
    ],
)
def test_figures_go_from_the_right(width: int, figures: int) -> None:
    head, row = shown(width)
    assert head.split() == ["#", "Predicate", "Seen", "TRUE", "Time"][: 2 + figures]
    assert row.endswith(("1,234,567", "20.0 %", "12.3 ms")[figures - 1])
    assert ("is_fraud(text)" in row) == (width >= 28)


def test_long_names_get_what_is_left() -> None:
    name = "a_function_with_a_long_name(of, many, arguments)"
    assert name in shown(200, name)[1]
    cut = shown(54, name)
    assert cut[0] == "# Predicate Seen TRUE Time"
    assert cut[1].startswith("1 a_function_with_a_l")
    assert "…" in cut[1]


def test_a_row_has_a_cell_for_each_column() -> None:
    table = FittingTable(["Name"], ["Rows"])
    with pytest.raises(ValueError, match=r"3 cells for 1 \+ 1"):
        table.add_row("a", "b", "c")
