"""An online shop: its requests, customers, products and orders, as such data arrive."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Final

import numpy as np
import pyarrow as pa

from bench.others.draws import (
    Ways,
    as_written,
    chances,
    dates,
    days,
    doubles,
    ids,
    in_ways,
    lists,
    picked,
    replaced,
    shares,
    subsets,
    texts,
    truths,
    whole,
)
from bench.others.words import (
    BOTS,
    COLOURS,
    COUNTRIES,
    GIVEN_NAMES,
    MATERIALS,
    NOTES,
    SURNAMES,
    SYSTEMS,
    THINGS,
    WORDS,
)
from bench.short.records import Draw

SECTIONS: Final = ("products", "products", "search", "cart", "help", "account")
SOURCES: Final = ("", "", "newsletter", "ads", "Ads", "partner", "social")
STATUSES: Final = (200, 200, 200, 304, 404, 302, 500)
DOMAINS: Final = (
    *("example.com", "mail.example.org", "uni.example.edu", "Example.com", "post.example.net"),
    *(f"company{number}.example" for number in range(60)),
)
CATEGORIES: Final = ("living", "kitchen", "office", "garden", "kids")
TAGS: Final = ("sale", "new", "eco", "gift", "kitchen", "office", "garden")
CURRENCIES: Final = ("EUR", "USD", "GBP", "CHF", "JPY", " eur", "Usd", "XXX")

DAY: Final = 86_400
"""Seconds."""

ADDRESSES: Final = 3_000
"""From which requests come."""

VERSIONS: Final = range(95, 115)
"""Of browsers."""

BEYOND: Final = 1.02
"""Some products of the requests are unknown."""


def as_common_log(second: int) -> str:
    """Return a second as the common log format of web servers has it."""
    day = date.fromordinal(second // DAY)
    return f"{day.day:02}/May/{day.year}:{clock(second)} +0000"


def as_iso(second: int) -> str:
    """Return a second as ISO 8601 has it."""
    day = date.fromordinal(second // DAY)
    return f"{day.year}-{day.month:02}-{day.day:02}T{clock(second)}Z"


def clock(second: int) -> str:
    """Return the time of day."""
    return f"{second % DAY // 3_600:02}:{second % 3_600 // 60:02}:{second % 60:02}"


def public_address(numbers: Sequence[int]) -> str:
    """Return an address of no private network."""
    first, *others = numbers
    return ".".join(map(str, (80 + first % 40, *others)))


LOGGED: Final[Ways] = ((0.3, as_common_log), (1.0, as_iso))

NETWORKS: Final[Ways] = (
    (0.15, "10.{0[0]}.{0[1]}.{0[2]}".format),
    (0.3, "192.168.{0[0]}.{0[1]}".format),
    (0.4, "2001:db8::{0[0]:x}:{0[1]:x}".format),
    (0.41, lambda _: "127.0.0.1"),
    (0.43, lambda _: "unknown"),
    (1.0, public_address),
)

NAMES: Final[Ways] = (
    (0.04, str.upper),
    (0.08, lambda name: f" {name.replace(' ', '  ')}"),
    (1.0, str),
)

EMAILS: Final[Ways] = (
    (0.85, str.lower),
    (0.95, str),
    (0.97, " {}".format),
    (1.0, lambda email: email.replace("@", " at ")),
)

CARDS: Final[Ways] = (
    (0.15, lambda card: card[:-1] + str((int(card[-1]) + 3) % 10)),
    (0.5, lambda card: " ".join(card[start : start + 4] for start in (0, 4, 8, 12))),
    (1.0, str),
)

PRICES: Final[Ways] = (
    (0.5, "EUR {:,.2f}".format),
    (0.7, "${:.2f}".format),
    (0.9, lambda amount: f"{amount:.2f}".replace(".", ",") + " €"),
    (1.0, " {:.2f}".format),
)


def agents(draw: Draw) -> list[str]:
    """Return some 300 user agents of browsers, in any order."""
    webkit = "AppleWebKit/537.36 (KHTML, like Gecko)"
    found = []
    for version in VERSIONS:
        for system in SYSTEMS:
            start = f"Mozilla/5.0 ({system})"
            found += [
                f"{start} {webkit} Chrome/{version}.0.{version * 37 % 5000}.0 Safari/537.36",
                f"{start} Gecko/20100101 Firefox/{version}.0",
                f"{start} {webkit} Version/{version // 7}.1 Safari/605.1.15",
            ]
            if version % 4 == 0:
                found.append(f"{start} {webkit} Chrome/{version}.0.0.0 Edg/{version}.0.1")
    return [found[place] for place in draw.permutation(len(found)).tolist()]


def urls(draw: Draw, rows: int, products: int) -> list[str]:
    """Return addresses of pages, some with where the visitor came from."""
    sections = picked(draw, SECTIONS, rows)
    items = (draw.random(rows) ** 1.6 * products * BEYOND).astype(int).tolist()
    sources = picked(draw, SOURCES, rows)
    words = picked(draw, WORDS, rows, 2)
    found = []
    for section, item, source, word in zip(sections, items, sources, words, strict=True):
        url = f"https://shop.example.org/{section}"
        if section == "products":
            url += f"/{item + 1}"
        elif section == "search":
            url += f"?q={word}"
        if source:
            url += ("&" if "?" in url else "?") + f"utm_source={source}&utm_medium=web"
        found.append(url)
    return found


def logs(draw: Draw, rows: int, customers: int, products: int) -> pa.Table:
    """Return requests, with the time in two formats."""
    begin = date(2023, 5, 1).toordinal() * DAY
    seconds = draw.integers(begin, begin + 30 * DAY, rows).tolist()
    logged = in_ways(seconds, shares(draw, rows), LOGGED)
    numbers = draw.integers(1, 255, (ADDRESSES, 4)).tolist()
    addresses = in_ways(numbers, shares(draw, ADDRESSES), NETWORKS)
    pages = urls(draw, rows, products)
    sizes = (10 ** draw.uniform(2, 6, rows)).astype(np.int64).tolist()
    known = draw.integers(1, customers + 1, rows).tolist()
    visitors = replaced(draw, picked(draw, agents(draw), rows, 1.8), 0.08, *BOTS)
    return pa.table(
        {
            "id": ids(rows),
            "logged": texts(replaced(draw, logged, 0.01, None, "-")),
            "ip": texts(picked(draw, addresses, rows, 1.7)),
            "method": texts(picked(draw, ("GET", "POST", "HEAD"), rows, 3)),
            "url": texts(replaced(draw, pages, 0.02, None, "-", "/robots.txt")),
            "status": whole(picked(draw, STATUSES, rows, 1.5)),
            "bytes": whole(replaced(draw, sizes, 0.06, None)),
            "agent": texts(replaced(draw, visitors, 0.01, None, "")),
            "customer_id": whole(replaced(draw, known, 0.45, None)),
        }
    )


def card(digits: Sequence[int]) -> str:
    """Return a card number of 15 digits and their check digit."""
    total = 0
    for place, digit in enumerate(digits):
        total += digit if place % 2 else sum(divmod(2 * digit, 10))
    return "".join(map(str, digits)) + str(-total % 10)


def customers(draw: Draw, rows: int) -> pa.Table:
    """Return customers with messy e-mail addresses and card numbers, some of them wrong."""
    given = picked(draw, GIVEN_NAMES, rows)
    surnames = picked(draw, SURNAMES, rows, 1.2)
    styles = shares(draw, rows)
    names = [f"{first} {last}" for first, last in zip(given, surnames, strict=True)]
    domains = picked(draw, DOMAINS, rows, 2.5)
    numbers = draw.integers(1, 100, rows).tolist()
    emails = [
        f"{first}.{last}{number}@{domain}".replace("'", "").encode("ascii", "ignore").decode()
        for first, last, domain, number in zip(given, surnames, domains, numbers, strict=True)
    ]
    digits = draw.integers(0, 10, (rows, 15))
    digits[:, 0] = 4
    cards = in_ways([card(each) for each in digits.tolist()], shares(draw, rows), CARDS)
    phones = draw.integers(1_000_000, 9_999_999, rows).tolist()
    countries = picked(draw, COUNTRIES, rows, 1.5)
    websites = [
        f"https://www.{domain.lower()}/~{first[0].lower()}{number}"
        for domain, first, number in zip(domains, given, numbers, strict=True)
    ]
    no_websites = (None, "none", "www.example.com", "http:/broken")
    return pa.table(
        {
            "id": ids(rows),
            "name": texts(replaced(draw, in_ways(names, styles, NAMES), 0.01, None)),
            "email": texts(
                replaced(draw, in_ways(emails, styles, EMAILS), 0.04, None, "n/a", "none@")
            ),
            "phone": texts(
                replaced(draw, [f"+49 (0)170 {number}" for number in phones], 0.1, None, "-")
            ),
            "country": texts(replaced(draw, countries, 0.02, None)),
            "card": texts(replaced(draw, cards, 0.03, None, "unknown")),
            "birth": dates(
                replaced(draw, days(draw, rows, date(1940, 1, 1), date(2006, 1, 1)), 0.05, None)
            ),
            "newsletter": truths(replaced(draw, chances(draw, rows, 0.4), 0.04, None)),
            "website": texts(replaced(draw, websites, 0.5, *no_websites)),
        }
    )


def products(draw: Draw, rows: int) -> pa.Table:
    """Return products with prices written in several ways."""
    parts = [picked(draw, words, rows) for words in (COLOURS, MATERIALS, THINGS)]
    names = [" ".join(words).capitalize() for words in zip(*parts, strict=True)]
    families = draw.integers(0, 6, rows).tolist()
    suffixes = picked(draw, ("DE", "EU", "US", "XX"), rows)
    skus = [
        f"{'ABCDEF'[family]}{number:04}-{suffix}"
        for number, (family, suffix) in enumerate(zip(families, suffixes, strict=True), 1)
    ]
    amounts = np.round(10 ** draw.uniform(0.4, 3.2, rows), 2).tolist()
    prices = in_ways(amounts, shares(draw, rows), PRICES)
    return pa.table(
        {
            "id": ids(rows),
            "sku": texts(skus),
            "name": texts(replaced(draw, names, 0.02, None)),
            "price": texts(replaced(draw, prices, 0.04, None, "on request")),
            "category": texts(picked(draw, CATEGORIES, rows, 1.4)),
            "tags": lists(replaced(draw, subsets(draw, TAGS, rows, 0, 3), 0.03, None)),
            "weight": doubles(
                replaced(draw, np.round(10 ** draw.uniform(-1, 1.5, rows), 2).tolist(), 0.06, None)
            ),
            "released": dates(
                replaced(draw, days(draw, rows, date(2015, 1, 1), date(2023, 12, 31)), 0.03, None)
            ),
        }
    )


def orders(draw: Draw, rows: int, customers: int, products: int) -> pa.Table:
    """Return orders in several currencies, with notes of customers."""
    details = draw.integers(1, 400, rows).tolist()
    picks = picked(draw, NOTES, rows)
    comments = [
        f"{note} (ref {number})" if number % 3 else note
        for note, number in zip(picks, details, strict=True)
    ]
    currencies = picked(draw, CURRENCIES, rows, 2)
    amounts = np.round(10 ** draw.uniform(0.7, 3.2, rows), 2).tolist()
    placed = as_written(draw, days(draw, rows, date(2021, 1, 1), date(2023, 12, 31)))
    buyers = (draw.random(rows) ** 1.4 * customers * 1.01).astype(np.int64) + 1
    bought = (draw.random(rows) ** 1.6 * products).astype(np.int64) + 1
    return pa.table(
        {
            "id": ids(rows),
            "customer_id": whole(buyers),
            "product_id": whole(bought),
            "quantity": whole(replaced(draw, draw.integers(1, 9, rows).tolist(), 0.02, None)),
            "amount": doubles(replaced(draw, amounts, 0.02, None)),
            "currency": texts(replaced(draw, currencies, 0.02, None)),
            "placed": texts(replaced(draw, placed, 0.02, None, "?")),
            "note": texts(replaced(draw, comments, 0.55, None)),
        }
    )
