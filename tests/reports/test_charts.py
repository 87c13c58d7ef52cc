"""Charts are well-formed SVG that draws every value where it belongs and says it in words."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from eddyline.reports.charts import Band, Bar, BarPart, Mark, bar_chart, share_chart
from eddyline.reports.drawing import PALETTE, REST, text_width

SVG = "{http://www.w3.org/2000/svg}"


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)  # noqa: S314 - our own text


def texts(svg: str) -> list[str]:
    """The texts that are seen, without those shown on hovering."""
    return [
        (node[-1].tail if len(node) else node.text) or "" for node in parsed(svg).iter(f"{SVG}text")
    ]


def corners(path: ET.Element) -> list[tuple[float, float]]:
    """The corners of a path of straight lines; each command gives both numbers, or one."""
    found: list[tuple[float, float]] = []
    for command, first, second in re.findall(
        r"([MLHV])(-?[\d.]+)(?: (-?[\d.]+))?", path.attrib["d"]
    ):
        x, y = found[-1] if found else (0.0, 0.0)
        match command:
            case "H":
                found.append((float(first), y))
            case "V":
                found.append((x, float(first)))
            case _:
                found.append((float(first), float(second)))
    return found


def lines_of(svg: str, hint: str) -> list[ET.Element]:
    return [
        node
        for node in parsed(svg).iter(f"{SVG}path")
        if any(child.text == hint for child in node.iter(f"{SVG}title"))
    ]


def test_charts_without_data_are_charts() -> None:
    for svg in (
        bar_chart([], [BarPart("p")], "T", "x"),
        bar_chart([Bar("b", (0.0,))], [BarPart("p")], "T", "x"),
        share_chart([], (0.0, 1.0), "T", "x"),
    ):
        assert "T" in texts(svg)


def test_texts_are_escaped() -> None:
    evil = '<script>alert("1")</script> & \x00 \x1b'
    for svg in (
        bar_chart([Bar(evil, (1.0,), evil, evil)], [BarPart(evil), BarPart(evil)][:1], evil, evil),
        share_chart(
            [Band(evil, (1.0,), hint=evil)],
            (0.0, 1.0),
            evil,
            evil,
            evil,
            marks=[Mark(0.5, evil, evil)],
        ),
    ):
        assert "<script" not in svg
        names = {node.tag.removeprefix(SVG) for node in parsed(svg).iter()}
        assert names <= {"svg", "title", "desc", "rect", "path", "text"}


def test_a_picture_says_what_it_shows() -> None:
    svg = share_chart([Band("one", (1.0,))], (0.0, 1.0), "Title", "x", description="It is all.")
    root = parsed(svg)
    assert root.attrib["role"] == "img"
    ids = root.attrib["aria-labelledby"].split()
    named = {node.attrib["id"]: node.text for node in root.iter() if "id" in node.attrib}
    assert [named[mark] for mark in ids] == ["Title", "It is all."]
    other = parsed(share_chart([Band("two", (1.0,))], (0.0, 1.0), "Title", "x"))
    assert other.attrib["aria-labelledby"] != root.attrib["aria-labelledby"]


def test_a_wide_legend_and_one_in_a_narrow_picture_stand_below_the_plot_uncut() -> None:
    short, long = "1 -> 2", " -> ".join(f"table_{number}" for number in range(8))
    edges = (0.0, 1.0)

    def places(name: str, width: float) -> tuple[list[str], list[float], list[float], float]:
        svg = parsed(share_chart([Band(name, (1.0,))], edges, "T", "x", width=width))
        shown = [node for node in svg.iter(f"{SVG}text") if any(c.text == name for c in node)]
        lines = [node[-1].tail or "" for node in shown]
        plot = lines_of(ET.tostring(svg, "unicode"), name)[0]
        bottom = max(y for _, y in corners(plot))
        lefts, tops = ([float(node.attrib[key]) for node in shown] for key in "xy")
        assert max(tops) < float(svg.attrib["height"])
        return lines, lefts, [top - bottom for top in tops], max(x for x, _ in corners(plot))

    lines, lefts, below, right = places(short, 900.0)
    assert lines == [short]
    assert lefts[0] > right
    assert below[0] < 0
    lines, lefts, below, right = places(short, 360.0)
    assert lefts[0] < right
    assert below[0] > 0
    assert right > 340  # the plot has the room that the legend had
    for width, number in ((900.0, 1), (360.0, 2)):
        lines, lefts, below, _ = places(long, width)
        assert " ".join(lines) == long
        assert len(lines) == number
        assert min(below) > 0
        assert all(
            text_width(line) + left <= width for line, left in zip(lines, lefts, strict=True)
        )


def test_labels_stand_over_their_bars_in_a_narrow_picture_and_no_line_crosses_them() -> None:
    name = "a_function_with_a_long_name(of_many, arguments) > 0.5"
    bars = [Bar(name, (1.0, 3.0), "75 % spared"), Bar("short", (2.0, 0.0))]
    svg = bar_chart(
        bars, [BarPart("done"), BarPart("spared")], "A title of many words " * 3, "x", width=360
    )
    assert " ".join(texts(svg)).count(name) == 1
    root = parsed(svg)
    labels = [node for node in root.iter(f"{SVG}text") if any(c.text == name for c in node)]
    assert len(labels) == 2
    upright = [
        (float(top), float(bottom))
        for path in root.iter(f"{SVG}path")
        for top, bottom in re.findall(r"M[\d.]+ ([\d.]+)V([\d.]+)", path.attrib["d"])
    ]
    assert upright
    for label in labels:
        baseline = float(label.attrib["y"])
        assert not any(top < baseline < bottom for top, bottom in upright)
    (first,) = (n for n in root.iter(f"{SVG}rect") if any(c.text == f"{name}, done: 1" for c in n))
    assert float(first.attrib["y"]) > max(float(label.attrib["y"]) for label in labels)
    assert max(float(node.attrib["y"]) for node in root.iter(f"{SVG}text")) < float(
        root.attrib["height"]
    )


def test_bands_fill_the_whole_height_and_blank_bins_stay_blank() -> None:
    bands = [
        Band("low", (0.25, 0.0, 0.5)),
        Band("high", (0.75, 0.0, 0.5), rest=True),
    ]
    svg = share_chart(bands, (0.0, 1.0, 2.0, 3.0), "T", "x")
    low, high = (lines_of(svg, name)[0] for name in ("low", "high"))
    assert low.attrib["fill"] == PALETTE[0]
    assert high.attrib["fill"] == REST
    ys = {y for _, y in corners(low) + corners(high)}
    top, bottom = min(ys), max(ys)
    height = bottom - top
    # Edges by x: in the blank middle bin both bands are flat on the floor.
    xs = sorted({x for x, _ in corners(low)})
    middle = (xs[1], xs[2])
    flat = [corner for corner in corners(high) if corner[0] in middle and corner[1] == bottom]
    assert len(flat) >= 2
    assert min(y for x, y in corners(low) if x == xs[0]) == pytest.approx(bottom - height / 4)
    assert min(y for x, y in corners(high) if x == xs[3]) == pytest.approx(top)


def test_the_legend_stands_in_the_order_of_the_stack() -> None:
    bands = [Band(name, (0.3,)) for name in ("bottom", "middle", "top")]
    names = [
        text
        for text in texts(share_chart(bands, (0.0, 1.0), "T", "x"))
        if text in ("bottom", "middle", "top")
    ]
    assert names == ["top", "middle", "bottom"]


def test_marks_are_all_drawn_but_their_labels_do_not_overlap() -> None:
    marks = [Mark(x / 100, str(x), f"hint {x}") for x in range(40, 60)]
    svg = share_chart([Band("b", (1.0,))], (0.0, 1.0), "T", "x", marks=marks)
    assert sum(len(lines_of(svg, mark.hint)) for mark in marks) == 20
    labels = [text for text in texts(svg) if text.isdigit() and 40 <= int(text) < 60]
    assert labels[0] == "40"
    assert 2 <= len(labels) < 20


def test_stacked_bars_follow_each_other_and_grouped_ones_start_at_zero() -> None:
    bars = [Bar("a", (30.0, 70.0)), Bar("b", (10.0, 0.0))]
    parts = [BarPart("done"), BarPart("spared", rest=True)]

    def boxes(svg: str) -> dict[str, dict[str, float]]:
        found = {}
        for node in parsed(svg).iter(f"{SVG}rect"):
            for hint in node.iter(f"{SVG}title"):
                found[str(hint.text)] = {
                    key: float(node.attrib[key]) for key in ("x", "y", "width", "height")
                }
        return found

    stacked = boxes(bar_chart(bars, parts, "T", "rows"))
    done, spared = stacked["a, done: 30"], stacked["a, spared: 70"]
    assert spared["x"] == pytest.approx(done["x"] + done["width"], abs=0.02)
    assert spared["y"] == done["y"]
    assert spared["width"] / done["width"] == pytest.approx(7 / 3, rel=0.001)
    assert stacked["b, done: 10"]["width"] == pytest.approx(done["width"] / 3, abs=0.02)
    grouped = boxes(bar_chart(bars, parts, "T", "rows", stacked=False))
    done, spared = grouped["a, done: 30"], grouped["a, spared: 70"]
    assert spared["x"] == done["x"]
    assert spared["y"] >= done["y"] + done["height"]
