"""LIKE, RLIKE, tests for a prefix, a suffix or a substring, length; texts that are not valid UTF-8.

A string in Spark may hold any bytes. Comparisons, keys, prefixes and the like go by these. Where
Spark needs characters, for LIKE or for rows that it pickles, it takes Java's text of them, in
which U+FFFD stands for what is malformed.

Over 500 lines: a test of a text and its pattern are evaluated, shown, and searched for by the same
rules of escapes, case and malformed bytes.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import ClassVar, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.expressions.catalyst_classes import (
    CatalystClass,
    Ingredients,
    NotTranslatedError,
    Recipe,
    SparkOperator,
    yes,
)
from eddyline.expressions.expression import Expression, Names, OfOne, Types
from eddyline.expressions.java_patterns import (
    PatternOutsideError,
    TextSearch,
    best_literals,
    java_search,
    lower,
    matching,
)
from eddyline.expressions.leaves import Argument, Literal
from eddyline.expressions.program import (
    Program,
    Run,
    binary,
    null_mask,
    true_mask,
    unary,
    without_errors,
)
from eddyline.expressions.value_types import is_text, is_text_like
from eddyline.expressions.vector import NO_ERRORS


class TextTest(Expression):
    """Base of tests of one text, the operand."""

    __slots__ = ()

    @property
    def prefix(self) -> str | None:
        """What the text must start with, where the test asks for that and nothing else."""
        return None

    @property
    def search(self) -> TextSearch:
        """What is looked for in Java's text of the operand."""
        raise NotImplementedError(f"nothing is looked for by {type(self).__name__}")

    def kernel(self) -> TextKernel:
        """Return what tells of texts whether they pass; what depends on the test is done here."""
        raise NotImplementedError(f"nothing is tested by {type(self).__name__}")


TextKernel: TypeAlias = Callable[[pa.Array], pa.Array]
"""Takes texts, and gives booleans; NULL for NULL."""


def _tested(operand: Program, test: TextTest) -> Run:
    kernel = test.kernel()
    return unary(operand, lambda values: (kernel(values), NO_ERRORS))


@dataclass(frozen=True, slots=True)
class Like(OfOne, TextTest):
    """SQL's LIKE against a constant pattern; ``escape`` is one character.

    ``_`` is one code point, ``%`` any number, line ends included. Invalid UTF-8 counts as the
    replacement characters that Java puts in its place.
    """

    pattern: str
    escape: str

    @property
    def prefix(self) -> str | None:
        """The text before a single ``%``."""
        if not self.pattern.endswith("%"):
            return None
        prefix = self.pattern.rstrip("%")
        return None if any(sign in prefix for sign in ("%", "_", self.escape)) else prefix

    @property
    def search(self) -> TextSearch:
        """The pattern, and the longest texts between its wildcards."""
        return like_search(self.pattern, self.escape)

    def fault(self, types: Types) -> str | None:
        """Refuse what is no text, and a pattern that Spark rejects."""
        if not is_text(types[0]):
            return f"LIKE of {types[0]}"
        return pattern_fault(self.pattern, self.escape)

    def kernel(self) -> TextKernel:
        """Return the match with a regular expression."""
        expression = regular_expression(self.pattern, self.escape)
        return lambda values: pc.match_substring_regex(with_valid_text(values), pattern=expression)

    def run(self, operands: tuple[Program, ...]) -> Run:
        """Return the test."""
        return _tested(operands[0], self)

    def text(self, names: Names) -> str:
        """Return the operand and the pattern."""
        return f"{self.operand.part(names)} LIKE {self.pattern!r}"


@dataclass(frozen=True, slots=True)
class RLike(OfOne, TextTest):
    """SQL's RLIKE against a constant pattern: whether Java's regular expression is found.

    Invalid UTF-8 counts as the replacement characters that Java puts in its place.
    """

    pattern: str

    @property
    def search(self) -> TextSearch:
        """What RE2 looks for instead."""
        return java_search(self.pattern)

    def fault(self, types: Types) -> str | None:
        """Refuse what is no text, and a pattern that RE2 may decide otherwise than Java."""
        if not is_text(types[0]):
            return f"RLIKE of {types[0]}"
        try:
            java_search(self.pattern)
        except PatternOutsideError as refusal:
            return str(refusal)
        return None

    def kernel(self) -> TextKernel:
        """Return the search."""
        search = self.search
        return lambda values: matching(search, with_valid_text(values))

    def run(self, operands: tuple[Program, ...]) -> Run:
        """Return the test."""
        return _tested(operands[0], self)

    def text(self, names: Names) -> str:
        """Return the operand and the pattern."""
        return f"{self.operand.part(names)} RLIKE {self.pattern!r}"


class PatternKind(StrEnum):
    """The language that a pattern is written in."""

    LIKE = "LIKE"
    RLIKE = "RLIKE"


@dataclass(frozen=True, slots=True)
class VariableMatch(Expression):
    """LIKE or RLIKE against a pattern that differs from query to query, as a parameter does.

    ``pattern`` is over parameters alone. Which values these have, and whether the test against
    each is exact, is asked where they are known: see :meth:`against`. Time grows with the distinct
    patterns of the rows at hand.
    """

    kind: PatternKind
    operand: Expression
    pattern: Expression
    escape: str = "\\"

    @property
    def children(self) -> tuple[Expression, ...]:
        """The text, and the pattern."""
        return (self.operand, self.pattern)

    def against(self, pattern: str | None) -> Expression:
        """Return the test against one pattern; its ``fault`` says where that is not exact."""
        if pattern is None:
            return Literal(None, pa.bool_())
        if self.kind is PatternKind.RLIKE:
            return RLike(self.operand, pattern)
        return simplified_like(Like(self.operand, pattern, self.escape))

    def fault(self, types: Types) -> str | None:
        """Refuse what is no text."""
        return None if all(map(is_text, types)) else f"{self.kind} of {types[0]} and {types[1]}"

    def run(self, operands: tuple[Program, ...]) -> Run:
        """Return the tests, pattern by pattern."""
        kernels: dict[str, TextKernel] = {}

        def matched(values: pa.Array | pa.Scalar, patterns: pa.Array | pa.Scalar) -> pa.Array:
            if isinstance(patterns, pa.Scalar):
                return self._kernel(patterns.as_py(), kernels)(values)
            if isinstance(values, pa.Scalar):
                values = pa.repeat(values, len(patterns))
            encoded = patterns.dictionary_encode()
            number = encoded.indices.fill_null(-1).to_numpy()
            found = np.zeros(len(values), np.bool_)
            for place, pattern in enumerate(encoded.dictionary.to_pylist()):
                own = np.flatnonzero(number == place)
                some = self._kernel(pattern, kernels)(values.take(pa.array(own)))
                found[own] = true_mask(some)
            unknown = null_mask(values) | (number < 0)
            return pa.array(found, mask=unknown)

        text, pattern = operands
        return binary(text, pattern, without_errors(matched))

    def _kernel(self, pattern: str, known: dict[str, TextKernel]) -> TextKernel:
        kernel = known.get(pattern)
        if kernel is None:
            test = self.against(pattern)
            if not isinstance(test, TextTest):
                raise TypeError(f"{test} is no test of a text")
            kernel = known[pattern] = test.kernel()
        return kernel

    def text(self, names: Names) -> str:
        """Return the operand and the pattern."""
        return f"{self.operand.part(names)} {self.kind} {self.pattern.part(names)}"


class StringTest(StrEnum):
    """What a string is tested for, against a constant string."""

    STARTS_WITH = "starts with"
    ENDS_WITH = "ends with"
    CONTAINS = "contains"


_MATCHERS: Final = {
    StringTest.STARTS_WITH: pc.starts_with,
    StringTest.ENDS_WITH: pc.ends_with,
    StringTest.CONTAINS: pc.match_substring,
}


@dataclass(frozen=True, slots=True)
class StringMatch(TextTest):
    """A prefix, suffix or substring test against a constant, bytewise."""

    test: StringTest
    operand: Expression
    needle: str

    @property
    def children(self) -> tuple[Expression, ...]:
        """The operand."""
        return (self.operand,)

    @property
    def prefix(self) -> str | None:
        """The needle, where it is to stand at the start."""
        return self.needle if self.test is StringTest.STARTS_WITH else None

    @property
    def search(self) -> TextSearch:
        """The needle, at its place."""
        start = r"\A" if self.test is StringTest.STARTS_WITH else ""
        end = r"\z" if self.test is StringTest.ENDS_WITH else ""
        pattern = f"{start}{''.join(map(_quoted, self.needle))}{end}"
        return TextSearch(pattern, ((lower(self.needle),),) if self.needle else ())

    def fault(self, types: Types) -> str | None:
        """Refuse what is no text."""
        return None if is_text(types[0]) else f"{self.test} of {types[0]}"

    def kernel(self) -> TextKernel:
        """Return the comparison of bytes."""
        matcher, needle = _MATCHERS[self.test], self.needle
        return lambda values: matcher(values, pattern=needle)

    def run(self, operands: tuple[Program, ...]) -> Run:
        """Return the test."""
        return _tested(operands[0], self)

    def text(self, names: Names) -> str:
        """Return the operand, the test and the needle."""
        return f"{self.operand.part(names)} {self.test} {self.needle!r}"


@dataclass(frozen=True, slots=True)
class Length(OfOne):
    """The number of a text's code points, or of a binary's bytes.

    In invalid UTF-8 Spark goes by what first bytes promise: see :func:`length_in_spark`.
    """

    type: ClassVar[pa.DataType] = pa.int32()

    def fault(self, types: Types) -> str | None:
        """Refuse what is neither text nor binary."""
        return None if is_text_like(types[0]) else f"length of {types[0]}"

    def run(self, operands: tuple[Program, ...]) -> Run:
        """Return the count."""
        (operand,) = operands
        count = _lengths if is_text(operand.type) else pc.binary_length
        return unary(operand, lambda values: (count(values).cast(self.type), NO_ERRORS))

    def text(self, names: Names) -> str:
        """Return the function."""
        return f"length({self.operand.text(names)})"


# ---------------------------------------------------------------- patterns


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


_SIMPLE: Final = re.compile("(%?)([^_%]+)(%?)", re.DOTALL)


def simplified_like(like: Like) -> TextTest:
    r"""Return what Spark makes of LIKE with a constant pattern: a plain search where that does.

    >>> simplified_like(Like(Argument(0, pa.string()), "%over%", "\\")).test
    <StringTest.CONTAINS: 'contains'>
    """
    simple = _SIMPLE.fullmatch(like.pattern)
    if simple is None or like.escape in like.pattern:
        return like
    before, needle, after = simple.groups()
    if before and after:
        return StringMatch(StringTest.CONTAINS, like.operand, needle)
    if before or after:
        test = StringTest.ENDS_WITH if before else StringTest.STARTS_WITH
        return StringMatch(test, like.operand, needle)
    return like


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


@lru_cache(maxsize=1 << 15)
def like_search(pattern: str, escape: str) -> TextSearch:
    r"""Return what a faultless LIKE pattern looks for.

    >>> like_search("%Log_in%from%", "\\").needed
    (('from',), ('log',))
    """
    pieces, piece = [], ""
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            piece += next(characters)
        elif character in "_%":
            pieces.append(piece)
            piece = ""
        else:
            piece += character
    needed = best_literals(frozenset({lower(some)}) for some in [*pieces, piece])
    return TextSearch(regular_expression(pattern, escape), tuple(map(tuple, needed)))


def _quoted(character: str) -> str:
    return character if character.isalnum() else f"\\x{{{ord(character):x}}}"


# ---------------------------------------------------------------- texts that are not valid UTF-8

_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_AS_IN_JAVA: Final = "eddyline.as_in_java"
_SURROGATE: Final = 0xED  # first of the three bytes that would make a surrogate


def text_as_in_java(data: bytes) -> str:
    r"""Return the text that Java makes of bytes.

    Java and Python replace the same parts, except surrogates: the bytes of one are one replacement
    in Java and three in Python.

    >>> text_as_in_java(b"\xffA \xed\xa0\x80B")
    '\ufffdA \ufffdB'
    """
    return data.decode("utf-8", _AS_IN_JAVA)


def with_valid_text(values: pa.Array) -> pa.Array:
    """Return a string column with Java's text in place of what is not valid UTF-8."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        texts = [None if data is None else text_as_in_java(data) for data in _bytes_of(values)]
        return pa.array(texts, values.type)
    return values


def length_in_spark(data: bytes) -> int:
    r"""Return how many code points Spark counts in the bytes of a text.

    It looks at the first byte of each, and skips as many as that one promises.

    >>> length_in_spark("Aé😀".encode()), length_in_spark(b"\xc3A\xffB\xe2\x82")
    (3, 4)
    """
    place = count = 0
    while place < len(data):
        place += _promised(data[place])
        count += 1
    return count


def _promised(first: int) -> int:
    """Return the number of bytes of the code point that begins with this one."""
    starts = ((2, 0xC2, 0xDF), (3, 0xE0, 0xEF), (4, 0xF0, 0xF4))
    return next((bytes_ for bytes_, low, high in starts if low <= first <= high), 1)


def _lengths(values: pa.Array) -> pa.Array:
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array(
            [None if data is None else length_in_spark(data) for data in _bytes_of(values)],
            pa.int32(),
        )
    return pc.utf8_length(values)


def _bytes_of(values: pa.Array) -> list[bytes | None]:
    wide = pa.types.is_large_string(values.type)
    data: list[bytes | None] = values.cast(pa.large_binary() if wide else pa.binary()).to_pylist()
    return data


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    first, second, third = (error.object[error.start : error.start + 3] + b"\0\0")[:3]
    if first != _SURROGATE or not _continues(second):
        return _REPLACEMENT, error.end
    return _REPLACEMENT, error.start + (3 if _continues(third) else 2)


def _continues(byte: int) -> bool:
    """Whether a byte may stand after the first of a character."""
    return byte & 0xC0 == 0x80  # noqa: PLR2004  # the two highest bits are 10


codecs.register_error(_AS_IN_JAVA, _replaced)


# ---------------------------------------------------------------- of Spark's expressions


def _like(given: Ingredients) -> Expression:
    if given.below(1).name == "Literal":
        pattern = given.below(1).constant_text("LIKE")
        return Like(given.operand(), pattern, given.hidden("escapeChar"))
    variable = _parameter(given, PatternKind.LIKE)
    return VariableMatch(PatternKind.LIKE, given.operand(), variable, given.hidden("escapeChar"))


def _rlike(given: Ingredients) -> Expression:
    if given.below(1).name == "Literal":
        return RLike(given.operand(), given.below(1).constant_text("RLIKE"))
    return VariableMatch(PatternKind.RLIKE, given.operand(), _parameter(given, PatternKind.RLIKE))


def _parameter(given: Ingredients, kind: PatternKind) -> Expression:
    pattern = given.operand(1)
    arguments = [node.index for node in pattern.walk() if isinstance(node, Argument)]
    if not arguments or max(arguments) >= 0:
        raise NotTranslatedError(f"{kind} with a pattern that is not constant")
    return pattern


def _rlike_may_raise(node: SparkOperator) -> bool:
    pattern = node.constant(1)
    return pattern is None or node.groups_in(pattern) is None


def _string_match(test: StringTest) -> Recipe:
    def build(given: Ingredients) -> Expression:
        needle = given.below(1).constant_text(given.name)
        return StringMatch(test, given.operand(), needle)

    return build


def _like_may_raise(node: SparkOperator) -> bool:
    pattern = node.constant(1)
    return pattern is None or pattern_fault(pattern, node.hidden("escapeChar")) is not None


def _like_several_may_raise(node: SparkOperator) -> bool:
    patterns = node.hidden_texts("patterns")
    return any(pattern_fault(pattern, "\\") is not None for pattern in patterns)


CATALYST: Final = (
    CatalystClass("Contains", _string_match(StringTest.CONTAINS), is_strict=yes),
    CatalystClass("EndsWith", _string_match(StringTest.ENDS_WITH), is_strict=yes),
    CatalystClass("Length", lambda given: Length(given.operand()), is_strict=yes),
    CatalystClass("Like", _like, may_raise=_like_may_raise, is_strict=yes),
    CatalystClass("LikeAll", may_raise=_like_several_may_raise),
    CatalystClass("LikeAny", may_raise=_like_several_may_raise),
    CatalystClass("NotLikeAll", may_raise=_like_several_may_raise),
    CatalystClass("NotLikeAny", may_raise=_like_several_may_raise),
    CatalystClass("RLike", _rlike, may_raise=_rlike_may_raise, is_strict=yes),
    CatalystClass("StartsWith", _string_match(StringTest.STARTS_WITH), is_strict=yes),
)
