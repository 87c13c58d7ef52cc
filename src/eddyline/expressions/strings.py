"""LIKE, and tests for a prefix, a suffix or a substring."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.expressions.expression import StringTest
from eddyline.expressions.malformed_text import with_valid_text
from eddyline.expressions.program import Errors, Program, Run
from eddyline.expressions.strict import unary
from eddyline.expressions.vector import NO_ERRORS

_MATCHERS = {
    StringTest.STARTS_WITH: pc.starts_with,
    StringTest.ENDS_WITH: pc.ends_with,
    StringTest.CONTAINS: pc.match_substring,
}


def string_match(test: StringTest, operand: Program, needle: str) -> Run:
    """Prepare a bytewise prefix, suffix or substring test."""
    matcher = _MATCHERS[test]
    return unary(operand, lambda values: (matcher(values, pattern=needle), NO_ERRORS))


def like(operand: Program, pattern: str, escape: str) -> Run:
    """Prepare LIKE: ``_`` is one code point, ``%`` any number, line ends included.

    What is no valid UTF-8 counts as the replacement characters that Java puts in its place.
    """
    expression = regular_expression(pattern, escape)

    def matched(values: pa.Array) -> tuple[pa.Array, Errors]:
        return pc.match_substring_regex(with_valid_text(values), pattern=expression), NO_ERRORS

    return unary(operand, matched)


def pattern_fault(pattern: str, escape: str) -> str | None:
    """Return why Spark rejects a LIKE pattern, or None if it takes it."""
    if len(escape) != 1:
        return "LIKE with an escape that is not one character"
    position = 0
    while (position := pattern.find(escape, position)) >= 0:
        escaped = pattern[position + 1 : position + 2]
        if not escaped:
            return "LIKE with its escape character at the end of the pattern"
        if escaped not in ("_", "%", escape):
            return f"LIKE with its escape character before {escaped!r}"
        position += 2
    return None


def regular_expression(pattern: str, escape: str) -> str:
    r"""Return the RE2 expression of a faultless LIKE pattern.

    >>> regular_expression(r"a_\%%", "\\")
    '(?s)\\Aa.\\x{25}.*\\z'
    """
    parts: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            parts.append(_quoted(next(characters)))
        elif character == "_":
            parts.append(".")
        elif character == "%":
            parts.append(".*")
        else:
            parts.append(_quoted(character))
    return rf"(?s)\A{''.join(parts)}\z"


def _quoted(character: str) -> str:
    return character if character.isalnum() else f"\\x{{{ord(character):x}}}"
