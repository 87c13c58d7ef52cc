"""Publications, the projects that paid for them, and who cites whom, as such data arrive."""

from __future__ import annotations

import json
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
    sentences,
    shares,
    subsets,
    texts,
    truths,
    whole,
)
from bench.others.words import FUNDERS, GIVEN_NAMES, SURNAMES, TOPICS
from bench.short.records import Draw

CURRENCIES: Final = ("EUR", "USD", "GBP", "CHF", "JPY", "eur ", "usd", "SEK")
LANGUAGES: Final = ("en", "de", "fr", "es", "el", "pl")

GROUP: Final = 13
"""Authors publish with the others of their group, of this size, a prime number."""

PUBLICATIONS_OF_A_GROUP: Final = 30
"""On average; some groups publish more."""

TEAMS: Final = {1: 0.14, 2: 0.2, 3: 0.2, 4: 0.18, 5: 0.12, 6: 0.08, 9: 0.06, 13: 0.02}
"""How often a publication has so many authors."""

QUOTED: Final = 0.33
"""Snippets that quote the title of the cited publication."""

BEYOND: Final = 1.02
"""Some of those that are cited are unknown."""

TITLES: Final[Ways] = ((0.05, str.upper), (0.1, "  {}. ".format), (1.0, str))

FUNDINGS: Final[Ways] = (
    (0.3, lambda _: None),
    (0.38, str.upper),
    (0.42, "  {} ".format),
    (0.46, "{} (grant agreement)".format),
    (0.5, lambda text: text[:-6] + text[:-7:-1]),  # the digits the wrong way round
    (1.0, str),
)


def projects(draw: Draw, rows: int) -> pa.Table:
    """Return projects with unique codes of six digits."""
    codes = [str(code) for code in (draw.choice(900_000, rows, replace=False) + 100_000).tolist()]
    funders = picked(draw, FUNDERS, rows, 1.3)
    letters = draw.integers(0, 26, (rows, 5)).tolist()
    starts = days(draw, rows, date(2005, 1, 1), date(2021, 12, 31))
    lengths = draw.integers(400, 2000, rows).tolist()
    ends = [
        date.fromordinal(day.toordinal() + length)
        for day, length in zip(starts, lengths, strict=True)
    ]
    amounts = np.round(10 ** draw.uniform(4.3, 7, rows), 2).tolist()
    budgets = [f"{amount:,.2f}" for amount in amounts]
    currencies = picked(draw, CURRENCIES, rows, 1.8)
    fundings = [f"{name}:{kind}::{code}" for (name, kind), code in zip(funders, codes, strict=True)]
    return pa.table(
        {
            "id": ids(rows),
            "code": texts(codes),
            "acronym": texts(["".join(chr(65 + letter) for letter in five) for five in letters]),
            "title": texts(replaced(draw, sentences(draw, rows, 4, 10), 0.02, None)),
            "funding": texts(fundings),
            "start_text": texts(replaced(draw, as_written(draw, starts), 0.02, None, "tbd")),
            "end_text": texts(replaced(draw, as_written(draw, ends), 0.03, None, "open")),
            "budget": texts(replaced(draw, budgets, 0.03, None, "n/a", "confidential")),
            "currency": texts(replaced(draw, currencies, 0.03, None)),
        }
    )


def author_lists(draw: Draw, rows: int) -> list[str]:
    """Return lists of authors in JSON, who publish with the others of their group."""
    groups = max(2, rows // PUBLICATIONS_OF_A_GROUP)
    parts = zip(
        picked(draw, SURNAMES, groups * GROUP),
        picked(draw, GIVEN_NAMES, groups * GROUP),
        draw.integers(65, 91, groups * GROUP).tolist(),
        strict=True,
    )
    names = [f"{surname}, {given} {chr(initial)}." for surname, given, initial in parts]
    group = (draw.random(rows) ** 1.5 * groups).astype(int).tolist()
    sizes = draw.choice(list(TEAMS), rows, p=list(TEAMS.values())).tolist()
    starts = draw.integers(0, GROUP, rows).tolist()
    steps = draw.integers(1, GROUP, rows).tolist()
    return [
        json.dumps(
            [names[at * GROUP + (start + step * number) % GROUP] for number in range(size)],
            ensure_ascii=False,
        )
        for at, size, start, step in zip(group, sizes, starts, steps, strict=True)
    ]


def publications(draw: Draw, rows: int, fundings: Sequence[str]) -> pa.Table:
    """Return publications; most name the funding string of a project, more or less neatly."""
    titles = [text.capitalize() for text in sentences(draw, rows, 4, 11)]
    titles = in_ways(titles, shares(draw, rows), TITLES)
    begun = sentences(draw, rows, 8, 20, 0.3)
    ended = sentences(draw, rows, 10, 22, 0.3)
    abstracts = [
        f"{one.capitalize()}. {other.capitalize()}."
        for one, other in zip(begun, ended, strict=True)
    ]
    authors = author_lists(draw, rows)
    funding = picked(draw, fundings, rows, 1.2)
    funding = in_ways(funding, shares(draw, rows), FUNDINGS)
    published = as_written(draw, days(draw, rows, date(2005, 1, 1), date(2024, 12, 31)))
    unknown = (None, None, "in press", "0000-00-00", "n/a")
    nobody = (None, None, "[]", '["Smith, J')
    languages = picked(draw, LANGUAGES, rows, 3)
    return pa.table(
        {
            "id": ids(rows),
            "title": texts(replaced(draw, titles, 0.01, None)),
            "abstract": texts(replaced(draw, abstracts, 0.04, None, "")),
            "pubdate": texts(replaced(draw, published, 0.035, *unknown)),
            "authors": texts(replaced(draw, authors, 0.02, *nobody)),
            "funding": texts(replaced(draw, funding, 0.02, "none", "self-funded")),
            "language": texts(languages),
            "topics": lists(replaced(draw, subsets(draw, TOPICS, rows, 1, 4), 0.02, None)),
            "open_access": truths(replaced(draw, chances(draw, rows, 0.55), 0.03, None)),
            "pages": whole(replaced(draw, draw.integers(4, 34, rows).tolist(), 0.05, None)),
        }
    )


def citations(draw: Draw, rows: int, titles: Sequence[str | None]) -> pa.Table:
    """Return citations; a third of the snippets quote the title of the cited publication."""
    citing = draw.integers(1, len(titles) + 1, rows)
    cited = (draw.random(rows) ** 1.5 * len(titles) * BEYOND).astype(np.int64) + 1
    around = sentences(draw, rows, 4, 9, 0.3)
    quotes = chances(draw, rows, QUOTED)
    known = dict(enumerate(titles, 1))
    snippets = [
        f"{title.strip(' .').lower()} {text}"
        if quote and (title := known.get(at)) is not None
        else text
        for at, text, quote in zip(cited.tolist(), around, quotes, strict=True)
    ]
    return pa.table(
        {
            "id": ids(rows),
            "citing": whole(citing),
            "cited": whole(cited),
            "snippet": texts(replaced(draw, snippets, 0.03, None, "")),
            "score": doubles(replaced(draw, np.round(draw.random(rows), 3).tolist(), 0.02, None)),
            "added": dates(
                replaced(draw, days(draw, rows, date(2010, 1, 1), date(2024, 12, 31)), 0.01, None)
            ),
        }
    )
