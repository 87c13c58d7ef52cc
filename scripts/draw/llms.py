"""Draws ``docs/llms.txt``, the site's table of contents for language models.

It follows https://llmstxt.org: a title, a summary, and sections of links with a sentence each. The
sections are those of ``mkdocs.yml``, the sentences those that the pages begin with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[2]

DOCS: Final = ROOT / "docs"

PAGE: Final = DOCS / "llms.txt"

FIRST_SECTION: Final = "Start"
"""The section of the pages that have none in the navigation."""

NO_TEXT: Final = re.compile(r"\A---\n.*?\n---\n|^```.*?^```$", re.DOTALL | re.MULTILINE)
"""The settings that a page begins with, and blocks of code."""

NO_PROSE: Final = ("#", "!", "<", "|", "- ")
"""How a paragraph begins that is a heading, a picture, HTML, a table or a list."""

LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")

ONLY_LINK: Final = re.compile(r"\[[^\]]*\]\([^)]*\)({[^}]*})?")

SENTENCE: Final = re.compile(r"\S.*?(?:[.?](?= [A-Z`])|$)")

ENOUGH: Final = 50
"""Letters: to a first sentence shorter than that ("Described, not tested.") the next is added."""


def beginning(markdown: str) -> str:
    r"""Return how a page's prose begins, without its links; ValueError if it has none.

    The first sentence, and more of its paragraph where that says little.

    >>> beginning("# Title\n\n![a](b.svg)\n\nSee [the\nguide](guide.md). More.\n")
    'See the guide. More.'
    """
    for paragraph in NO_TEXT.sub("", markdown).split("\n\n"):
        line = " ".join(paragraph.split())
        text = "" if ONLY_LINK.fullmatch(line) else LINK.sub(r"\1", line).replace("**", "")
        if text and not text.startswith(NO_PROSE):
            told = ""
            for sentence in SENTENCE.findall(text):
                told = f"{told} {sentence}".strip()
                if len(told) >= ENOUGH:
                    break
            return f"{told.removesuffix(':')}." if told.endswith(":") else told
    raise ValueError("a page has no sentence")


def sections(entries: list[Any], name: str = FIRST_SECTION) -> Iterator[tuple[str, str, str]]:
    """Give the section, the title and the file of each page of the navigation."""
    for entry in entries:
        ((title, below),) = entry.items()
        if isinstance(below, str):
            yield name, title, below
        else:
            yield from sections(below, title)


def address(page: str, site: str) -> str:
    """Return the address of a page: relative, unless the site has one."""
    return f"{site}{PurePosixPath(page).with_suffix('.html')}"


def text() -> str:
    """Return the whole file."""
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    site = settings.get("site_url") or ""
    links: dict[str, list[str]] = {}
    for section, title, page in sections(settings["nav"]):
        sentence = beginning((DOCS / page).read_text("utf-8"))
        line = f"- [{title}]({address(page, site)}): {sentence}"
        links.setdefault(section, []).append(line)
    summary = beginning((DOCS / "index.md").read_text("utf-8"))
    parts = [f"# {settings['site_name']}", f"> {summary}"]
    parts += [f"## {section}\n\n" + "\n".join(lines) for section, lines in links.items()]
    return "\n\n".join([*parts, ""])


def pages() -> dict[Path, str]:
    """Return the file as it should be."""
    return {PAGE: text()}
