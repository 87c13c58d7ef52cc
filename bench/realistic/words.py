"""Words, names and addresses as they occur: few of them often, most of them seldom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from bench.realistic.functions import STOP_WORDS

Strings = npt.NDArray[np.object_]

VOCABULARY: Final = 20_000
SYLLABLES: Final = (
    "ba",
    "con",
    "der",
    "el",
    "for",
    "gra",
    "hi",
    "in",
    "jo",
    "ker",
    "lo",
    "men",
    "na",
    "or",
    "pre",
    "qui",
    "ras",
    "ti",
    "un",
    "ver",
    "wo",
    "zy",
)
ACCENTED: Final = ("é", "ü", "ö", "ñ", "ç", "å")


def strings(values: list[str]) -> Strings:
    """Return texts as an array of objects, which NumPy draws from."""
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


@dataclass(frozen=True, slots=True)
class Words:
    """Draws texts; ``draw`` makes all choices."""

    draw: np.random.Generator
    vocabulary: Strings

    @classmethod
    def from_generator(cls, draw: np.random.Generator) -> Words:
        """Make a vocabulary of invented words of one to four syllables."""
        lengths = draw.integers(1, 5, size=2 * VOCABULARY)
        made = ("".join(draw.choice(SYLLABLES, size=length)) for length in lengths)
        return cls(draw, strings(list(dict.fromkeys(made))[:VOCABULARY]))

    def zipf(self, values: Strings, size: int, exponent: float = 1.0) -> Strings:
        """Draw from values of which the n-th is drawn as often as the n-th word of a text."""
        weights = np.arange(1, len(values) + 1) ** -exponent
        return values[self.draw.choice(len(values), size=size, p=weights / weights.sum())]

    def texts(self, size: int, least: int, most: int) -> Strings:
        """Return texts of words; in seven of ten English stop words are between, else others."""
        lengths = self.draw.integers(least, most + 1, size=size)
        drawn = iter(self.zipf(self.vocabulary, int(lengths.sum())))
        languages = self.draw.choice(list(STOP_WORDS), size=size, p=(0.7, 0.2, 0.1))
        stops = {name: sorted(words) for name, words in STOP_WORDS.items()}
        numbers = iter(self.draw.integers(10, size=int(lengths.sum())))
        return strings(
            [
                " ".join(
                    stops[language][next(numbers)] if place % 3 == 1 else next(drawn)
                    for place in range(length)
                )
                for language, length in zip(languages, lengths, strict=True)
            ]
        )

    def names(self, size: int) -> Strings:
        """Return distinct names of persons, some with a title, some with an accent."""
        first, last = (self.draw.choice(self.vocabulary, size=size) for _ in "ab")
        titles = self.draw.choice(["", "", "", "", "Dr. ", "Prof. "], size=size)
        accents = self.draw.choice(["", "", "", *ACCENTED], size=size)
        return strings(
            [
                f"{title}{one.title()} {two.title()}{accent}"
                for title, one, two, accent in zip(titles, first, last, accents, strict=True)
            ]
        )

    def addresses(self, size: int) -> Strings:
        """Return IP addresses, one in five of our own networks."""
        parts = self.draw.integers(1, 255, size=(size, 4))
        parts[self.draw.random(size) < 0.2, 0] = 10  # noqa: PLR2004 - one in five
        return strings([".".join(map(str, each)) for each in parts])

    def agents(self, size: int) -> Strings:
        """Return user agents: some systems, some browsers, many versions; one in ten is a bot."""
        systems = [
            "Windows NT 10.0; Win64; x64",
            "Macintosh; Intel Mac OS X 10_15_7",
            "X11; Linux x86_64",
            "Linux; Android {}; SM-G99{}B",
            "iPhone; CPU iPhone OS {}_{} like Mac OS X",
        ]
        browsers = [
            "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{}.0.{}.0 Safari/537.36",
            "AppleWebKit/605.1.15 (KHTML, like Gecko) Version/{}.{} Safari/605.1.15",
            "Gecko/20100101 Firefox/{}.{}",
            "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{}.0.{}.0 Safari/537.36 Edg/120.0",
        ]
        made = []
        for _ in range(size):
            a, b, c, d = self.draw.integers(9, 130, size=4)
            if self.draw.random() < 0.1:  # noqa: PLR2004 - one in ten
                made.append(f"Mozilla/5.0 (compatible; {self.draw.choice(SYLLABLES)}bot/{a}.{b})")
                continue
            system = str(self.draw.choice(systems)).format(a, b)
            made.append(f"Mozilla/5.0 ({system}) {self.draw.choice(browsers)}".format(c, d))
        return strings(made)
