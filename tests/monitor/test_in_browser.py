"""The live page in a real Chromium: what a person sees of it."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from eddyline.monitor.page_server import PageServer
from eddyline.monitor.query_book import QueryBook
from tests.chromium import NEEDS_CHROMIUM, chromium
from tests.monitor.live_queries import HOSTILE, book_of, filter_record, join_record, run

pytestmark = NEEDS_CHROMIUM


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    made = context.new_page()
    problems: list[str] = []
    made.on("pageerror", lambda error: problems.append(str(error)))
    yield made
    context.close()
    assert problems == []


@pytest.fixture
def book() -> QueryBook:
    return book_of()


@pytest.fixture
def server(book: QueryBook) -> Iterator[PageServer]:
    made = PageServer(book)
    yield made
    made.close()


def test_a_query_is_followed_to_its_end(book: QueryBook, server: PageServer, page: Page) -> None:
    page.goto(server.url)
    expect(page.get_by_text("No query has run yet")).to_be_visible()
    expect(page.locator("#connection")).to_have_text("live")
    run(book, 1, filter_record(1_000), ended=False)
    expect(page.get_by_role("heading", name="count: slow")).to_be_visible()
    expect(page.locator(".tiles dd").first).to_contain_text("1,000")
    expect(page.get_by_role("progressbar")).to_be_visible()
    expect(page.get_by_role("img").first).to_have_attribute(
        "aria-label",
        "1,000 rows in; quick(id): 1,000 came, 100 went on; slow(id): 100 came, 50 went on; "
        "50 rows out",
    )
    run(book, 1, filter_record(2_000), ended=False)
    expect(page.locator(".tiles dd").first).to_contain_text("2,000")
    run(book, 1, filter_record(3_000), ended=True)
    expect(page.locator("#told")).to_have_text("Query 1 has ended")
    expect(page.locator(".tiles dd").first).to_contain_text("3,000")
    expect(page.locator("main .sub").first).to_contain_text("Query 1, done")
    expect(page.get_by_role("progressbar")).to_have_count(0)


def test_waits_for_quota_are_drawn(book: QueryBook, server: PageServer, page: Page) -> None:
    number = run(book, 1, filter_record(1_000), ended=False)
    page.goto(server.url)
    expect(page.locator(".tiles dd").first).to_contain_text("1,000")
    expect(page.get_by_role("heading", name="Waits for quota")).to_have_count(0)
    book.mark(number, {}, waiting="waiting for quota, 4 of 10 answered")
    expect(page.get_by_text("waiting for quota, 4 of 10 answered")).to_be_visible()
    expect(page.get_by_role("img", name="Waited for quota")).to_be_visible()
    expect(page.locator("rect.wait")).to_have_count(1)
    run(book, 1, filter_record(3_000), ended=True)
    expect(page.get_by_text("waiting for quota, 4")).to_have_count(0)
    expect(page.locator("rect.wait")).to_have_count(1)  # it has waited


def test_the_latest_is_shown_until_another_is_chosen(
    book: QueryBook, server: PageServer, page: Page
) -> None:
    run(book, 1, filter_record(1_000), ended=True, description="first")
    run(book, 2, join_record("slow"), ended=True, description="second")
    page.goto(server.url)
    expect(page.locator("h2")).to_have_text("second: flights join slow")
    expect(page.get_by_role("cell", name="flights", exact=True)).to_be_visible()
    page.get_by_role("button", name="first").click()
    expect(page.locator("h2")).to_have_text("first: slow")
    run(book, 3, filter_record(10), ended=False, description="third")
    expect(page.get_by_role("button", name="third")).to_be_visible()
    expect(page.locator("h2")).to_have_text("first: slow")
    page.reload()  # the address says which
    expect(page.locator("h2")).to_have_text("first: slow")


def test_it_comes_back_after_the_connection_was_broken(book: QueryBook, page: Page) -> None:
    first = PageServer(book)
    where = urlsplit(first.url)
    page.goto(first.url)
    run(book, 1, filter_record(1_000), ended=False)
    expect(page.locator(".tiles dd").first).to_contain_text("1,000")
    first.close()
    expect(page.locator("#connection")).to_contain_text("connection lost")
    run(book, 1, filter_record(5_000), ended=True)
    assert where.port is not None
    second = PageServer(book, where.port)
    second._token = first._token  # as if it had been the network alone
    try:
        expect(page.locator("#connection")).to_have_text("live")
        expect(page.locator(".tiles dd").first).to_contain_text("5,000")
    finally:
        second.close()


@pytest.mark.slow(7)
def test_ten_thousand_past_queries(book: QueryBook, server: PageServer, page: Page) -> None:
    for action in range(10_000):
        run(book, action, filter_record(100), ended=True, description=f"query number {action}")
    page.goto(server.url)
    expect(page.locator("#count")).to_have_text("10,000 queries")
    expect(page.locator("#queries li")).to_have_count(50)
    page.get_by_role("button", name="Earlier queries").click()
    expect(page.locator("#queries li")).to_have_count(100)
    page.keyboard.press("/")
    page.keyboard.type("number 4321")
    expect(page.locator("#queries li")).to_have_count(1)
    page.locator("#queries button").click()
    expect(page.locator("h2")).to_have_text("query number 4321: slow")
    expect(page.locator("main .empty")).to_contain_text("only its sums are kept")
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    expect(page.locator("#queries li").first).to_contain_text("number 9999")


def test_names_are_text_and_nothing_else(page: Page) -> None:
    book = book_of(HOSTILE)
    run(book, 1, filter_record(1_000, HOSTILE), ended=True, description=HOSTILE)
    run(book, 2, join_record(HOSTILE), ended=True, description=HOSTILE)
    server = PageServer(book)
    try:
        for number in (1, 2):
            page.goto("about:blank")
            page.goto(f"{server.url}#{number}")
            expect(page.locator("h2")).to_contain_text("<img src=x onerror=")
            expect(page.locator("table").first).to_contain_text("<img src=x")
            assert page.locator("img").count() == 0
            assert page.evaluate("window.harmed") is None
            assert page.evaluate("document.scripts.length") == 1
    finally:
        server.close()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_cut_off(
    width: int, scheme: str, book: QueryBook, server: PageServer, browser: Browser
) -> None:
    run(book, 1, join_record("slow"), ended=True)
    run(book, 2, filter_record(123_456_789), ended=False)
    context = browser.new_context(
        viewport={"width": width, "height": 844},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = context.new_page()
    for number in (1, 2):
        page.goto("about:blank")
        page.goto(f"{server.url}#{number}")
        expect(page.locator("main svg").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        cut = page.evaluate(
            """() => [...document.querySelectorAll("main > svg text, main > div > svg text")]
                .filter(text => text.getBoundingClientRect().right > innerWidth)
                .map(text => text.textContent)"""
        )
        assert cut == []
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")
    context.close()


def test_it_can_be_used_without_a_mouse(book: QueryBook, server: PageServer, page: Page) -> None:
    for action in range(3):
        run(book, action, filter_record(100), ended=True, description=f"query {action}")
    page.goto(server.url)
    expect(page.locator("#queries li")).to_have_count(3)
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the query")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator("#find")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("h2")).to_have_text("query 1: slow")
    expect(page.get_by_role("button", name="query 1")).to_be_focused()
    expect(page.get_by_role("button", name="query 1")).to_have_attribute("aria-current", "true")
