"""Functions as people write them who clean data: plain Python, the standard library, no tricks."""

# ruff: noqa: PLR2004 - limits as people write them

from __future__ import annotations

import datetime as dt
import difflib
import html
import ipaddress
import json
import re
import unicodedata

DATE_FORMATS = ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d %B %Y", "%B %d, %Y", "%Y%m%d")


def clean_date(written: str) -> dt.date | None:
    """Return the day that is written in one of several formats."""
    for form in DATE_FORMATS:
        try:
            return dt.datetime.strptime(written.strip(), form).date()  # noqa: DTZ007 - a day
        except ValueError:
            continue
    return None


def wants_refund(payload: str) -> bool:
    """Tell whether an order's JSON asks for more money back than 50."""
    order = json.loads(payload)
    refund = order.get("refund")
    return refund is not None and refund["amount"] > 50 and order["status"] != "closed"


def theme_of(settings: str) -> str:
    """Return the theme that a user's settings name, else the default of the platform."""
    parsed = json.loads(settings)
    theme = parsed.get("display", {}).get("theme")
    return theme or ("dark" if parsed.get("platform") == "ios" else "light")


LINE = re.compile(
    r'^(?P<ip>\S+) \S+ \S+ \[(?P<time>[^\]]+)\] "(?P<method>[A-Z]+) (?P<path>\S+) [^"]*" '
    r'(?P<status>\d{3}) (?P<size>\d+|-) "(?P<referrer>[^"]*)" "(?P<agent>[^"]*)"$'
)

BOT = re.compile(r"bot|crawl|spider|slurp|curl|wget|python-requests|monitor", re.IGNORECASE)


def is_by_a_person(line: str) -> bool:
    """Tell whether a line of a web server's log is a page that somebody looked at."""
    found = LINE.match(line)
    if found is None or BOT.search(found["agent"]):
        return False
    return not re.search(r"\.(css|js|png|jpe?g|gif|ico|woff2?)(\?|$)", found["path"])


def is_server_error(line: str) -> bool:
    """Tell whether a line of a web server's log has a status of 500 or more."""
    found = LINE.match(line)
    return found is not None and int(found["status"]) >= 500


def path_of(line: str) -> str | None:
    """Return the path without what stands behind it, numbers as placeholders."""
    found = LINE.match(line)
    if found is None:
        return None
    return re.sub(r"/\d+", "/:id", found["path"].split("?")[0].rstrip("/").lower())


BROWSERS = (
    ("Edge", re.compile(r"Edg(?:e|A|iOS)?/(\d+)")),
    ("Opera", re.compile(r"(?:OPR|Opera)[/ ](\d+)")),
    ("Samsung", re.compile(r"SamsungBrowser/(\d+)")),
    ("Firefox", re.compile(r"(?:Firefox|FxiOS)/(\d+)")),
    ("Chrome", re.compile(r"(?:Chrome|CriOS)/(\d+)")),
    ("Safari", re.compile(r"Version/(\d+)[\d.]* (?:Mobile/\S+ )?Safari/")),
    ("Explorer", re.compile(r"(?:MSIE |rv:)(\d+)")),
)

SYSTEMS = (
    ("Android", re.compile(r"Android (\d+)")),
    ("iOS", re.compile(r"(?:iPhone|iPad).*? OS (\d+)_")),
    ("macOS", re.compile(r"Mac OS X (\d+)[_.](\d+)")),
    ("Windows", re.compile(r"Windows NT (\d+)\.(\d+)")),
    ("Linux", re.compile(r"Linux|X11|CrOS")),
)


def browser_of(agent: str) -> str:
    """Return a browser with its version, and the system that it runs on."""
    browser = "other"
    for name, pattern in BROWSERS:
        found = pattern.search(agent)
        if found:
            browser = f"{name} {found[1]}"
            break
    for name, pattern in SYSTEMS:
        if pattern.search(agent):
            return f"{browser} on {name}"
    return browser


NETWORKS = [
    ipaddress.ip_network(each)
    for each in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "127.0.0.0/8")
]


def is_internal(address: str) -> bool:
    """Tell whether an address is of one of our networks."""
    parsed = ipaddress.ip_address(address)
    return any(parsed in network for network in NETWORKS)


DOI = re.compile(r"\b10\.\d{4,9}/[-._;()/:A-Z0-9]+\b", re.IGNORECASE)


def doi_of(reference: str) -> str | None:
    """Return the DOI in a reference in lower case, if one is there."""
    found = DOI.search(html.unescape(reference))
    return found[0].lower().rstrip(".") if found else None


def is_isbn(written: str) -> bool:
    """Tell whether a text is an ISBN of 10 or 13 digits whose check digit is right."""
    digits = re.sub(r"[\s-]", "", written).upper()
    if re.fullmatch(r"\d{9}[\dX]", digits):
        values = [10 if digit == "X" else int(digit) for digit in digits]
        return sum((10 - i) * value for i, value in enumerate(values)) % 11 == 0
    if re.fullmatch(r"97[89]\d{10}", digits):
        return sum(int(digit) * (3 if i % 2 else 1) for i, digit in enumerate(digits)) % 10 == 0
    return False


STOP_WORDS = {
    "en": {"the", "of", "and", "to", "in", "is", "was", "it", "for", "with"},
    "de": {"der", "die", "und", "das", "ist", "nicht", "ein", "zu", "mit", "war"},
    "fr": {"le", "la", "et", "les", "des", "est", "une", "pas", "pour", "dans"},
}


def is_english(text: str) -> bool:
    """Tell whether a text has more English stop words than those of other languages."""
    words = re.findall(r"[^\W\d_]+", unicodedata.normalize("NFKC", text).lower())
    counts = {name: sum(word in stop for word in words) for name, stop in STOP_WORDS.items()}
    return max(counts, key=lambda name: counts[name]) == "en"


def complains(text: str) -> bool:
    """Tell whether a review is about something broken or late."""
    return re.search(r"\b(broken|refund|late|damaged|never arrived)\b", text.lower()) is not None


def keywords(text: str) -> str:
    """Return the five longest words that are no stop words, in order of the alphabet."""
    stop = set().union(*STOP_WORDS.values())
    words = set(re.findall(r"[^\W\d_]+", text.lower())) - stop
    return " ".join(sorted(sorted(words, key=lambda word: (-len(word), word))[:5]))


def plain_text(comment: str) -> str:
    """Return a comment without markup."""
    without = re.sub(r"<(script|style).*?</\1>", " ", comment, flags=re.DOTALL | re.IGNORECASE)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", without)).split())


TITLES = re.compile(r"^(dr|prof|mr|mrs|ms|sir)\.?\s+", re.IGNORECASE)


def name_key(name: str) -> str:
    """Return a name without titles, accents and case, the last name first."""
    name = TITLES.sub("", name.strip())
    bare = "".join(
        letter
        for letter in unicodedata.normalize("NFKD", name)
        if not unicodedata.combining(letter)
    )
    words = re.sub(r"[^a-z ]", " ", bare.casefold()).split()
    return " ".join([words[-1], *words[:-1]]) if words else ""


def same_authors(one: str, other: str) -> bool:
    """Tell whether two lists of authors are nearly the same."""
    first, second = (sorted(name_key(name) for name in each.split(";")) for each in (one, other))
    return difflib.SequenceMatcher(None, "; ".join(first), "; ".join(second)).ratio() > 0.85


def same_title(one: str, other: str) -> bool:
    """Tell whether two titles are nearly the same."""
    first, second = (" ".join(re.findall(r"\w+", each.casefold())) for each in (one, other))
    return difflib.SequenceMatcher(None, first, second).ratio() > 0.9


def is_free_mail(email: str) -> bool:
    """Tell whether an address is of a provider that everybody can have one of."""
    return email.rsplit("@", 1)[-1].lower() in {"gmail.com", "gmx.net", "yahoo.com", "web.de"}


def is_phone_number(written: str) -> bool:
    """Tell whether a text is a phone number that can be called from abroad."""
    digits = re.sub(r"[()\s./-]", "", written)
    if digits.startswith("00"):
        digits = "+" + digits[2:]
    return re.fullmatch(r"\+[1-9]\d{7,14}", digits) is not None
