"""The tables: orders, log lines, reviews, references, customers, as a seeded generator makes them.

What repeats in them is what repeats in such data: days, user agents, addresses of visitors,
names of customers, settings that few people change. Payloads, log lines, reviews, references,
email addresses and phone numbers are nearly all different.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import Final

import numpy as np
import pyarrow as pa

from bench.realistic.functions import DATE_FORMATS
from bench.realistic.words import Words, strings

SEED: Final = 0

CITIES: Final = 400


def _digits(words: Words, size: int, count: int) -> list[str]:
    return ["".join(map(str, row)) for row in words.draw.integers(10, size=(size, count))]


def orders(words: Words, rows: int) -> pa.Table:
    """Return orders of five years: when, as one of six shops writes days, and a JSON payload."""
    draw = words.draw
    first = date(2019, 1, 1)
    days = draw.integers(5 * 365, size=rows)
    shops = words.zipf(np.arange(60).astype(object), rows)
    written = [
        (first + timedelta(days=int(day))).strftime(DATE_FORMATS[shop % len(DATE_FORMATS)])
        for day, shop in zip(days, shops, strict=True)
    ]
    amounts = np.round(draw.gamma(2.0, 30.0, size=rows), 2)
    refunds = draw.random(rows) < 0.15  # noqa: PLR2004 - somewhat more than one in seven
    statuses = draw.choice(["open", "sent", "closed"], size=rows, p=(0.1, 0.4, 0.5))
    items = words.zipf(words.vocabulary, 3 * rows)
    payloads = [
        json.dumps(
            {
                "order": 10_000_000 + number,
                "status": str(statuses[number]),
                "items": [
                    {"sku": item, "quantity": 1 + place, "price": float(amounts[number])}
                    for place, item in enumerate(items[3 * number : 3 * number + 3])
                ],
                "refund": {"amount": float(amounts[number]), "reason": items[3 * number]}
                if refunds[number]
                else None,
            }
        )
        for number in range(rows)
    ]
    return pa.table(
        {
            "order_id": np.arange(rows),
            "shop": shops.astype(np.int64),
            "ordered": written,
            "payload": payloads,
        }
    )


def settings(words: Words, rows: int) -> pa.Table:
    """Return users with their settings as JSON, by Zipf's law of three for a hundred users."""
    draw = words.draw
    few = [
        json.dumps(
            {
                "platform": str(draw.choice(["ios", "android", "web"])),
                "display": {"theme": str(theme)}
                if (theme := draw.choice(["", "dark", "sepia"]))
                else {},
                "language": str(draw.choice(["en", "de", "fr"])),
                "alerts": {str(word): bool(draw.integers(2)) for word in words.vocabulary[:12]},
                "volume": int(draw.integers(100)),
            }
        )
        for _ in range(max(rows * 3 // 100, 20))
    ]
    return pa.table(
        {"user_id": np.arange(rows), "settings": words.zipf(strings(few), rows, exponent=1.1)}
    )


def log(words: Words, rows: int) -> pa.Table:
    """Return a web server's log: whole lines, and address and agent of each."""
    draw = words.draw
    agents = words.zipf(words.agents(3_000), rows)
    ips = words.zipf(words.addresses(20_000), rows)
    endings = ["/{}", "/{}/edit", ".css", ".js?v={}", ".png", "?page={}"]
    weights = (0.3, 0.05, 0.15, 0.15, 0.2, 0.15)
    tails = draw.choice(endings, size=rows, p=weights)
    pages = words.zipf(words.vocabulary, rows)
    numbers = draw.integers(100_000, size=rows)
    statuses = draw.choice([200, 304, 404, 500, 503], size=rows, p=(0.75, 0.15, 0.07, 0.02, 0.01))
    lines = [
        f"{ips[row]} - - [{1 + row % 28:02}/Oct/2025:{row % 24:02}:{row % 60:02}:00 +0000] "
        f'"GET /{pages[row]}{tails[row].format(numbers[row])} HTTP/1.1" {statuses[row]} '
        f'{numbers[row]} "-" "{agents[row]}"'
        for row in range(rows)
    ]
    return pa.table({"line": lines, "ip": list(ips), "agent": list(agents)})


def reviews(words: Words, rows: int) -> pa.Table:
    """Return reviews of 10 to 40 words, a tenth of which complains, and the same with markup."""
    texts = words.texts(rows, 10, 40)
    bad = words.draw.random(rows) < 0.1  # noqa: PLR2004 - one in ten
    texts = strings(
        [
            f"{text} arrived late and broken" if is_bad else text
            for text, is_bad in zip(texts, bad, strict=True)
        ]
    )
    marked = [
        f"<div class='c'><p>{text.replace(' ', '&nbsp;', 2)}</p><br/>&mdash;</div>"
        for text in texts
    ]
    return pa.table(
        {
            "review_id": np.arange(rows),
            "product": words.zipf(np.arange(2_000).astype(object), rows).astype(np.int64),
            "text": list(texts),
            "comment": marked,
        }
    )


def references(words: Words, rows: int) -> pa.Table:
    """Return references: half of them with a DOI, and what was typed in as ISBN, a third right."""
    draw = words.draw
    texts = words.texts(rows, 6, 12)
    tails = _digits(words, rows, 7)
    has = draw.random(rows) < 0.5  # noqa: PLR2004 - half
    isbns = _digits(words, rows, 9)
    right = draw.random(rows) < 1 / 3
    checked = [
        isbn
        + ("0123456789X"[-sum((10 - i) * int(d) for i, d in enumerate(isbn)) % 11] if good else "?")
        for isbn, good in zip(isbns, right, strict=True)
    ]
    written = [
        f"{text.title()}. Journal of {text.split()[0].title()} &amp; Co. {1950 + row % 75}"
        + (f", https://doi.org/10.{1000 + row % 9000}/J.{tails[row]}." if has[row] else ".")
        for row, text in enumerate(texts)
    ]
    return pa.table({"reference_id": np.arange(rows), "reference": written, "isbn": checked})


def customers(words: Words, rows: int) -> pa.Table:
    """Return customers in 400 cities: names by Zipf's law, email and phone all their own."""
    draw = words.draw
    names = words.zipf(words.names(max(rows // 8, 20)), rows)
    hosts = draw.choice(["gmail.com", "GMX.net", "example.org", "work.example.com"], size=rows)
    numbers = _digits(words, rows, 9)
    starts = draw.choice(["+49 ", "0049 (0)", "+1-", "0"], size=rows)
    return pa.table(
        {
            "customer_id": np.arange(rows),
            "city": draw.integers(CITIES, size=rows),
            "name": list(names),
            "email": [f"{number}.{row}@{hosts[row]}" for row, number in enumerate(numbers)],
            "phone": [
                f"{starts[row]}{number[:3]} {number[3:]}" for row, number in enumerate(numbers)
            ],
        }
    )


def cities(words: Words, rows: int) -> pa.Table:  # noqa: ARG001 - there are as many at any size
    """Return the cities of the customers, in 20 regions."""
    return pa.table(
        {
            "city": np.arange(CITIES),
            "city_name": list(words.vocabulary[:CITIES]),
            "region": np.arange(CITIES) % 20,
        }
    )


def library(words: Words, rows: int) -> pa.Table:
    """Return publications: titles mostly all different, one to four authors of a few thousand."""
    draw = words.draw
    people = words.names(max(rows // 5, 20))
    counts = draw.integers(1, 5, size=rows)
    names = iter(words.zipf(people, int(counts.sum()), exponent=0.7))
    authors = ["; ".join(next(names) for _ in range(count)) for count in counts]
    return pa.table(
        {
            "publication": np.arange(rows),
            "published": 1975 + draw.integers(50, size=rows),
            "volume": draw.integers(1 + rows // 100, size=rows),
            "title": [text.title() for text in words.texts(rows, 4, 10)],
            "authors": authors,
        }
    )


def catalogue(words: Words, rows: int) -> pa.Table:
    """Return another list of the same publications, a third of them with slips, a third others."""
    table = library(Words(np.random.default_rng(SEED + 1), words.vocabulary), rows).to_pylist()
    draw = words.draw
    for row, slip in zip(table, draw.integers(3, size=rows), strict=True):
        if slip == 0:
            row["authors"] = "; ".join(reversed(row["authors"].split("; ")))
            row["title"] = row["title"].replace("e", "", 1).upper()
        elif slip == 1:
            row["authors"] = str(draw.choice(words.vocabulary)).title() + " Et Al"
            row["title"] = " ".join(draw.choice(words.vocabulary, size=6)).title()
    return pa.Table.from_pylist(table).rename_columns(
        ["entry", "published", "volume", "title", "authors"]
    )


def _library(words: Words, rows: int) -> pa.Table:
    # Of a generator of its own, which the catalogue has, too.
    return library(Words(np.random.default_rng(SEED + 1), words.vocabulary), rows)


TABLES: Final[Mapping[str, Callable[[Words, int], pa.Table]]] = {
    "orders": orders,
    "user_settings": settings,
    "log": log,
    "reviews": reviews,
    "bibliography": references,
    "customers": customers,
    "cities": cities,
    "library": _library,
    "catalogue": catalogue,
}
"""The tables by name, each made by so many rows from a source of words."""


def made(name: str, rows: int) -> pa.Table:
    """Return a table: the same rows in each process."""
    words = Words.from_generator(np.random.default_rng(SEED))
    return TABLES[name](words, rows)
