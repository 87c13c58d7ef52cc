"""Spark's expressions that are not evaluated here, but known to be able to raise or not.

Spark guards an expression by short-circuit: in ``f(x) AND 1 / y > 2`` no row
that ``f`` rejects is divided. An argument of a block is computed before the
block decides anything, so only an expression that cannot raise may become one
where such a guard stands. Catalyst's own ``throwable`` flag is set on a handful
of classes only (it is False for an ANSI division), hence this list of what is
known to be safe, beside what the other families say; everything else counts as raising.
"""

from __future__ import annotations

import re
from typing import Final

from eddyline.expressions.catalyst_classes import (
    WHOLE,
    CatalystClass,
    Question,
    SparkOperator,
    is_ansi,
    yes,
)
from eddyline.expressions.vector import ErrorCondition

_OF_NUMBERS: Final = (
    "Acos", "Asin", "Atan", "Atan2", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cbrt",
    "Cos", "Cosh", "Exp", "Expm1", "Greatest", "Hex", "Hypot", "Least", "Log", "Log10", "Log1p",
    "Log2", "Logarithm", "NaNvl", "NormalizeNaNAndZero", "Pow", "Rint", "ShiftLeft", "ShiftRight",
    "ShiftRightUnsigned", "Signum", "Sin", "Sinh", "Sqrt", "Tan", "Tanh", "ToDegrees", "ToRadians",
    "UnaryPositive",
)  # fmt: skip
_OF_TEXTS: Final = (
    "Ascii", "Base64", "BitLength", "ConcatWs", "Crc32", "FindInSet", "GetJsonObject", "InitCap",
    "Levenshtein", "Md5", "OctetLength", "Reverse", "Sha1", "Sha2", "SoundEx", "StringInstr",
    "StringLocate", "StringReplace", "StringTranslate", "StringTrim", "StringTrimLeft",
    "StringTrimRight", "Substring", "SubstringIndex",
)  # fmt: skip
_OF_TIMES: Final = (
    "DateDiff", "DayName", "DayOfMonth", "DayOfWeek", "DayOfYear", "Hour", "LastDay", "Minute",
    "Month", "MonthName", "MonthsBetween", "Quarter", "Second", "TruncDate", "TruncTimestamp",
    "UnixDate", "WeekDay", "WeekOfYear", "Year", "YearOfWeek",
)  # fmt: skip
_OF_NESTED: Final = (
    "ArrayContains", "ArrayDistinct", "ArrayExcept", "ArrayIntersect", "ArrayMax", "ArrayMin",
    "ArrayPosition", "ArrayRemove", "ArrayUnion", "ArraysOverlap", "CreateArray",
    "CreateNamedStruct", "GetArrayStructFields", "GetMapValue", "GetStructField", "MapContainsKey",
    "MapEntries", "MapKeys", "MapValues", "Size", "SortArray",
)  # fmt: skip
# What a lambda does is below it, and asked about by itself.
_OVER_LAMBDAS: Final = (
    "ArrayExists", "ArrayFilter", "ArrayForAll", "ArrayTransform", "LambdaFunction",
    "NamedLambdaVariable",
)  # fmt: skip
# A scalar subquery runs before the first row, guarded or not.
_OTHERS: Final = (
    "Murmur3Hash", "NamedArgumentExpression", "ScalarSubquery", "XxHash64",
)  # fmt: skip

# Formats of times made only of pieces that Spark accepts for any time.
_TIME_FORMAT: Final = re.compile(
    r"(?:y{1,4}|M{1,3}|d{1,2}|E{1,3}|H{1,2}|h{1,2}|m{1,2}|s{1,2}|S{1,6}|a|[-/:., _]|'[^']*')+"
)
_CONVERSION: Final = re.compile(r"%(.)?", re.DOTALL)


# ---------------------------------------------------------------- constant patterns and formats


def _groups(node: SparkOperator) -> int | None:
    """Return how many groups a constant regular expression has; None where it is bad."""
    pattern = node.constant(1)
    return None if pattern is None else node.groups_in(pattern)


def _matches_a_pattern(node: SparkOperator) -> bool:
    return _groups(node) is not None


def _takes_a_group(node: SparkOperator) -> bool:
    groups, group = _groups(node), node.constant(2)
    return groups is not None and group is not None and 0 <= int(group) <= groups


def _replaces_by_a_text(node: SparkOperator) -> bool:
    """Whether the replacement refers to no group, which might not exist."""
    text, start = node.constant(2), node.constant(3)
    plain = text is not None and not {"$", "\\"} & set(text)
    return plain and start is not None and int(start) > 0 and _groups(node) is not None


def _formats_a_time(node: SparkOperator) -> bool:
    pattern = node.constant(1)
    return pattern is not None and _TIME_FORMAT.fullmatch(pattern) is not None


def _formats_a_text(node: SparkOperator) -> bool:
    """Whether a format of printf asks for texts and whole numbers only, and gets them."""
    pattern = node.constant(0)
    if pattern is None:
        return False
    wanted = [sign for sign in _CONVERSION.findall(pattern) if sign not in {"%", "n"}]
    given = [node.operand_kind(place) for place in range(1, len(node.operand_names))]
    return len(wanted) <= len(given) and all(
        conversion == "s" or (conversion == "d" and kind in WHOLE)
        for conversion, kind in zip(wanted, given, strict=False)
    )


def _unless(name: str, safe: Question) -> CatalystClass:
    """Return a class that raises unless some of its operands are the right constants."""
    return CatalystClass(name, may_raise=lambda node: not safe(node))


def _tried(name: str, condition: ErrorCondition) -> CatalystClass:
    return CatalystClass(name, may_raise=yes, is_strict=yes, condition=lambda _: condition)


CATALYST: Final = (
    *map(
        CatalystClass, (*_OF_NUMBERS, *_OF_TEXTS, *_OF_TIMES, *_OF_NESTED, *_OVER_LAMBDAS, *_OTHERS)
    ),
    CatalystClass("Concat", is_strict=yes),
    CatalystClass("Lower", is_strict=yes),
    CatalystClass("Upper", is_strict=yes),
    CatalystClass("GetArrayItem", may_raise=is_ansi),
    _unless("DateFormatClass", _formats_a_time),
    _unless("FormatString", _formats_a_text),
    _unless("RegExpExtract", _takes_a_group),
    _unless("RegExpExtractAll", _takes_a_group),
    _unless("RegExpInStr", _matches_a_pattern),
    _unless("RegExpReplace", _replaces_by_a_text),
    _unless("StringSplit", _matches_a_pattern),
    _tried("DateAdd", ErrorCondition.ARITHMETIC_OVERFLOW),
    _tried("DateSub", ErrorCondition.ARITHMETIC_OVERFLOW),
    _tried("GetTimestamp", ErrorCondition.CANNOT_PARSE_TIMESTAMP),
    _tried("ToUnixTimestamp", ErrorCondition.CANNOT_PARSE_TIMESTAMP),
    _tried("UnixTimestamp", ErrorCondition.CANNOT_PARSE_TIMESTAMP),
)
