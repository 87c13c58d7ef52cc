"""The tokens of a query in Spark's SQL, as far as needed to tell what stands where."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class TokenKind(StrEnum):
    """The kinds of token; blanks and comments are not tokens."""

    TEXT = "text"  # in single or double quotes
    WORD = "word"  # a keyword or a name
    NAME = "name"  # in backticks
    SIGN = "sign"


@dataclass(frozen=True, slots=True)
class Token:
    """A token and where it stands: ``sql[start:end]``."""

    kind: TokenKind
    source: str
    start: int

    @property
    def end(self) -> int:
        """The place after the token."""
        return self.start + len(self.source)


_TOKEN: Final = re.compile(
    r"""
    (?P<skipped> \s+ | --(?:\\\n|[^\r\n])* )
  | (?P<comment> /\* )
  | (?P<raw> r(?:'[^']*'|"[^"]*") )
  | (?P<text> '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$ )
  | (?P<name> `(?:[^`]|``)*` )
  | (?P<word> \w+ )
  | (?P<sign> \|> | . )
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_COMMENT_SIGN: Final = re.compile(r"/\*|\*/")


def tokens(sql: str) -> Iterator[Token]:
    r"""Yield the tokens of a text, even of one that does not parse.

    >>> [token.source for token in tokens("SELECT 'it''s' -- it's\n /* /* ' */ */ FROM `a``b`")]
    ['SELECT', "'it''s'", 'FROM', '`a``b`']
    """
    place = 0
    while lexeme := _TOKEN.match(sql, place):
        place = lexeme.end()
        match lexeme.lastgroup:
            case "skipped":
                continue
            case "comment":
                place = _end_of_comment(sql, place)
            case "raw":
                yield Token(TokenKind.TEXT, lexeme[0], lexeme.start())
            case kind:
                yield Token(TokenKind(str(kind)), lexeme[0], lexeme.start())


def text_in(token: Token) -> str:
    r"""Return what a text in quotes says.

    >>> text_in(Token(TokenKind.TEXT, "'it''s \\'raw\\''", 0))
    "it's 'raw'"
    >>> text_in(Token(TokenKind.TEXT, r"r'a\b'", 0))
    'a\\b'
    """
    source = token.source
    if source[0] in "rR":
        return source[2:-1]
    if source[0] == "$":
        opening = source.index("$", 1) + 1
        return source[opening:-opening]
    quote = source[0]
    return re.sub(rf"\\(.)|{quote}{quote}", lambda found: found[1] or quote, source[1:-1])


def _end_of_comment(sql: str, place: int) -> int:
    """Return the place after a comment that was opened before; comments nest."""
    depth = 1
    while depth and (sign := _COMMENT_SIGN.search(sql, place)):
        depth += 1 if sign[0] == "/*" else -1
        place = sign.end()
    return len(sql) if depth else place
