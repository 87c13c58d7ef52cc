"""Regular expressions beside Spark's: whether a text matches, random patterns over random texts."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from eddyline.expressions import Argument, Expression, evaluate
from eddyline.expressions.java_patterns import PatternOutsideError, java_search, lower
from eddyline.expressions.strings import RLike
from eddyline.expressions.vector import Columns
from tests.properties import examples

TEXT = pa.string()

CHARACTERS = "aAbBkKsS0_ -.\n\r\x0b\x85\u2028\u2029\t\xa0éÉ\u0301\u212a\u017fß😀\U00010400$]{"
"""Letters that fold with others, ends of lines, a combining accent, surrogate pairs in Java."""

TEXTS = st.lists(st.sampled_from(CHARACTERS), max_size=7).map("".join)

LITERALS = st.sampled_from(
    [*"aAbBkKsS0_ -é\u212a\u017f😀}]", r"\.", r"\$", r"\n", r"\r", r"\x{1F600}", r"\x41", r"\u0085"]
)
NAMED = st.sampled_from([r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\h", r"\H", r"\v", r"\V", "."])
MEMBERS = st.sampled_from(
    [
        "a",
        "K",
        "s",
        "a-k",
        "A-Z",
        "0-9",
        "_",
        "é",
        "😀",
        r"\d",
        r"\s",
        r"\W",
        ".",
        "$",
        r"\n",
        r"\]",
    ]
)
CLASSES = st.builds(
    lambda negated, members, dash: f"[{negated}{''.join(members)}{dash}]",
    st.sampled_from(["", "^"]),
    st.lists(MEMBERS, min_size=1, max_size=3),
    st.sampled_from(["", "-"]),
)
QUANTIFIERS = st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,2}?", "{2,}"])
ANCHORS = st.sampled_from(["^", "$", r"\A", r"\z", r"\Z"])
FLAGS = st.sampled_from(["(?i)", "(?s)", "(?-i)", "(?is)"])
OPENINGS = st.sampled_from(["(", "(?:", "(?i:", "(?s:", "(?i-s:", "(?<n>"])
GRAMMAR = st.recursive(
    st.one_of(LITERALS, LITERALS, NAMED, CLASSES, ANCHORS, FLAGS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map("".join),
        st.builds(lambda *parts: "".join(parts), OPENINGS, inner, st.just(")")),
        st.builds(lambda one, other: f"{one}|{other}", inner, inner),
        st.builds(
            lambda opening, part, quantifier: f"{opening}{part}){quantifier}",
            OPENINGS,
            inner,
            QUANTIFIERS,
        ),
        st.builds(lambda part, quantifier: f"{part}{quantifier}", LITERALS, QUANTIFIERS),
        st.builds(lambda part, quantifier: f"{part}{quantifier}", CLASSES, QUANTIFIERS),
    ),
    max_leaves=7,
)
NOISE = st.lists(st.sampled_from([*r"ab0()[]{}|*+?^$\.-&,:=!<>izZAdwsnrx1"]), max_size=8).map(
    "".join
)
"""Mostly no valid patterns: what is taken must be one."""


def spark_matches(spark: SparkSession, patterns: Sequence[str], texts: Sequence[str]) -> pa.Table:
    """Return for each pair of a pattern and a text whether Spark finds the one in the other."""
    pairs = [(p, t, patterns[p], texts[t]) for p in range(len(patterns)) for t in range(len(texts))]
    rows = pa.Table.from_pylist(
        [dict(zip(("p", "t", "pattern", "txt"), pair, strict=True)) for pair in pairs]
    )
    # One partition, so that a pattern is compiled once: Spark keeps the last one.
    frame = spark.createDataFrame(rows.to_pandas()).coalesce(1)
    return frame.selectExpr("p", "t", "txt RLIKE pattern AS found").toArrow()


def disagreements(
    spark: SparkSession, patterns: Sequence[str], texts: Sequence[str]
) -> list[tuple[str, str, bool]]:
    """Return where a pattern and a text are decided otherwise than by Spark."""
    scope = Columns({0: pa.array(texts, TEXT)}, len(texts))
    mine = [evaluate(RLike(Argument(0, TEXT), p), scope).values.to_pylist() for p in patterns]
    return [
        (patterns[row["p"]], texts[row["t"]], row["found"])
        for row in spark_matches(spark, patterns, texts).to_pylist()
        if mine[row["p"]][row["t"]] is not row["found"]
    ]


def taken(patterns: Sequence[str]) -> list[str]:
    """Return those patterns that are in the subset."""
    inside = []
    for pattern in patterns:
        try:
            java_search(pattern)
        except PatternOutsideError:
            continue
        inside.append(pattern)
    return inside


AWKWARD = [
    r"x\s$",
    r"\r$",
    "^$",
    "a$|b",
    r"\n\z",
    "(?i)[a-k]",
    "[^a]",
    r"^[^\x{1F600}]",
    "(a|b*)*c",
    "(?i)k",
    "(?i)é",
    "a|(?i)b|c",
    "((?i)a)b",
    "",
    "(|a){2}b",
]


@examples(6)
@given(
    st.lists(st.one_of(GRAMMAR, GRAMMAR, NOISE), min_size=20, max_size=60),
    st.lists(TEXTS, min_size=20, max_size=40, unique=True),
)
@example(
    AWKWARD, ["", "\n", "\r\n", "x\r\n", "x\n\r", "a\u2028", "\u212a", "K", "É", "B", "😀", "aab"]
)
def test_random_patterns_match_as_in_spark(
    spark: SparkSession, patterns: list[str], texts: list[str]
) -> None:
    inside = taken(patterns)
    if inside:
        assert disagreements(spark, inside, texts) == []


@examples(200)
@given(GRAMMAR, st.lists(TEXTS, min_size=1, max_size=30))
def test_a_match_has_one_of_the_literals(pattern: str, texts: list[str]) -> None:
    if not taken([pattern]):
        return
    search = java_search(pattern)
    scope = Columns({0: pa.array(texts, TEXT)}, len(texts))
    found = evaluate(RLike(Argument(0, TEXT), pattern), scope).values.to_pylist()
    for text, matches in zip(texts, found, strict=True):
        has_some = all(
            any(literal in lower(text) for literal in literals) for literals in search.needed
        )
        if matches:
            assert has_some
        if search.exact:
            assert matches is has_some


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"\bx", r"\b in a"),
        ("a(?=b)", "looking around"),
        ("(?<!a)b", "looking around"),
        ("(?>a)", "(?> in"),
        ("a*+", "quantifiers of quantifiers"),
        (r"(a)\1", r"\1 in a"),
        (r"\p{Alpha}", r"\p in a"),
        (r"\Qa.b\E", r"\Q in a"),
        ("[a-z&&[^b]]", "a class of classes"),
        ("[a[b]]", "a class of classes"),
        ("a{1001}", "{1001} in"),
        ("(a{500}){500}", "too large"),
        ("(?m)^a", "(?m in"),
        ("(?:^a)*", "a quantifier over an anchor"),
        ("a$b", "$ before the end"),
        (r"a$|b\z", "both $"),
        (r"\uD83D", "half of a character"),
        ("(a", "not closed"),
        ("[a", "an open one"),
        ("*a", "after nothing"),
        ("[b-a]", "ends before it begins"),
    ],
)
def test_what_is_not_in_the_subset(pattern: str, reason: str) -> None:
    with pytest.raises(PatternOutsideError) as refused:
        java_search(pattern)
    assert reason in str(refused.value)


def test_malformed_texts_and_null_match_as_in_spark(spark: SparkSession) -> None:
    data = [b"a\xffb", b"\xed\xa0\x80", None, b"ab"]
    frame = spark.createDataFrame(
        [(None if d is None else bytearray(d),) for d in data], "b binary"
    )
    patterns = ["a.b", "^.$", "\ufffd", "ab"]
    columns = [f"CAST(b AS STRING) RLIKE '{pattern}' AS p{n}" for n, pattern in enumerate(patterns)]
    wanted = [list(row) for row in frame.coalesce(1).selectExpr(*columns).collect()]
    texts = pa.Array.from_buffers(TEXT, len(data), pa.array(data, pa.binary()).buffers())
    scope = Columns({0: texts}, len(data))

    def found(pattern: str) -> list[bool | None]:
        expression: Expression = RLike(Argument(0, TEXT), pattern)
        values: list[bool | None] = evaluate(expression, scope).values.to_pylist()
        return values

    assert list(map(list, zip(*map(found, patterns), strict=True))) == wanted
