"""Functions as people write them in a notebook: NULL in, NULL out, the standard library."""

# ruff: noqa: PLR2004 - limits as people write them

from __future__ import annotations

import datetime as dt
import difflib
import ipaddress
import json
import re
import unicodedata
from urllib.parse import parse_qs, urlsplit

import pandas as pd

FORMATS = ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d %b %Y", "%Y-%m-%dT%H:%M:%S")


def parse_date(text: str | None) -> dt.date | None:
    """Return the day that is written in one of several formats."""
    if not text:
        return None
    for form in FORMATS:
        try:
            return dt.datetime.strptime(text.strip(), form).date()  # noqa: DTZ007 - a day
        except ValueError:
            continue
    return None


SIGNS = {"€": "EUR", "$": "USD", "£": "GBP"}


def currency_of(amount: str | None) -> str | None:
    """Return the currency of a written amount, by its sign or its three letters."""
    if amount is None:
        return None
    for sign, name in SIGNS.items():
        if sign in amount:
            return name
    letters = re.search(r"\b[A-Z]{3}\b", amount)
    return letters[0] if letters else None


def parse_amount(amount: str | None) -> float | None:
    """Return the number in a written amount, whichever of comma and point is the decimal one."""
    if amount is None:
        return None
    digits = re.sub(r"[^\d,.-]", "", amount)
    if digits.rfind(",") > digits.rfind("."):
        digits = digits.replace(".", "").replace(",", ".")
    else:
        digits = digits.replace(",", "")
    try:
        return float(digits)
    except ValueError:
        return None


def skus_of(items: str | None) -> list[str]:
    """Return the article numbers in an order's JSON list."""
    return [item["sku"] for item in json.loads(items)] if items else []


def pieces_of(items: str | None) -> int:
    """Return how many pieces an order's JSON list has."""
    return sum(item.get("quantity", 1) for item in json.loads(items)) if items else 0


def tags_of(tags: str | None) -> list[str]:
    """Return the tags of a JSON list, tidied, without repetitions."""
    return sorted({tag.strip().lower() for tag in json.loads(tags)}) if tags else []


PREFIXES = {"DE": "49", "FR": "33", "GB": "44", "US": "1", "AT": "43"}


def clean_phone(phone: str | None, country: str | None) -> str | None:
    """Return a phone number as +49…, or None for what is none."""
    if phone is None:
        return None
    digits = re.sub(r"[^\d+]", "", phone.replace("(0)", ""))
    if digits.startswith("00"):
        digits = "+" + digits[2:]
    elif digits.startswith("0"):
        digits = "+" + PREFIXES.get(country or "", "49") + digits[1:]
    return digits if re.fullmatch(r"\+\d{8,15}", digits) else None


COUNTRIES = {
    "DE": ("germany", "deutschland", "de", "ger", "d"),
    "FR": ("france", "frankreich", "fr"),
    "GB": ("great britain", "united kingdom", "uk", "gb", "england"),
    "US": ("usa", "united states", "us", "u.s.a."),
    "AT": ("austria", "österreich", "at"),
}


def country_code(country: str | None) -> str | None:
    """Return the two letters of a country that somebody typed."""
    if country is None:
        return None
    typed = country.strip().lower()
    return next((code for code, names in COUNTRIES.items() if typed in names), None)


def title_case(name: str | None) -> str | None:
    """Return a name with single blanks and capitals, particles in small letters."""
    if name is None:
        return None
    words = [word.capitalize() for word in name.split()]
    return " ".join(word.lower() if word in {"Von", "De", "Van"} else word for word in words)


def is_email(email: str | None) -> bool:
    """Tell whether a text looks like an address of electronic mail."""
    return bool(email and re.fullmatch(r"[\w.+-]+@[\w-]+(\.[\w-]+)+", email.strip()))


def email_domain(email: str | None) -> str | None:
    """Return what stands behind the @, in small letters."""
    if email is None or "@" not in email:
        return None
    return email.strip().rsplit("@", 1)[1].lower()


def without_accents(text: str | None) -> str | None:
    """Return a text in plain letters."""
    if text is None:
        return None
    parts = unicodedata.normalize("NFKD", text)
    return "".join(part for part in parts if not unicodedata.combining(part))


def slug(text: str | None) -> str | None:
    """Return a text as it stands in an address."""
    return None if text is None else re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


LEGAL_FORM = re.compile(r"\b(gmbh|ag|inc|ltd|llc|kg|sa|co|corp|limited|the|und|and)\b\.?")


def company_key(name: str | None) -> str | None:
    """Return the name of a company without its legal form, in small letters, words in order."""
    if name is None:
        return None
    words = re.findall(r"\w+", LEGAL_FORM.sub(" ", name.lower().replace("&", " ")))
    return " ".join(sorted(words))


def similarity(one: str | None, other: str | None) -> float | None:
    """Return how similar two texts are, from 0 to 1."""
    if one is None or other is None:
        return None
    return difflib.SequenceMatcher(None, one.lower(), other.lower()).ratio()


def domain_of(url: str | None) -> str | None:
    """Return the host in an address, without www."""
    return urlsplit(url).netloc.lower().removeprefix("www.") or None if url else None


def section_of(url: str | None) -> str | None:
    """Return the first part of the path in an address."""
    return urlsplit(url).path.strip("/").split("/")[0] or "home" if url else None


def parameter_of(url: str | None, name: str) -> str | None:
    """Return the value of a parameter in an address."""
    return parse_qs(urlsplit(url).query).get(name, [None])[0] if url else None


BOT = re.compile(r"bot|crawl|spider|curl|wget|python-requests|monitor", re.IGNORECASE)


def is_bot(agent: str | None) -> bool:
    """Tell whether a user agent is a program."""
    return agent is None or BOT.search(agent) is not None


def browser_of(agent: str | None) -> str | None:
    """Return browser and main version of a user agent."""
    if agent is None:
        return None
    for name, token in (("Edge", "Edg"), ("Firefox", "Firefox"), ("Chrome", "Chrome")):
        version = re.search(rf"{token}/(\d+)", agent)
        if version:
            return f"{name} {version[1]}"
    return "Safari" if "Safari" in agent else "other"


def device_of(agent: str | None) -> str | None:
    """Return the kind of device of a user agent."""
    if agent is None:
        return None
    if re.search(r"iPad|Tablet", agent):
        return "tablet"
    return "phone" if re.search(r"iPhone|Android|Mobile", agent) else "desktop"


def is_private(address: str | None) -> bool:
    """Tell whether an address is one of a local network."""
    return address is not None and ipaddress.ip_address(address).is_private


def subnet_of(address: str | None) -> str | None:
    """Return the network of 256 addresses that an address belongs to."""
    return address and str(ipaddress.ip_network(f"{address}/24", strict=False))


def is_iban(written: str | None) -> bool:
    """Tell whether the check digits of a bank account are right."""
    if written is None:
        return False
    letters = re.sub(r"\s", "", written).upper()
    if not re.fullmatch(r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}", letters):
        return False
    digits = "".join(str(int(letter, 36)) for letter in letters[4:] + letters[:4])
    return int(digits) % 97 == 1


def order_number(reference: str | None) -> int | None:
    """Return the number of an order that somebody wrote into a bank transfer."""
    number = re.search(r"(?:order|ord|inv|no)\D{0,4}0*(\d+)", (reference or "").lower())
    return int(number[1]) if number else None


WORDS = {
    "great": 2,
    "thanks": 1,
    "good": 1,
    "love": 2,
    "late": -1,
    "broken": -2,
    "refund": -1,
    "angry": -2,
    "never": -1,
    "wrong": -1,
}


def mood_of(text: str | None) -> int:
    """Return how content a text sounds."""
    return sum(WORDS.get(word, 0) for word in re.findall(r"[a-z]+", (text or "").lower()))


def topic_of(subject: str | None) -> str:
    """Return what a ticket is about, by the first pattern that its subject has."""
    text = (subject or "").lower()
    for topic, pattern in (
        ("delivery", r"deliver|parcel|ship|late"),
        ("payment", r"pay|invoice|refund|card"),
        ("account", r"login|password|account"),
    ):
        if re.search(pattern, text):
            return topic
    return "other"


def masked(text: str | None) -> str | None:
    """Return a text without addresses of mail and long numbers."""
    if text is None:
        return None
    return re.sub(r"\d{6,}", "<number>", re.sub(r"\S+@\S+", "<email>", text))


def working_days(first: dt.date | None, last: dt.date | None) -> int | None:
    """Return how many days from Monday to Friday are after a day, up to another."""
    if first is None or last is None:
        return None
    days = (first + dt.timedelta(days=day + 1) for day in range((last - first).days))
    return sum(day.weekday() < 5 for day in days)


def years_at(birthday: dt.date | None, day: dt.date) -> int | None:
    """Return how many years old somebody is on a day."""
    if birthday is None:
        return None
    return day.year - birthday.year - ((day.month, day.day) < (birthday.month, birthday.day))


def normalized(texts: pd.Series) -> pd.Series:
    """Return texts in small letters, without numbers, signs and double blanks."""
    bare = texts.str.lower().str.replace(r"[^a-z ]+", " ", regex=True)
    return bare.str.split().str.join(" ")


def discounted(prices: pd.Series, pieces: pd.Series) -> pd.Series:
    """Return what so many pieces cost, ten and more at a lower price."""
    costs = prices * pieces
    return costs.where(pieces < 10, costs * 0.9).round(2)
