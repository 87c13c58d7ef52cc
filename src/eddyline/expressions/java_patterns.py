r"""Regular expressions of Java's that RE2 decides alike, and what texts must hold to match them.

The subset: characters and their escapes, classes with ranges (no unions and intersections), ``\d
\w \s \h \v`` and their negations, the dot, groups (also named ones), alternatives, quantifiers up
to 1,000, greedy or lazy, ``^ $ \A \z \Z``, and the flags ``i`` and ``s``. Anything else raises
:class:`PatternOutsideError`: ``\b``, whose meaning depends on the version of Java, looking around,
references back, possessive quantifiers, ``\p{…}``, ``\Q…\E``, other flags.

Where the two differ: Java's dot stops at five ends of lines, and its ``$`` stands before the last
of them, too. The flag ``i`` is about ASCII, where RE2 folds ``K`` with the Kelvin sign: so letters
become classes. Whether a text has a match does not depend on greed, so lazy is greedy here. Java
ends a loop at an iteration that took nothing, which shows where it has an anchor in it: such are
left out.

Over 500 lines: one grammar, read once, from which both the pattern of RE2 and the literals come.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

MOST_CHARACTERS: Final = 4_000
"""Length of a pattern up to which it is looked at; public rules have some hundreds."""

MOST_DEPTH: Final = 50
"""Groups inside of each other: far from what Python's stack holds."""

MOST_REPETITIONS: Final = 1_000
"""RE2's own limit for one counted quantifier."""

MOST_LITERALS: Final = 64
"""Literals one of which a match has: a rule with more words than that is asked everywhere."""

MOST_NEEDED: Final = 3
"""Sets of literals of a pattern, of which a text needs one each: the rare one is looked at."""

LEAST_LETTERS: Final = 3
"""Characters of literals in all sets but the best: shorter ones stand in nearly every text."""

MOST_SPELLINGS: Final = 16
"""Texts that a part of a pattern stands for, up to which these are followed word by word."""

LAST: Final = 0x10FFFF
"""The highest code point."""

Ranges: TypeAlias = "tuple[tuple[int, int], ...]"
"""Code points, from and to, ascending and apart."""


class PatternOutsideError(ValueError):
    """A regular expression is not in the subset, or not valid; says what is in the way."""


@dataclass(frozen=True, slots=True)
class TextSearch:
    """What is looked for in texts: a pattern of RE2, and what is known of its matches.

    A match has one literal of each set in ``needed``, in whatever ASCII case (they are in lower
    case), the best first; with none, nothing is known. If ``exact``, a text that has them matches.
    With ``before_end``, a text is searched without the end of its last line as well.
    """

    pattern: str
    needed: tuple[tuple[str, ...], ...] = ()
    exact: bool = False
    before_end: bool = False


@lru_cache(maxsize=1 << 15)
def java_search(pattern: str) -> TextSearch:
    r"""Return what ``java.util.regex`` would find; PatternOutsideError for what is not known.

    >>> java_search("(?i)user=(root|admin) .*failed").needed
    (('user=admin ', 'user=root '), ('failed',))
    >>> java_search(r"a(?=b)")
    Traceback (most recent call last):
    eddyline.expressions.java_patterns.PatternOutsideError: looking around in a regular expression
    """
    if len(pattern) > MOST_CHARACTERS:
        raise PatternOutsideError(f"a regular expression of more than {MOST_CHARACTERS} characters")
    parser = _Parser(pattern)
    whole = parser.whole()
    if parser.line_end and parser.text_end:
        raise PatternOutsideError("both $ and \\z in a regular expression")
    needed = best_literals(whole.known)
    exact = whole.spellings is not None and whole.folded and bool(needed)
    search = TextSearch(whole.pattern, tuple(map(_distinct, needed)), exact, parser.line_end)
    try:
        matching(search, pa.array([""]))
    except pa.ArrowInvalid:
        raise PatternOutsideError("a regular expression that is too large for RE2") from None
    return search


def matching(search: TextSearch, texts: pa.Array) -> pa.Array:
    """Return which of these texts, all valid UTF-8, have a match; NULL for NULL."""
    found = pc.match_substring_regex(texts, pattern=search.pattern)
    if search.before_end:
        ended = pc.match_substring_regex(texts, pattern=f"{LINE_END}\\z")
        if pc.any(ended).as_py():
            shorter = without_line_end(texts)
            found = pc.or_(found, pc.match_substring_regex(shorter, pattern=search.pattern))
    return found


def without_line_end(texts: pa.Array) -> pa.Array:
    """Return texts without the end of their last line, where that is the end of the text."""
    return pc.replace_substring_regex(texts, pattern=f"{LINE_END}\\z", replacement="")


LINE_END: Final = r"(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])"
"""What ends lines in Java."""


# ---------------------------------------------------------------- sets of characters


def _ranges(pairs: Iterable[tuple[int, int]]) -> Ranges:
    """Return code points in their normal form."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(pairs):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(merged[-1][1], high)
        else:
            merged.append((low, high))
    return tuple(merged)


def _others(ranges: Ranges) -> Ranges:
    """Return all other code points."""
    lows = [0, *(high + 1 for _, high in ranges)]
    highs = [*(low - 1 for low, _ in ranges), LAST]
    return tuple((low, high) for low, high in zip(lows, highs, strict=True) if low <= high)


_CASES: Final = ((ord("a"), ord("z"), -32), (ord("A"), ord("Z"), 32))


@lru_cache(maxsize=1 << 12)
def _either_case(ranges: Ranges) -> Ranges:
    """Return code points with the other case of all ASCII letters among them."""
    swapped = [
        (max(low, first) + step, min(high, last) + step)
        for low, high in ranges
        for first, last, step in _CASES
        if max(low, first) <= min(high, last)
    ]
    return _ranges([*ranges, *swapped])


def _of(characters: str) -> Ranges:
    return _ranges((ord(character), ord(character)) for character in characters)


_DIGITS: Final = ((ord("0"), ord("9")),)
_NAMED: Final = {
    "d": _DIGITS,
    "w": _ranges([*_DIGITS, (ord("A"), ord("Z")), (ord("a"), ord("z")), (ord("_"), ord("_"))]),
    "s": _of(" \t\n\x0b\f\r"),
    "h": _ranges([*_of(" \t\xa0\u1680\u180e\u202f\u205f\u3000"), (0x2000, 0x200A)]),
    "v": _of("\n\x0b\f\r\x85\u2028\u2029"),
}
_CLASSES: Final = _NAMED | {name.upper(): _others(ranges) for name, ranges in _NAMED.items()}
_ENDS_OF_LINES: Final = _of("\n\r\x85\u2028\u2029")
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_CODES: Final = re.compile(r"x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})")
_COUNTS: Final = re.compile(r"\{([0-9]{1,4})(?:(,)([0-9]{1,4})?)?\}")
_FLAGS: Final = re.compile(r"\?([is]*)(?:-([is]+))?([:)])")
_NAME: Final = re.compile(r"\?<([a-zA-Z][a-zA-Z0-9]*)>")
_SURROGATES: Final = range(0xD800, 0xE000)


def _shown(ranges: Ranges) -> str:
    """Return code points as RE2's class."""
    if not ranges:
        raise PatternOutsideError("a class without characters in a regular expression")
    if ranges == ((0, LAST),):
        return "(?s:.)"
    parts = [
        f"\\x{{{low:x}}}" if low == high else f"\\x{{{low:x}}}-\\x{{{high:x}}}"
        for low, high in ranges
    ]
    alone = len(parts) == 1 and ranges[0][0] == ranges[0][1]
    return parts[0] if alone else f"[{''.join(parts)}]"


# ---------------------------------------------------------------- parts of patterns


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a pattern.

    ``spellings`` are all texts, in lower case, that it stands for, None where they are too many;
    ``folded`` says that their case does not matter. One of each set in ``needed`` is in whatever it
    matches. ``asserts`` says whether it has an anchor, ``ends`` whether ``$``
    stands at its end.
    """

    pattern: str
    spellings: frozenset[str] | None = None
    needed: tuple[frozenset[str], ...] = ()
    folded: bool = True
    asserts: bool = False
    ends: bool = False

    @property
    def known(self) -> tuple[frozenset[str], ...]:
        """Sets of literals, one of each of which is in whatever it matches."""
        return self.needed if self.spellings is None else (self.spellings,)


_NOTHING: Final = _Part("", frozenset({""}))


def lower(text: str) -> str:
    """Return a text with its ASCII letters in lower case, and all else as it was.

    >>> lower("ÄB\N{KELVIN SIGN}")
    'Äb\N{KELVIN SIGN}'
    """
    return text if text.islower() else text.translate(_LOWER)


_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


# Kept, as characters repeat: a rule of 33 takes 0.21 ms so, and 0.43 otherwise.
@lru_cache(maxsize=1 << 12)
def _character(ranges: Ranges) -> _Part:
    """Return the part that is one of these characters."""
    size = sum(high - low + 1 for low, high in ranges)
    spellings = None
    if size <= MOST_SPELLINGS:
        spellings = frozenset(
            lower(chr(code)) for low, high in ranges for code in range(low, high + 1)
        )
    return _Part(_shown(ranges), spellings, folded=_either_case(ranges) == ranges)


def _value(literals: frozenset[str]) -> tuple[int, int]:
    """Return what literals are worth: the length of the shortest, and few are better than many."""
    if not literals or len(literals) > MOST_LITERALS:
        return 0, 0
    return min(map(len, literals)), -len(literals)


def best_literals(sets: Iterable[frozenset[str]]) -> tuple[frozenset[str], ...]:
    """Return the sets of literals that are worth most, the best first."""
    ranked = sorted(set(sets), key=lambda literals: (_value(literals), sorted(literals)))[::-1]
    worth = [literals for literals in ranked if _value(literals)[0]]
    further = [literals for literals in worth[1:] if _value(literals)[0] >= LEAST_LETTERS]
    return (*worth[:1], *further[: MOST_NEEDED - 1])


def _in_a_row(parts: Sequence[_Part]) -> _Part:
    """Return parts that follow on each other."""
    if any(part.ends for part in parts[:-1]):
        raise PatternOutsideError("$ before the end of a regular expression")
    needed: list[frozenset[str]] = []
    run, whole = frozenset({""}), True
    for part in parts:
        longer = None
        if part.spellings is not None and len(run) * len(part.spellings) <= MOST_SPELLINGS:
            longer = frozenset(one + other for one in run for other in part.spellings)
        if longer is not None:
            run = longer
            continue
        whole = False
        needed += [run, *part.needed]
        run = frozenset({""})
        if part.spellings is not None and len(part.spellings) <= MOST_SPELLINGS:
            run = part.spellings
    asserts = any(part.asserts for part in parts)
    return _Part(
        "".join(part.pattern for part in parts),
        run if whole and not asserts else None,
        best_literals([*needed, run]),
        all(part.folded for part in parts),
        asserts,
        bool(parts) and parts[-1].ends,
    )


def _one_of(parts: Sequence[_Part]) -> _Part:
    """Return parts as alternatives."""
    if len(parts) == 1:
        return parts[0]
    spellings: frozenset[str] | None = frozenset()
    for part in parts:
        if spellings is not None and part.spellings is not None:
            spellings |= part.spellings
        else:
            spellings = None
    known = [best_literals(part.known)[:1] for part in parts]
    needed = (frozenset[str]().union(*itertools.chain(*known)),) if all(known) else ()
    if spellings is not None and len(spellings) > MOST_LITERALS:
        spellings = None
    return _Part(
        f"(?:{'|'.join(part.pattern for part in parts)})",
        spellings,
        best_literals(needed),
        all(part.folded for part in parts),
        any(part.asserts for part in parts),
        any(part.ends for part in parts),
    )


def _distinct(literals: frozenset[str]) -> tuple[str, ...]:
    """Return literals without those that have another one in them."""
    kept = [
        literal
        for literal in literals
        if not any(other != literal and other in literal for other in literals)
    ]
    return tuple(sorted(kept))


class _Parser:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._depth = 0
        self._any_case = self._any_character = False
        self._names: set[str] = set()
        self.line_end = self.text_end = False

    def whole(self) -> _Part:
        """Return the whole pattern."""
        whole = self._alternatives()
        if self._at < len(self._pattern):
            raise PatternOutsideError("a parenthesis too many in a regular expression")
        return whole

    def _next(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _take(self, sign: str) -> bool:
        if not self._pattern.startswith(sign, self._at):
            return False
        self._at += len(sign)
        return True

    def _alternatives(self) -> _Part:
        parts = [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        return _one_of(parts)

    def _sequence(self) -> _Part:
        parts: list[_Part] = []
        while self._next() not in ("", "|", ")"):
            parts.append(self._quantified(self._atom()))
        return _in_a_row(parts) if parts else _NOTHING

    def _atom(self) -> _Part:  # noqa: PLR0911 - one a sign
        sign = self._next()
        self._at += 1
        match sign:
            case "(":
                return self._group()
            case "[":
                return _character(self._class())
            case ".":
                return _character(((0, LAST),) if self._any_character else _others(_ENDS_OF_LINES))
            case "^":
                return _Part("\\A", None, asserts=True)
            case "$":
                return self._line_end()
            case "\\":
                return self._escaped()
            case "*" | "+" | "?" | "{":
                raise PatternOutsideError(f"{sign} after nothing in a regular expression")
        return self._single(ord(sign))

    def _single(self, code: int) -> _Part:
        ranges: Ranges = ((code, code),)
        return _character(_either_case(ranges) if self._any_case else ranges)

    def _line_end(self) -> _Part:
        self.line_end = True
        return _Part("\\z", None, asserts=True, ends=True)

    def _escaped(self) -> _Part:
        sign = self._next()
        if sign in _CLASSES:
            self._at += 1
            return _character(_CLASSES[sign])
        if sign == "A":
            self._at += 1
            return _Part("\\A", None, asserts=True)
        if sign == "Z":
            self._at += 1
            return self._line_end()
        if sign == "z":
            self._at += 1
            self.text_end = True
            return _Part("\\z", None, asserts=True)
        return self._single(self._escape())

    def _escape(self) -> int:
        """Return the code point of an escape, behind its backslash."""
        sign = self._next()
        code = _CODES.match(self._pattern, self._at)
        if code is not None:
            self._at = code.end()
            number = int(next(filter(None, code.groups())), 16)
            if number > LAST or number in _SURROGATES:
                raise PatternOutsideError("half of a character in a regular expression")
            return number
        self._at += 1
        if sign in _ESCAPES and sign:
            return ord(_ESCAPES[sign])
        if not sign or not sign.isascii() or sign.isalnum():
            raise PatternOutsideError(f"\\{sign} in a regular expression")
        return ord(sign)

    def _group(self) -> _Part:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise PatternOutsideError("a regular expression with too many groups in groups")
        flags = self._any_case, self._any_character
        if self._next() == "?":
            switch, name = (
                _FLAGS.match(self._pattern, self._at),
                _NAME.match(self._pattern, self._at),
            )
            if switch is not None:
                self._at = switch.end()
                on, off = switch[1], switch[2] or ""
                self._any_case = (self._any_case or "i" in on) and "i" not in off
                self._any_character = (self._any_character or "s" in on) and "s" not in off
                if switch[3] == ")":
                    self._depth -= 1
                    if self._next() in tuple("*+?{"):
                        raise PatternOutsideError("a quantifier of a flag in a regular expression")
                    return _NOTHING
            elif name is not None and name[1] not in self._names:
                self._at = name.end()
                self._names.add(name[1])
            else:
                raise PatternOutsideError(self._unknown_group())
        inner = self._alternatives()
        if not self._take(")"):
            raise PatternOutsideError("a parenthesis that is not closed in a regular expression")
        self._any_case, self._any_character = flags
        self._depth -= 1
        return replace(inner, pattern=f"(?:{inner.pattern})")

    def _unknown_group(self) -> str:
        sign = self._pattern[self._at + 1 : self._at + 2]
        if sign and sign in "=!<":
            return "looking around in a regular expression"
        return f"(?{sign} in a regular expression"

    def _quantified(self, part: _Part) -> _Part:
        least, most, sign = self._quantifier()
        if not sign:
            return part
        if part.asserts:
            raise PatternOutsideError("a quantifier over an anchor in a regular expression")
        if part is _NOTHING:
            raise PatternOutsideError("a quantifier of nothing in a regular expression")
        self._take("?")  # lazy: whether there is a match does not depend on it
        if self._next() in tuple("*+?{"):
            raise PatternOutsideError("quantifiers of quantifiers in a regular expression")
        if (least, most) == (1, 1):
            return part
        return _Part(f"(?:{part.pattern}){sign}", None, part.known if least else (), part.folded)

    def _quantifier(self) -> tuple[int, int | None, str]:
        """Return the least and the most repetitions, and RE2's sign for it; none without one."""
        sign = self._next()
        if sign in tuple("*+?"):
            self._at += 1
            return int(sign == "+"), 1 if sign == "?" else None, sign
        if sign != "{":
            return 1, 1, ""
        counts = _COUNTS.match(self._pattern, self._at)
        if counts is None:
            raise PatternOutsideError("an open brace in a regular expression")
        self._at = counts.end()
        least = int(counts[1])
        most = least if counts[2] is None else None if counts[3] is None else int(counts[3])
        if max(least, most or 0) > MOST_REPETITIONS or (most is not None and most < least):
            raise PatternOutsideError(f"{counts[0]} in a regular expression")
        if most == 0:
            raise PatternOutsideError("{0} in a regular expression")
        return least, most, counts[0]

    def _class(self) -> Ranges:
        """Return the characters of a class, behind its bracket."""
        negated = self._take("^")
        ranges: list[tuple[int, int]] = []
        if self._next() == "]":
            raise PatternOutsideError("a class that begins with ] in a regular expression")
        first = True
        while not self._take("]"):
            sign = self._next()
            if not sign or sign == "[" or self._pattern.startswith("&&", self._at):
                raise PatternOutsideError("a class of classes, or an open one")
            if sign == "\\" and self._pattern[self._at + 1 : self._at + 2] in _CLASSES:
                ranges += _CLASSES[self._pattern[self._at + 1]]
                self._at += 2
                if self._next() == "-" and self._pattern[self._at + 1 : self._at + 2] != "]":
                    raise PatternOutsideError("a range from a class in a regular expression")
            else:
                ranges.append(self._range(may_be_dash=first))
            first = False
        normal = _ranges(ranges)
        normal = _either_case(normal) if self._any_case else normal
        return _others(normal) if negated else normal

    def _range(self, *, may_be_dash: bool) -> tuple[int, int]:
        """Return one character of a class, or a range."""
        dash = self._next() == "-"
        low = self._member()
        following = self._pattern[self._at : self._at + 2]
        if dash and following[:1] != "]" and (not may_be_dash or following[:1] == "-"):
            raise PatternOutsideError("a - in the middle of a class in a regular expression")
        if following[:1] != "-" or following == "-]":
            return low, low
        self._at += 1
        if following[1:] in ("", "[", "-") or self._pattern.startswith("&&", self._at):
            raise PatternOutsideError("a range without its end in a regular expression")
        high = self._member()
        if high < low:
            raise PatternOutsideError("a range that ends before it begins")
        return low, high

    def _member(self) -> int:
        sign = self._next()
        self._at += 1
        if sign != "\\":
            return ord(sign)
        if self._next() in _CLASSES:
            raise PatternOutsideError("a range to a class in a regular expression")
        return self._escape()
