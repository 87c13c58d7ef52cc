"""Which native expressions of Spark can raise an error on a row.

Spark guards an expression by short-circuit: in ``f(x) AND 1 / y > 2`` no row
that ``f`` rejects is divided. An argument of a block is computed before the
block decides anything, so only an expression that cannot raise may become one
where such a guard stands. Catalyst's own ``throwable`` flag is set on a handful
of classes only (it is False for an ANSI division), hence this list of what is
known to be safe; everything else counts as throwing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from eddyline import catalyst
from eddyline.planner.read.chains import Tree

_NEVER: Final = frozenset(
    {
        "Acos",
        "Alias",
        "And",
        "ArrayContains",
        "ArrayDistinct",
        "ArrayExcept",
        "ArrayIntersect",
        "ArrayMax",
        "ArrayMin",
        "ArrayPosition",
        "ArrayRemove",
        "ArrayUnion",
        "ArraysOverlap",
        "Ascii",
        "Asin",
        "AtLeastNNonNulls",
        "Atan",
        "Atan2",
        "AttributeReference",
        "Base64",
        "BitLength",
        "BitwiseAnd",
        "BitwiseNot",
        "BitwiseOr",
        "BitwiseXor",
        "CaseWhen",
        "Cbrt",
        "Coalesce",
        "Concat",
        "ConcatWs",
        "Contains",
        "Cos",
        "Cosh",
        "Crc32",
        "CreateArray",
        "CreateNamedStruct",
        "DateDiff",
        "DayName",
        "DayOfMonth",
        "DayOfWeek",
        "DayOfYear",
        "EndsWith",
        "EqualNullSafe",
        "EqualTo",
        "Exp",
        "Expm1",
        "FindInSet",
        "GetArrayStructFields",
        "GetJsonObject",
        "GetMapValue",
        "GetStructField",
        "GreaterThan",
        "GreaterThanOrEqual",
        "Greatest",
        "Hex",
        "Hour",
        "Hypot",
        "If",
        "In",
        "InSet",
        "InitCap",
        "IsNaN",
        "IsNotNull",
        "IsNull",
        "KnownFloatingPointNormalized",
        "KnownNotNull",
        "LastDay",
        "Least",
        "Length",
        "LessThan",
        "LessThanOrEqual",
        "Levenshtein",
        "Literal",
        "Log",
        "Log10",
        "Log1p",
        "Log2",
        "Logarithm",
        "Lower",
        "MapContainsKey",
        "MapEntries",
        "MapKeys",
        "MapValues",
        "Md5",
        "Minute",
        "Month",
        "MonthName",
        "MonthsBetween",
        "Murmur3Hash",
        "NaNvl",
        "NamedArgumentExpression",
        "NormalizeNaNAndZero",
        "Not",
        "OctetLength",
        "Or",
        "Pow",
        "Quarter",
        "Reverse",
        "Rint",
        "ScalarSubquery",  # runs before the first row, guarded or not
        "Second",
        "Sha1",
        "Sha2",
        "ShiftLeft",
        "ShiftRight",
        "ShiftRightUnsigned",
        "Signum",
        "Sin",
        "Sinh",
        "Size",
        "SortArray",
        "SoundEx",
        "Sqrt",
        "StartsWith",
        "StringInstr",
        "StringLocate",
        "StringReplace",
        "StringTranslate",
        "StringTrim",
        "StringTrimLeft",
        "StringTrimRight",
        "Substring",
        "SubstringIndex",
        "Tan",
        "Tanh",
        "ToDegrees",
        "ToRadians",
        "TruncDate",
        "TruncTimestamp",
        "UnaryPositive",
        "UnixDate",
        "Upper",
        "WeekDay",
        "WeekOfYear",
        "XxHash64",
        "Year",
        "YearOfWeek",
    }
)

# Overflow is an infinity in floating point.
_SAFE_ON_FLOATS: Final = frozenset({"Abs", "Add", "Multiply", "Subtract", "UnaryMinus"})
_SAFE_UNLESS_ANSI: Final = _SAFE_ON_FLOATS | {"Divide", "Remainder", "IntegralDivide"}
# A remainder always fits, and a quotient of whole numbers does but for one by -1.
_BY_CONSTANT: Final = frozenset({"Remainder", "Pmod", "IntegralDivide"})
_FLOATS: Final = frozenset({'"double"', '"float"'})
_NUMBERS: Final = _FLOATS | {'"byte"', '"short"', '"integer"', '"long"'}
_WHOLE: Final = _NUMBERS - _FLOATS
_MOMENTS: Final = frozenset({'"timestamp"', '"timestamp_ntz"', '"date"'})

# What Spark formats a time by, of which no piece is refused for any time.
_TIME_FORMAT: Final = re.compile(
    r"(?:y{1,4}|M{1,3}|d{1,2}|E{1,3}|H{1,2}|h{1,2}|m{1,2}|s{1,2}|S{1,6}|a|[-/:., _]|'[^']*')+"
)
_CONVERSION: Final = re.compile(r"%(.)?", re.DOTALL)


def may_throw(tree: Tree) -> bool:
    """Whether the expression could raise on some row; True where it is not known."""
    return top_may_throw(tree) or any(may_throw(child) for child in tree.children)


def top_may_throw(tree: Tree) -> bool:
    """Whether the expression itself could raise on some row, apart from those that it is over."""
    return tree.name not in _NEVER and not _top_is_safe(tree)


def _top_is_safe(tree: Tree) -> bool:
    if tree.name == "Cast":
        return _always_casts(tree) or not _is_ansi(tree)
    on_floats = tree.name in _SAFE_ON_FLOATS or (
        tree.name == "Divide" and _divides_by_a_constant(tree)
    )
    if on_floats and catalyst.data_type(tree.handle) in _FLOATS:
        return True
    if tree.name in _SAFE_UNLESS_ANSI | _BY_CONSTANT:
        by_constant = tree.name in _BY_CONSTANT and _divides_by_a_constant(tree)
        return by_constant or not _is_ansi(tree)
    known = _BY_CONSTANTS.get(tree.name)
    return known is not None and known(tree)


def _always_casts(tree: Tree) -> bool:
    """Whether a cast has a result for every value, in whatever mode."""
    if catalyst.always_casts(tree.handle):
        return True
    source, target = catalyst.data_type(tree.children[0].handle), catalyst.data_type(tree.handle)
    if source.startswith('"decimal'):
        return target in _FLOATS
    if target == '"boolean"':
        return source in _NUMBERS
    return (
        (source in _MOMENTS and target in _MOMENTS)
        or (source == '"boolean"' and target in _NUMBERS)
        or (source in _NUMBERS and target in _FLOATS)
    )


def _divides_by_a_constant(tree: Tree) -> bool:
    """Whether the divisor is a constant by which every number can be divided."""
    value = _constant(tree, 1)
    try:
        return value is not None and float(value) not in {0.0, -1.0}
    except ValueError:
        return False


def _is_ansi(tree: Tree) -> bool:
    if "failOnError" in tree.node.fields:  # of UnaryMinus and Abs, which have no mode
        return tree.node.fields["failOnError"] is True
    return catalyst.evaluation_mode(tree.handle) == "ANSI"


# ---------------------------------------------------------------- constant patterns and formats


def _constant(tree: Tree, position: int) -> str | None:
    """Return an operand as text; None where it is no constant."""
    operand = tree.children[position]
    value = operand.node.fields.get("value")
    return None if value is None or operand.name != "Literal" else str(value)


def _likes_a_pattern(tree: Tree) -> bool:
    """Whether each escape of a pattern stands before what can be escaped; else it raises."""
    pattern = _constant(tree, 1)
    if pattern is None:
        return False
    return _escapes_well(pattern, catalyst.escape_character(tree.handle))


def _likes_all_patterns(tree: Tree) -> bool:
    patterns = catalyst.patterns_of(tree.handle)
    return all(_escapes_well(each, "\\") for each in patterns)


def _escapes_well(pattern: str, escape: str) -> bool:
    escaped = re.findall(f"{re.escape(escape)}(.?)", pattern, re.DOTALL)
    return all(each in {escape, "%", "_"} for each in escaped)


def _groups(tree: Tree) -> int | None:
    """Return how many groups a regular expression has that is a constant; None where it is bad."""
    pattern = _constant(tree, 1)
    return None if pattern is None else catalyst.groups_in(pattern)


def _matches_a_pattern(tree: Tree) -> bool:
    return _groups(tree) is not None


def _takes_a_group(tree: Tree) -> bool:
    groups, group = _groups(tree), _constant(tree, 2)
    return groups is not None and group is not None and 0 <= int(group) <= groups


def _replaces_by_a_text(tree: Tree) -> bool:
    """Whether what is put in refers to no group, which there might not be."""
    text, start = _constant(tree, 2), _constant(tree, 3)
    plain = text is not None and not {"$", "\\"} & set(text)
    return plain and start is not None and int(start) > 0 and _groups(tree) is not None


def _formats_a_time(tree: Tree) -> bool:
    pattern = _constant(tree, 1)
    return pattern is not None and _TIME_FORMAT.fullmatch(pattern) is not None


def _formats_a_text(tree: Tree) -> bool:
    """Whether a format of printf asks for texts and whole numbers only, and gets them."""
    pattern = _constant(tree, 0)
    if pattern is None:
        return False
    wanted = [each for each in _CONVERSION.findall(pattern) if each not in {"%", "n"}]
    given = [catalyst.data_type(each.handle) for each in tree.children[1:]]
    return len(wanted) <= len(given) and all(
        conversion == "s" or (conversion == "d" and kind in _WHOLE)
        for conversion, kind in zip(wanted, given, strict=False)
    )


_BY_CONSTANTS: Final[dict[str, Callable[[Tree], bool]]] = {
    "DateFormatClass": _formats_a_time,
    "FormatString": _formats_a_text,
    "GetArrayItem": lambda tree: not _is_ansi(tree),
    "Like": _likes_a_pattern,
    "LikeAll": _likes_all_patterns,
    "LikeAny": _likes_all_patterns,
    "NotLikeAll": _likes_all_patterns,
    "NotLikeAny": _likes_all_patterns,
    "RLike": _matches_a_pattern,
    "RegExpExtract": _takes_a_group,
    "RegExpExtractAll": _takes_a_group,
    "RegExpInStr": _matches_a_pattern,
    "RegExpReplace": _replaces_by_a_text,
    "StringSplit": _matches_a_pattern,
}
"""What cannot raise where some of its operands are constants, and which these have to be."""
