"""The tables of a shop: what its orders, visitors, tickets and payments look like as they arrive.

Days, amounts, telephone numbers and countries are written as different people write them; a few of
each are missing. Customers, pages and articles occur as often as in real data: few of them often,
most of them seldom. A seeded generator makes the same rows in each process.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench.short.functions import FORMATS
from bench.short.words import (
    CAMPAIGNS,
    COUNTRIES,
    FIRST_NAMES,
    FORMS,
    HOSTS,
    LAST_NAMES,
    ROBOTS,
    SECTIONS,
    SENTENCES,
    SITES,
    SUBJECTS,
    SYSTEMS,
    THINGS,
    TRADES,
)

Draw: TypeAlias = np.random.Generator
Rows: TypeAlias = Mapping[str, int]
"""How many rows each table has."""

SEED: Final = 0

ROWS: Final[Rows] = {
    "orders": 20_000,
    "customers": 5_000,
    "visits": 30_000,
    "products": 4_000,
    "order_lines": 50_000,
    "companies": 1_200,
    "suppliers": 1_200,
    "tickets": 6_000,
    "payments": 12_000,
    "events": 100_000,
}

FILES: Final = 2
"""Files of a table, one for each core."""

FIRST_DAY: Final = dt.date(2023, 1, 1)
DAYS: Final = 730


def often(draw: Draw, values: Sequence[Any], size: int, exponent: float = 0.8) -> list[Any]:
    """Draw values, the n-th as often as the n-th word of a text."""
    weights = np.arange(1, len(values) + 1) ** -exponent
    places = draw.choice(len(values), size=size, p=weights / weights.sum())
    return [values[place] for place in places]


def evenly(draw: Draw, values: Sequence[Any], size: int) -> list[Any]:
    """Draw values, each as often as any other."""
    return [values[place] for place in draw.integers(len(values), size=size)]


def with_gaps(draw: Draw, values: Sequence[Any], share: float = 0.03) -> list[Any]:
    """Return values of which a share is missing."""
    gaps = draw.random(len(values)) < share
    return [None if gap else value for value, gap in zip(values, gaps, strict=True)]


def days(draw: Draw, size: int) -> list[dt.date]:
    """Return days of two years."""
    return [FIRST_DAY + dt.timedelta(days=int(day)) for day in draw.integers(DAYS, size=size)]


def amounts(draw: Draw, size: int) -> list[str]:
    """Return amounts of money as they are written in four countries."""
    numbers = np.round(draw.gamma(1.5, 80.0, size=size) + 1, 2)
    kinds = draw.integers(4, size=size)
    written = []
    for number, kind in zip(numbers, kinds, strict=True):
        english = f"{number:,.2f}"
        german = english.translate(str.maketrans(",.", ".,"))
        written.append((f"€ {german}", f"${english}", f"£{english}", f"{german} EUR")[kind])
    return written


def orders(draw: Draw, rows: Rows) -> pa.Table:
    """Return orders: of whom, when as one of five clients writes it, how much, and what in JSON."""
    size = rows["orders"]
    clients = draw.integers(len(FORMATS), size=size)
    written = [
        day.strftime(FORMATS[client]) for day, client in zip(days(draw, size), clients, strict=True)
    ]
    articles = iter(often(draw, range(rows["products"]), 4 * size))
    counts = draw.integers(1, 5, size=size)
    pieces = iter(draw.integers(1, 6, size=4 * size))
    items = [
        json.dumps(
            [{"sku": f"A{next(articles):05}", "quantity": int(next(pieces))} for _ in range(count)]
        )
        for count in counts
    ]
    return pa.table(
        {
            "order_id": np.arange(size),
            "customer_id": np.array(often(draw, range(rows["customers"]), size, 0.5)),
            "shop": often(draw, [f"shop {number}" for number in range(12)], size),
            "ordered": with_gaps(draw, written),
            "amount": amounts(draw, size),
            "items": items,
            "status": evenly(draw, ("open", "paid", "sent", "closed", "closed"), size),
        }
    )


def customers(draw: Draw, rows: Rows) -> pa.Table:
    """Return customers as they typed themselves in."""
    size = rows["customers"]
    first, last = evenly(draw, FIRST_NAMES, size), evenly(draw, LAST_NAMES, size)
    cases = (str, str.upper, str.lower, "  {} ".format)
    names = [
        case(f"{one} {two}")
        for one, two, case in zip(first, last, evenly(draw, cases, size), strict=True)
    ]
    hosts = often(draw, HOSTS, size)
    emails = [f"{one}.{n}@{host}" for n, (one, host) in enumerate(zip(last, hosts, strict=True))]
    births = [
        dt.date(1940, 1, 1) + dt.timedelta(days=int(day))
        for day in draw.integers(65 * 365, size=size)
    ]
    return pa.table(
        {
            "customer_id": np.arange(size),
            "name": names,
            "email": with_gaps(draw, emails),
            "phone": with_gaps(draw, phones(draw, size)),
            "country": often(draw, COUNTRIES, size, 0.4),
            "birthday": with_gaps(draw, births),
            "city": draw.integers(200, size=size),
        }
    )


def phones(draw: Draw, size: int) -> list[str]:
    """Return telephone numbers, some as they are dialled at home, some from abroad."""
    starts = evenly(draw, ("+49 ", "0049 (0)", "0", "+44-", "0043/", "tel. "), size)
    numbers = draw.integers(10**8, 10**9, size=size)
    return [
        f"{start}{str(number)[:3]} {str(number)[3:]}"
        for start, number in zip(starts, numbers, strict=True)
    ]


def visits(draw: Draw, rows: Rows) -> pa.Table:
    """Return visits of pages: address, where from, user agent and network address."""
    size = rows["visits"]
    articles = often(draw, range(rows["products"]), size)
    tails = evenly(draw, ("", "", "?utm_campaign={}", "?page=2", "?q=lamp&utm_campaign={}"), size)
    campaigns = often(draw, CAMPAIGNS, size)
    urls = [
        f"{site}/{section}/A{article:05}{tail.format(campaign)}"
        for site, section, article, tail, campaign in zip(
            evenly(draw, SITES[:3], size),
            evenly(draw, SECTIONS, size),
            articles,
            tails,
            campaigns,
            strict=True,
        )
    ]
    numbers = draw.integers(1, 255, size=(max(size // 8, 20), 3))
    private = draw.random(len(numbers)) < 0.2  # noqa: PLR2004 - one in five is our own
    addresses = [
        f"{10 if inside else 80 + a % 40}.{a}.{b}.{c}"
        for (a, b, c), inside in zip(numbers.tolist(), private, strict=True)
    ]
    return pa.table(
        {
            "visit_id": np.arange(size),
            "customer_id": np.array(often(draw, range(rows["customers"]), size, 0.5)),
            "url": urls,
            "referrer": with_gaps(draw, [f"{site}/" for site in often(draw, SITES, size)], 0.3),
            "agent": often(draw, agents(draw, max(size // 20, 20)), size),
            "ip": often(draw, addresses, size),
            "milliseconds": draw.integers(20, 3_000, size=size),
        }
    )


def agents(draw: Draw, size: int) -> list[str]:
    """Return user agents, one in six of a program."""
    browsers = (
        "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{}.0.0.0 Safari/537.36",
        "AppleWebKit/605.1.15 (KHTML, like Gecko) Version/{}.4 Safari/605.1.15",
        "Gecko/20100101 Firefox/{}.0",
        "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{0}.0.0.0 Safari/537.36 Edg/{0}.0",
    )
    return [
        f"Mozilla/5.0 (compatible; {robot})"
        if number % 6 == 0
        else f"Mozilla/5.0 ({system}) {browser.format(90 + int(version))}"
        for number, (robot, system, browser, version) in enumerate(
            zip(
                evenly(draw, ROBOTS, size),
                evenly(draw, SYSTEMS, size),
                evenly(draw, browsers, size),
                draw.integers(40, size=size),
                strict=True,
            )
        )
    ]


def products(draw: Draw, rows: Rows) -> pa.Table:
    """Return articles: a title of three to six words, a written price, tags in JSON."""
    size = rows["products"]
    lengths = draw.integers(3, 7, size=size)
    titles = [" ".join(evenly(draw, THINGS, length)).title() for length in lengths]
    tags = [json.dumps(evenly(draw, (" Sale", "new", "NEW", "eco", "gift"), 3)) for _ in titles]
    return pa.table(
        {
            "sku": [f"A{number:05}" for number in range(size)],
            "title": titles,
            "price": amounts(draw, size),
            "tags": with_gaps(draw, tags),
        }
    )


def order_lines(draw: Draw, rows: Rows) -> pa.Table:
    """Return lines of orders in numbers."""
    size = rows["order_lines"]
    return pa.table(
        {
            "order_id": draw.integers(rows["orders"], size=size),
            "sku": [f"A{number:05}" for number in often(draw, range(rows["products"]), size)],
            "price": np.round(draw.gamma(2.0, 20.0, size=size), 2),
            "pieces": draw.integers(1, 20, size=size),
        }
    )


def companies(draw: Draw, rows: Rows, name: str = "companies") -> pa.Table:
    """Return companies of 300 postcodes, in one of two lists that have most of them in common."""
    size = rows[name]
    common = np.random.default_rng(SEED)  # the same for both lists
    ends = evenly(common, TRADES, size), evenly(common, TRADES, size)
    postcodes = common.integers(300, size=size)
    names = [f"{one} {two}" for one, two in zip(*ends, strict=True)]
    slips = draw.integers(5, size=size)
    written = [
        (plain, plain.upper(), plain.replace("e", "", 1), plain, "New " + plain)[slip]
        for plain, slip in zip(names, slips, strict=True)
    ]
    forms = evenly(draw, FORMS, size)
    return pa.table(
        {
            "company_id": np.arange(size),
            "name": [f"{one} {form}" for one, form in zip(written, forms, strict=True)],
            "postcode": postcodes,
            "country": often(draw, COUNTRIES, size, 0.4),
            "phone": with_gaps(draw, phones(draw, size)),
            "email": [f"info@{host}" for host in often(draw, HOSTS[1:], size)],
        }
    )


def suppliers(draw: Draw, rows: Rows) -> pa.Table:
    """Return the other list of companies."""
    return companies(draw, rows, "suppliers")


def tickets(draw: Draw, rows: Rows) -> pa.Table:
    """Return tickets of customers: subject and text, when they were opened and closed."""
    size = rows["tickets"]
    opened = days(draw, size)
    waits = draw.integers(1, 25, size=size)
    bodies = [
        f"Hello, {'. '.join(evenly(draw, SENTENCES, count))}. Order {number}, {number}@example.org"
        for count, number in zip(
            draw.integers(1, 5, size=size), draw.integers(10**6, size=size), strict=True
        )
    ]
    return pa.table(
        {
            "ticket_id": np.arange(size),
            "customer_id": np.array(often(draw, range(rows["customers"]), size, 0.5)),
            "subject": with_gaps(
                draw,
                [
                    f"{subject} {number % 1000}"
                    for subject, number in zip(
                        often(draw, SUBJECTS, size), range(size), strict=True
                    )
                ],
            ),
            "body": bodies,
            "opened": [day.strftime("%d.%m.%Y") for day in opened],
            "closed": with_gaps(
                draw,
                [
                    day + dt.timedelta(days=int(wait))
                    for day, wait in zip(opened, waits, strict=True)
                ],
                0.2,
            ),
        }
    )


def payments(draw: Draw, rows: Rows) -> pa.Table:
    """Return bank transfers: what for, as somebody wrote it, how much, and from which account."""
    size = rows["payments"]
    forms = evenly(draw, ("Order #{:06}", "ord-{}", "For order {}", "INV {}", "thanks"), size)
    numbers = draw.integers(rows["orders"], size=size)
    accounts = draw.integers(10**9, 10**10, size=max(size // 3, 20))
    ibans = [
        f"DE{98 - int(f'{bank}131400') % 97:02}{bank}"
        for bank in (f"37040044{account}" for account in accounts)
    ]
    typed = often(draw, ibans, size, 0.3)
    slips = draw.random(size) < 0.1  # noqa: PLR2004 - one in ten is mistyped
    return pa.table(
        {
            "payment_id": np.arange(size),
            "reference": [form.format(n) for form, n in zip(forms, numbers, strict=True)],
            "amount": amounts(draw, size),
            "iban": [
                iban[:-1] + "0" if slip else iban for iban, slip in zip(typed, slips, strict=True)
            ],
            "paid": days(draw, size),
        }
    )


def events(draw: Draw, rows: Rows) -> pa.Table:
    """Return events in numbers, dates and short texts, which no function has to clean."""
    size = rows["events"]
    return pa.table(
        {
            "event_id": np.arange(size),
            "customer_id": draw.integers(rows["customers"], size=size),
            "kind": often(draw, ("view", "click", "cart", "buy", "return"), size),
            "day": days(draw, size),
            "value": draw.integers(1, 10_000, size=size),
        }
    )


TABLES: Final[Mapping[str, Callable[[Draw, Rows], pa.Table]]] = {
    "orders": orders,
    "customers": customers,
    "visits": visits,
    "products": products,
    "order_lines": order_lines,
    "companies": companies,
    "suppliers": suppliers,
    "tickets": tickets,
    "payments": payments,
    "events": events,
}
"""The tables by name, each made from a generator and the rows of all."""


def at_most(rows: int) -> Rows:
    """Return how many rows the tables have if none has more than so many."""
    return {name: min(count, rows) for name, count in ROWS.items()}


def write(folder: Path, rows: Rows = ROWS, files: int = FILES) -> None:
    """Write all tables below a folder, each as so many Parquet files."""
    for number, (name, made) in enumerate(TABLES.items()):
        table = made(np.random.default_rng([SEED, number]), rows)
        (folder / name).mkdir(parents=True)
        for part in range(files):
            piece = table.take(np.arange(part, len(table), files))
            pq.write_table(piece, folder / name / f"part-{part}.parquet")


def make_views(spark: SparkSession, folder: Path) -> None:
    """Make the tables known to a session by their names."""
    for name in TABLES:
        spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)
