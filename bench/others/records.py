"""Functions of dates, amounts, persons and addresses: NULL in, NULL out, the standard library."""

# ruff: noqa: PLR2004 - limits as people write them

from __future__ import annotations

import ipaddress
import re
import unicodedata
from datetime import date, datetime
from urllib.parse import parse_qs, urlsplit

from bench.others.words import DATE_FORMATS

EMAIL = re.compile(r"[a-z0-9._%+-]+@[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z]{2,}", re.IGNORECASE)
EURO_RATES = {"EUR": 1.0, "USD": 0.92, "GBP": 1.16, "CHF": 1.03, "JPY": 0.0062, "SEK": 0.088}
SOUNDEX_CODES = {
    letter: digit
    for letters, digit in (
        ("BFPV", "1"),
        ("CGJKQSXZ", "2"),
        ("DT", "3"),
        ("L", "4"),
        ("MN", "5"),
        ("R", "6"),
    )
    for letter in letters
}


def add_one(n: int | None) -> int | None:
    """The next number."""
    return None if n is None else n + 1


def size_band(n: int | None) -> str | None:
    """A name for the size of a count."""
    if n is None:
        return None
    return "few" if n < 10 else "some" if n < 100 else "many"


def clean_date(text: str | None) -> str | None:
    """An ISO date from a date in one of several formats, None if it has none of them."""
    if text is None:
        return None
    text = text.strip()
    for form in DATE_FORMATS:
        try:
            return datetime.strptime(text, form).date().isoformat()  # noqa: DTZ007 - a day
        except ValueError:
            continue
    return None


def as_day(iso: str | None) -> date | None:
    """The date of an ISO date."""
    return None if iso is None else date.fromisoformat(iso)


def year_of(iso: str | None) -> int | None:
    """The year of an ISO date."""
    return None if iso is None else int(iso[:4])


def month_of(iso: str | None) -> int | None:
    """The month of an ISO date."""
    return None if iso is None else int(iso.split("-")[1])


def day_of(iso: str | None) -> int | None:
    """The day in the month of an ISO date."""
    return None if iso is None else int(iso.split("-")[2])


def quarter_of(day: date | None) -> str | None:
    """The quarter of a date, as 2019-Q3."""
    return None if day is None else f"{day.year}-Q{(day.month + 2) // 3}"


def age_band(birth: date | None) -> str | None:
    """The band of ten years in which the age at the end of 2023 is."""
    if birth is None:
        return None
    decade = (2023 - birth.year) // 10 * 10
    return f"{decade}-{decade + 9}"


def log_hour(text: str | None) -> int | None:
    """The hour of a time in a log, in either of its two formats."""
    if text is None:
        return None
    for form in ("%Y-%m-%dT%H:%M:%SZ", "%d/%b/%Y:%H:%M:%S %z"):
        try:
            return datetime.strptime(text, form).hour  # noqa: DTZ007 - as it is written
        except ValueError:
            pass
    return None


def project_code(funding: str | None) -> str | None:
    """The code of six digits after the two colons of a funding string."""
    if funding is None:
        return None
    found = re.search(r"::\s*(\d{6})\b", funding)
    return found.group(1) if found else None


def funder_of(funding: str | None) -> str | None:
    """The funder named by a funding string."""
    if funding is None or "::" not in funding:
        return None
    return funding.strip().split(":")[0].lower()


def funding_class(funding: str | None) -> str | None:
    """The programme named by a funding string."""
    if funding is None:
        return None
    found = re.match(r"\s*\w+:(\w+)::", funding)
    return found.group(1).lower() if found else None


def parse_amount(text: str | None) -> float | None:
    """The amount in a price such as 'EUR 1,234.50', '$12.99' or '12,99 €'."""
    if text is None:
        return None
    found = re.search(r"\d[\d.,]*", text)
    if not found:
        return None
    digits = found.group(0)
    if re.fullmatch(r"\d+,\d\d", digits):
        digits = digits.replace(",", ".")
    return float(digits.replace(",", ""))


def to_euro(amount: float | None, currency: str | None) -> float | None:
    """The amount in euros, None for an unknown currency."""
    if amount is None or currency is None:
        return None
    rate = EURO_RATES.get(currency.strip().upper())
    return None if rate is None else round(amount * rate, 2)


def clean_currency(currency: str | None) -> str | None:
    """The code of a currency in upper case."""
    return None if currency is None else currency.strip().upper()


def has_tag(tags: list[str] | None, tag: str | None) -> bool:
    """Whether the tag is among the tags."""
    return tags is not None and tag in tags


def surname_of(name: str | None) -> str | None:
    """The last word of a name."""
    words = name.split() if name else []
    return words[-1].capitalize() if words else None


def soundex_code(name: str | None) -> str | None:
    """The American Soundex code of a name."""
    if name is None:
        return None
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().upper()
    letters = [letter for letter in plain if letter.isalpha()]
    if not letters:
        return None
    code = letters[0]
    last = SOUNDEX_CODES.get(letters[0])
    for letter in letters[1:]:
        digit = SOUNDEX_CODES.get(letter)
        if digit is not None and digit != last:
            code += digit
        if letter not in "HW":
            last = digit
    return (code + "000")[:4]


def is_email(text: str | None) -> bool:
    """Whether the text is an e-mail address."""
    return text is not None and EMAIL.fullmatch(text) is not None


def domain_of(email: str | None) -> str | None:
    """The domain of an e-mail address, in lower case."""
    if email is None or "@" not in email:
        return None
    return email.rsplit("@", 1)[1].strip().lower() or None


def mask_email(email: str | None) -> str | None:
    """The e-mail address with all but the first letter of its local part hidden."""
    if email is None or "@" not in email:
        return None
    local, domain = email.strip().split("@", 1)
    return f"{local[:1]}***@{domain}"


def is_url(text: str | None) -> bool:
    """Whether the text is an address of the web."""
    if text is None:
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and "." in parts.netloc


def url_param(url: str | None, name: str) -> str | None:
    """The value of a parameter of an address, in lower case."""
    if url is None:
        return None
    values = parse_qs(urlsplit(url).query).get(name)
    return values[0].lower() if values else None


def product_of_url(url: str | None) -> int | None:
    """The number of the product that an address shows."""
    if url is None:
        return None
    found = re.search(r"/products/(\d+)", url)
    return int(found.group(1)) if found else None


def browser_of(agent: str | None) -> str | None:
    """The browser of a user agent with its main version."""
    if not agent:
        return None
    for name, pattern in (
        ("Edge", r"Edg/(\d+)"),
        ("Chrome", r"Chrome/(\d+)"),
        ("Firefox", r"Firefox/(\d+)"),
        ("Safari", r"Version/(\d+).*Safari"),
    ):
        found = re.search(pattern, agent)
        if found:
            return f"{name} {found.group(1)}"
    return "other"


def is_bot(agent: str | None) -> bool:
    """Whether a user agent is a program rather than a person."""
    if agent is None:
        return False
    return re.search(r"bot|crawl|spider|scrapy|curl|python", agent, re.IGNORECASE) is not None


def ip_kind(ip: str | None) -> str | None:
    """Which kind of network an address is in."""
    if ip is None:
        return None
    try:
        address = ipaddress.ip_address(ip)
    except ValueError:
        return "invalid"
    if address.is_loopback:
        return "loopback"
    return f"{'private' if address.is_private else 'public'} v{address.version}"


def phone_digits(phone: str | None) -> str | None:
    """The digits of a phone number."""
    if phone is None:
        return None
    digits = re.sub(r"\(0\)|\D", "", phone)
    return digits or None


def luhn_ok(number: str | None) -> bool:
    """Whether the last digit of a card number is right."""
    if number is None:
        return False
    digits = number.replace(" ", "")
    if not digits.isdigit() or len(digits) < 12:
        return False
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit)
        if place % 2:
            value *= 2
            if value > 9:
                value -= 9
        total += value
    return total % 10 == 0


def mask_card(number: str | None) -> str | None:
    """The card number with all but its last four digits hidden."""
    return None if number is None else "**** " + number.replace(" ", "")[-4:]


def sku_family(sku: str | None) -> str | None:
    """The letter with which the number of an article begins."""
    return sku[0] if sku else None
