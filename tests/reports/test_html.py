"""The report as a page: self-contained, escaped, complete for those who do not see pictures."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from dataclasses import dataclass, field, replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from eddyline.reports.html import fragment, page
from eddyline.reports.routing_report import RoutingReport
from tests.fresh_process import printed_lines
from tests.reports.samples import (
    LONG_TEXT,
    SAMPLES,
    TEXTS,
    away,
    drifting,
    many_orders,
    not_run,
    nothing,
    sections_of,
)

VOID = {"meta", "br"}


@dataclass
class Outline(HTMLParser):
    """Checks that elements are closed in order, and collects what a test asks for."""

    open: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    attributes: set[str] = field(default_factory=set)
    tags: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id":
                self.ids.append(value or "")
            if name == "aria-labelledby":
                self.labels += (value or "").split()

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def html_of(report: RoutingReport) -> str:
    return page(sections_of(report))


def wide(html: str) -> str:
    """The page without the pictures that take the others' places where it is narrow."""
    return re.sub(r'<div class="for-narrow" hidden><svg.*?</svg></div>', "", html, flags=re.DOTALL)


def styles(html: str) -> list[str]:
    return re.findall(r"<style>(.*?)</style>", html, re.DOTALL)


def images(html: str) -> list[ET.Element]:
    """The pictures that are images, in the order of the page."""
    found = re.findall(r"data:image/svg\+xml;base64,([\w+/=]+)", html)
    return [ET.fromstring(b64decode(each)) for each in found]  # noqa: S314 - our own


def outline(html: str) -> Outline:
    parser = Outline()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    return parser


@pytest.mark.parametrize("name", SAMPLES)
def test_pages_are_whole_and_load_nothing(name: str) -> None:
    html = html_of(SAMPLES[name]())
    found = outline(html)
    assert not {"script", "link", "img", "iframe", "object", "image", "use"} & set(found.tags)
    assert not {"src", "href", "onload", "onclick", "style"} & found.attributes
    assert "@import" not in html
    assert "url(" not in html
    assert set(re.findall(r"https?://[^\"'\s]+", html)) <= {"http://www.w3.org/2000/svg"}
    assert len(found.ids) == len(set(found.ids))
    assert set(found.labels) <= set(found.ids)
    for svg in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
        assert ET.fromstring(svg).attrib["role"] == "img"  # noqa: S314 - our own


def test_figures_and_pictures_of_a_run() -> None:
    html = wide(html_of(drifting()))
    assert html.count("<svg") == 2
    assert "Policy adaptive, seed 7; ran 2025-10-09 08:53:20 to 08:53:41 UTC" in html
    assert "<b>70.2 %</b> <span>3.36M of 4.79M</span>" in html
    assert "144 rows raised an error, 144 of them decided by another predicate" in html
    assert "2 → 1 → 3 (49.0 %)" in html
    assert "selectivity of" not in html
    assert html.count("predicate 2: selectivity 11.0 % → 79.0 %") == 3  # two marks, one label
    assert "22.0 µs" in html
    assert "96.3 % spared" in html


def test_what_was_done_where_the_driver_is() -> None:
    html = html_of(away())
    assert "<h2>Looked up at the driver</h2>" in html
    assert "register 612, database 188" in html
    assert "5,214" in html
    assert "<h2>Called at the driver</h2>" in html
    assert "Spent in all: 2.4 USD" in html
    assert "<h2>Waits for quota</h2>" in html
    assert html.count("is_spam&lt;b&gt; waited for quota, seconds: ") == 4  # twice, in both widths
    assert html.count("is_spam&lt;b&gt;: 4.50 s waited") == 2  # text and hint, where it is narrow
    unhindered = replace(away(), called=())
    assert "Waits for quota" not in html_of(unhindered)


def test_the_picture_has_a_table_in_its_place() -> None:
    html = html_of(drifting())
    (details,) = re.findall(r"<details>.*?</details>", html, re.DOTALL)
    rows = re.findall(r"<tr>.*?</tr>", details)
    cells = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in rows]
    assert cells[0][:3] == ["Order", "Rows", "Share"]
    assert len(cells[0]) == 11
    assert cells[1][0] == "2 → 1 → 3"
    assert [float(cell.rstrip("%") or 0) for cell in cells[1][3:6]] == [96.0] * 3
    for column in zip(*(row[3:] for row in cells[1:]), strict=True):
        assert sum(float(cell.rstrip("%") or 0) for cell in column) == pytest.approx(100, abs=2)


def test_texts_of_the_user_are_escaped_and_whole_on_hovering() -> None:
    html = html_of(many_orders())
    assert "<script" not in html
    assert "<b>title" not in html
    assert "Filter &lt;script&gt;alert(1)&lt;/script&gt;" in html
    whole = " ".join(LONG_TEXT.split())
    titles = [unescape(title) for title in re.findall(r'<span title="([^"]*)"', html)]
    assert titles == [whole]
    assert f"2: {whole}" in unescape(html)  # and over the bar


def test_names_that_look_like_markup_or_a_template_are_text() -> None:
    hostile = "<img src=x onerror=\"f('a')\"> & {{ 6 * 7 }} {% if %} {# #}"
    joined, filtered = SAMPLES["joined"]().blocks[0], drifting().blocks[0]
    assert joined.record is not None
    assert joined.record.join is not None
    assert filtered.record is not None
    stems = tuple(replace(stem, relation=hostile) for stem in joined.record.join.stems)
    functions = tuple(replace(each, name=hostile) for each in filtered.record.functions)
    blocks = (
        replace(
            joined,
            title=hostile,
            policy=hostile,
            layout=hostile,
            predicates=(hostile,) * 5,
            inputs=("a<i>", "b&c", "d'e\"f"),
            record=replace(joined.record, join=replace(joined.record.join, stems=stems)),
        ),
        replace(filtered, record=replace(filtered.record, functions=functions)),
        replace(filtered, predicates=(hostile,) * 3, record=None),
    )
    html = html_of(RoutingReport(blocks, ((hostile, hostile),)))
    found = outline(html)
    assert not {"img", "i"} & set(found.tags)
    assert "onerror" not in found.attributes
    # Title, policy, layout; predicates; inputs; functions; steps that did not run; left to Spark.
    cells = re.findall(r">([^<>]*)<", re.sub(r"<svg.*?</svg>", "", html, flags=re.DOTALL))
    assert sum(hostile in unescape(cell) for cell in cells) == 3 + 2 + 3 + 4 + 3 + 2
    assert "a<i> → 1 → b&c → 2 → d'e\"f" in unescape(html)


def test_six_orders_and_the_others_in_one_picture() -> None:
    html = html_of(many_orders())
    svg = re.findall(r"<svg.*?</svg>", html, re.DOTALL)[0]
    names = re.findall(r"</title>((?:\d → ){4}\d \([\d.]+ %\))</text>", svg)
    assert len(names) == 6
    assert "other orders (55.1 %)" in svg
    assert svg.count("stroke-dasharray") == 12
    assert "40 changes noticed, the largest 12" in html


def test_a_predicate_that_was_never_reached() -> None:
    html = wide(html_of(many_orders()))
    assert html.count("never reached") == 2  # in the table and beside its bar


def test_before_an_action_and_without_rows() -> None:
    html = html_of(not_run())
    assert html.count("no rows reached this block") == 2  # an action has run: the second one's
    assert "No action has run yet." in html_of(RoutingReport(not_run().blocks[:1]))
    assert html.count("<li>") == 4
    assert "<svg" not in html


def test_nothing_claimed() -> None:
    html = html_of(nothing())
    assert "No part of this query runs in an eddy." in html
    assert "f(x) &gt; 1" in html


def test_both_themes_are_there_and_the_notebook_around_is_left_alone() -> None:
    html = fragment(sections_of(drifting()))
    assert html.startswith('<div class="eddyline">')
    assert "light-dark(" in html
    style = styles(html)[0]
    for selectors in re.findall(r"([^{}]+)\{[^{}]*\}", style.replace("@media print{", "")):
        assert all(".eddyline" in selector for selector in selectors.split(","))
    assert drifting()._repr_html_().startswith('<div class="eddyline">')


@pytest.mark.parametrize("name", SAMPLES)
def test_every_picture_has_a_narrow_one_in_its_place(name: str) -> None:
    html = html_of(SAMPLES[name]())
    pairs = re.findall(
        r'<div class="for-wide">(<svg.*?</svg>)</div>\n'
        r'<div class="for-narrow" hidden>(<svg.*?</svg>)</div>',
        html,
        re.DOTALL,
    )
    assert len(pairs) * 2 == html.count("<svg")
    for pair in pairs:
        widths = [ET.fromstring(svg).attrib["width"] for svg in pair]  # noqa: S314 - our own
        assert widths == ["900", "360"]


@pytest.mark.parametrize("name", SAMPLES)
def test_in_a_notebook_pictures_are_images(name: str) -> None:
    report = SAMPLES[name]()
    html = fragment(sections_of(report))
    assert "<svg" not in html
    drawn = re.findall(r'<div class="for-\w+"[^>]*>(<svg.*?</svg>)', html_of(report), re.DOTALL)
    shown = images(html)
    assert len(shown) == len(drawn)
    for image, svg in zip(shown, drawn, strict=True):
        (style,) = (each for each in image if each.tag.endswith("style"))
        assert "color-scheme:light dark" in (style.text or "")
        used = set(re.findall(r'class="([\w-]+)', svg))
        assert {each for each in used if f".{each}{{" not in (style.text or "")} == set()
        image.remove(style)
        plain = ET.fromstring(svg)  # noqa: S314 - our own
        assert "".join(image.itertext()).split() == "".join(plain.itertext()).split()
    # What a notebook leaves that is not trusted: the wide ones, and what they show in words.
    trusted = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    assert {image.attrib["width"] for image in images(trusted)} <= {"900"}
    assert trusted.count("<img ") == len(shown) / 2 == len(re.findall(r'alt="\w[^"]+"', trusted))


def specificity(selector: str) -> tuple[int, int, int]:
    """How much a selector of the report's style sheet counts: ids, classes, elements."""
    plain = re.sub(r":where\(.*\)", "", selector)
    ids = plain.count("#")
    classes = len(re.findall(r"\.[\w-]|\[|:first-child", plain))
    elements = len(re.findall(r"(?:^|[\s>+])[a-z]", plain))
    return ids, classes, elements


def test_the_notebooks_own_rules_lose_against_those_of_the_report() -> None:
    style = styles(fragment(sections_of(drifting())))[0]
    rules = re.findall(r"([^{}]+)\{([^{}]*)\}", style)
    selectors = [one for names, _ in rules for one in names.strip().split(",")]
    # What a notebook says of lists, tables and headings names classes and elements, no ids.
    assert all(specificity(selector)[0] >= 1 for selector in selectors)
    (reset,) = (names.strip() for names, what in rules if what == "all:revert")
    others = [one for one in selectors if " " in one and one != reset]
    assert all(specificity(one) > specificity(reset) for one in others)
    # Within pictures nothing is reset, since that would end their attributes too.
    assert reset.endswith(":where(:not(svg):not(svg *))")


def test_writing_a_page(tmp_path: Path) -> None:
    target = drifting().to_html(str(tmp_path / "report.html"))
    assert target.read_text(encoding="utf-8") == html_of(drifting())
    with pytest.raises(OSError, match="missing"):
        drifting().to_html(tmp_path / "missing" / "report.html")


def test_the_page_is_small() -> None:
    assert len(html_of(many_orders())) < 80_000


def test_a_report_of_one_record_is_the_same_every_time() -> None:
    assert html_of(drifting()) == html_of(drifting())
    assert json.dumps(drifting().to_dict()) == json.dumps(drifting().to_dict())
    assert TEXTS[0] in unescape(html_of(drifting()))


def test_only_pages_need_jinja2() -> None:
    code = (
        "import sys, eddyline.reports.routing_report, eddyline.planner.adapt\n"
        "print('jinja2' in sys.modules)\n"
        "eddyline.reports.routing_report.RoutingReport(())._repr_html_()\n"
        "print('jinja2' in sys.modules)"
    )
    assert printed_lines(code) == ["False", "True"]
