"""Functions of texts and of lists of authors: NULL in, NULL out, the standard library."""

# ruff: noqa: PLR2004 - limits as people write them

from __future__ import annotations

import difflib
import hashlib
import itertools
import json
import re
import unicodedata
from collections import Counter
from typing import Any

from bench.others.words import LITTLE_WORDS

STOPWORDS = frozenset(LITTLE_WORDS)
SUFFIXES = (
    *("ization", "ations", "ation", "ments", "ment", "ings", "ing", "ities", "ity", "ical", "ies"),
    *("ness", "ive", "ed", "es", "al", "ic", "ly", "s"),
)


def parse_list(text: str | None) -> list[Any] | None:
    """The list in a JSON text, None if there is none."""
    if text is None:
        return None
    try:
        values = json.loads(text)
    except ValueError:
        return None
    return values if isinstance(values, list) else None


def author_count(text: str | None) -> int | None:
    """The number of authors in a JSON list."""
    authors = parse_list(text)
    return None if authors is None else len(authors)


def remove_short_terms(text: str | None) -> str | None:
    """The JSON list without punctuation and without terms of less than three letters."""
    authors = parse_list(text)
    if authors is None:
        return None
    kept = []
    for author in authors:
        terms = re.sub(r"[^\w\s]", " ", author).split()
        kept.append(" ".join(term for term in terms if len(term) > 2))
    return json.dumps(kept, ensure_ascii=False)


def sort_terms(text: str | None) -> str | None:
    """The JSON list with the terms of each entry in alphabetical order."""
    authors = parse_list(text)
    if authors is None:
        return None
    return json.dumps([" ".join(sorted(author.split())) for author in authors], ensure_ascii=False)


def sort_list(text: str | None) -> str | None:
    """The JSON list in alphabetical order."""
    authors = parse_list(text)
    return None if authors is None else json.dumps(sorted(authors), ensure_ascii=False)


def author_pairs(text: str | None) -> list[str] | None:
    """All pairs of authors of a JSON list, each as one text."""
    authors = parse_list(text)
    if authors is None:
        return None
    return [f"{one} & {other}" for one, other in itertools.combinations(authors, 2)]


def author_list(text: str | None) -> list[str] | None:
    """The authors of a JSON list, in lower case and sorted."""
    authors = parse_list(text)
    return None if authors is None else sorted(author.lower() for author in authors)


def lower_text(text: str | None) -> str | None:
    """The text in lower case, without surrounding spaces."""
    return None if text is None else text.strip().lower()


def word_count(text: str | None) -> int | None:
    """The number of words."""
    return None if text is None else len(text.split())


def remove_short_words(text: str | None) -> str | None:
    """The words of at least three letters that are no stop words, in lower case."""
    if text is None:
        return None
    words = re.findall(r"[a-z]+", text.lower())
    return " ".join(word for word in words if len(word) > 2 and word not in STOPWORDS)


def stem_words(text: str | None) -> str | None:
    """The text with common endings of English words removed."""
    if text is None:
        return None
    stems = []
    for word in text.split():
        for suffix in SUFFIXES:
            if word.endswith(suffix) and len(word) - len(suffix) >= 3:
                word = word[: -len(suffix)]  # noqa: PLW2901 - as people write it
                break
        stems.append(word)
    return " ".join(stems)


def keywords_of(text: str | None) -> list[str] | None:
    """The eight most frequent words of more than three letters, then alphabetically."""
    if text is None:
        return None
    counts = Counter(word for word in text.split() if len(word) > 3)
    return sorted(counts, key=lambda word: (-counts[word], word))[:8]


def readability(text: str | None) -> float | None:
    """Flesch's reading ease of an English text."""
    if text is None:
        return None
    words = re.findall(r"[A-Za-z]+", text)
    if not words:
        return None
    sentences = max(1, len(re.findall(r"[.!?]+", text)))
    syllables = 0
    for word in words:
        count = len(re.findall(r"[aeiouy]+", word.lower()))
        if word.endswith("e") and count > 1:
            count -= 1
        syllables += max(1, count)
    return 206.835 - 1.015 * len(words) / sentences - 84.6 * syllables / len(words)


def slug(text: str | None) -> str | None:
    """The text as a part of an address: plain letters, digits and hyphens."""
    if text is None:
        return None
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")


def title_similarity(one: str | None, other: str | None) -> float | None:
    """How similar two titles are letter by letter, from 0 to 1."""
    if one is None or other is None:
        return None
    return difflib.SequenceMatcher(None, one.strip().lower(), other.strip().lower()).ratio()


def word_jaccard(one: str | None, other: str | None) -> float | None:
    """The share of the words of two texts that are in both."""
    if one is None or other is None:
        return None
    these, those = set(one.split()), set(other.split())
    if not these and not those:
        return 0.0
    return len(these & those) / len(these | those)


def edit_distance(one: str | None, other: str | None) -> int | None:
    """The edit distance of Levenshtein."""
    if one is None or other is None:
        return None
    previous = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        current = [row]
        for column, another in enumerate(other, 1):
            current.append(
                min(
                    previous[column] + 1,
                    current[-1] + 1,
                    previous[column - 1] + (letter != another),
                )
            )
        previous = current
    return previous[-1]


def mentions_delay(note: str | None) -> bool:
    """Whether a note complains about lateness."""
    return note is not None and re.search(r"\b(late|delay(ed)?)\b", note, re.IGNORECASE) is not None


def fingerprint(text: str | None) -> str | None:
    """Sixteen digits of a hash of the text."""
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()[:16]


def pseudonym(text: str | None) -> str | None:
    """A pseudonym that is slow to guess."""
    if text is None:
        return None
    return hashlib.pbkdf2_hmac("sha256", text.encode(), b"second set", 200).hex()[:20]


def hash_bucket(text: str | None, buckets: int | None) -> int | None:
    """One of so many buckets, always the same for the same text."""
    if text is None or buckets is None:
        return None
    return int(hashlib.md5(text.encode()).hexdigest()[:8], 16) % buckets  # noqa: S324 - no secret
