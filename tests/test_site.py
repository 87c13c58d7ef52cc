"""The site: its first page, its list of pages for language models, its switch of versions."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Literal

import pytest
from playwright.sync_api import Browser, expect

from tests.chromium import NEEDS_CHROMIUM, chromium

ROOT: Final = Path(__file__).parents[1]

DOCS: Final = ROOT / "docs"

ADDING: Any = runpy.run_path(str(ROOT / "scripts/add_site_version.py"))


def test_llms_txt_names_pages_that_are_there() -> None:
    text = (DOCS / "llms.txt").read_text("utf-8")
    assert re.match(r"# Eddyline\n\n> .+\n\n## ", text)
    lines = [line for line in text.splitlines() if line and not line.startswith(("#", ">"))]
    links = [re.fullmatch(r"- \[.+?\]\((\S+)\.html\): \S.+[.?]", line) for line in lines]
    assert all(links)
    pages = [DOCS / f"{link[1]}.md" for link in links if link]
    assert len(pages) > 25
    assert [page for page in pages if not page.is_file()] == []


@pytest.mark.parametrize("page", ["demo.svg", "demo-dark.svg"])
def test_the_first_picture_has_the_page_for_its_paper(page: str) -> None:
    svg = (DOCS / "pictures" / page).read_text("utf-8")
    assert "f-paper" not in svg
    assert f"{page}#" in (DOCS / "index.md").read_text("utf-8")


def built(folder: Path) -> Path:
    """Build a site of one page with this project's settings."""
    docs = folder / "docs"
    docs.mkdir()
    (docs / "index.md").write_text(
        "# Small\n\n![a](demo.svg#gh-light-mode-only)\n![b](demo-dark.svg#gh-dark-mode-only)\n"
    )
    for each in ("site.css", "llms.txt", "pictures/demo.svg", "pictures/demo-dark.svg"):
        shutil.copy(DOCS / each, docs)
    settings = folder / "mkdocs.yml"
    settings.write_text(
        f"INHERIT: {ROOT / 'mkdocs.yml'}\ndocs_dir: docs\nnav: [index.md]\nnot_in_nav: ''\n"
    )
    site = folder / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict"]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run([*command, "-f", settings, "-d", site], check=True, env=quiet)
    return site


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files, and says nothing."""

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sites of two versions beside each other."""
    site = built(tmp_path_factory.mktemp("built"))
    folder = tmp_path_factory.mktemp("versions")
    for version in ("0.10.0", "0.9.2"):
        shutil.copytree(site, folder / ADDING["minor"](version))
        ADDING["describe"](folder, version)
    return folder


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    handler = partial(QuietHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@NEEDS_CHROMIUM
@pytest.mark.slow(8)
def test_one_version_leads_to_another(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(address)
    page.wait_for_url(f"{address}0.10/index.html")
    current = page.locator(".md-version__current")
    expect(current).to_have_text("0.10.0")
    current.focus()
    page.get_by_role("link", name="0.9.2").click()
    page.wait_for_url(f"{address}0.9/**")
    expect(current).to_have_text("0.9.2")
    page.close()


@NEEDS_CHROMIUM
@pytest.mark.slow(3)
@pytest.mark.parametrize(("scheme", "shown"), [("light", "demo.svg"), ("dark", "demo-dark.svg")])
def test_a_page_opens_from_its_folder(
    browser: Browser, folder: Path, scheme: Literal["light", "dark"], shown: str
) -> None:
    page = browser.new_page(color_scheme=scheme)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((folder / "0.9" / "index.html").as_uri())
    pictures = page.locator("article img")
    expect(pictures.and_(page.locator(":visible"))).to_have_attribute("src", re.compile(shown))
    expect(pictures).to_have_count(2)
    assert {url.partition(":")[0] for url in asked} <= {"file", "data", "blob"}
    page.close()


def test_models_find_the_newest_version(tmp_path: Path) -> None:
    for version in ("0.9.2", "0.10.0", "0.9.3"):
        (tmp_path / ADDING["minor"](version)).mkdir(exist_ok=True)
        (tmp_path / ADDING["minor"](version) / "llms.txt").write_text("- [Guide](guide.html): How.")
        ADDING["describe"](tmp_path, version)
    assert (tmp_path / "llms.txt").read_text("utf-8") == "- [Guide](0.10/guide.html): How."
    assert "url=0.10/index.html" in (tmp_path / "index.html").read_text("utf-8")
