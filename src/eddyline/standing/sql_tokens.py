"""The tokens of SQL text, as far as one has to know them to find a clause in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

QUOTED: Final = r"""
    '(?:\\.|''|[^'\\])*'            # texts, in which nothing is a clause or a marker
    | "(?:\\.|""|[^"\\])*"
    | `(?:``|[^`])*`                # names
"""

COMMENT: Final = r"""
    --[^\n]*
    | /\*.*?\*/
"""

_TOKENS: Final = re.compile(
    rf"""
    (?P<nothing> \s+ | {COMMENT})
    | {QUOTED}
    | \d+(?:\.\d+)?
    | \w+
    | ::
    | .
    """,
    re.VERBOSE | re.DOTALL,
)


class SqlToken(NamedTuple):
    """A word, a number, a quoted text or name, or a sign, and where it stands in the text."""

    text: str
    start: int

    @property
    def end(self) -> int:
        """Where what follows begins."""
        return self.start + len(self.text)

    @property
    def word(self) -> str:
        """The text in capitals: what keywords are compared with."""
        return self.text.upper()

    @property
    def name(self) -> str | None:
        """The name that it is, without quotes; None for what is none."""
        if self.text.startswith("`"):
            return self.text[1:-1].replace("``", "`")
        return self.text if re.fullmatch(r"[^\W\d]\w*", self.text) else None


def sql_tokens(sql: str) -> Iterator[SqlToken]:
    """Yield the tokens of a text, without spaces and comments.

    >>> [token.text for token in sql_tokens("SELECT 'a -- b' /* c */ FROM `d e`")]
    ['SELECT', "'a -- b'", 'FROM', '`d e`']
    """
    for match in _TOKENS.finditer(sql):
        if match["nothing"] is None:
            yield SqlToken(match[0], match.start())
