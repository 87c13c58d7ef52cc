"""Expressions and relations as Spark Connect sends them: how they are read, compared and made.

They are unresolved: columns are names, functions are names, and of the types only those of
literals, casts and Python functions are known. What more there is to know the server tells
(:mod:`eddyline.connect.server_answers`).
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from pyspark.sql.connect import functions, proto

from eddyline.tasks import our_functions

Expression: TypeAlias = proto.Expression
Relation: TypeAlias = proto.Relation

UDF: Final = "common_inline_user_defined_function"
"""The field of an expression that calls a function which the message brings along."""

OURS: Final = our_functions.__name__.encode()
"""Is in the pickle of each function that we make: a worker begins by importing that module."""

COMPARISONS: Final = frozenset({"==", "<=>", "<", "<=", ">", ">="})
"""Names under which Connect knows comparisons."""

LOGIC: Final = frozenset({"and", "or", "not", "isNull", "isNotNull"})
"""Names under which Connect knows what combines conditions, and asks for NULL."""


def parts(message: Any) -> Iterator[Any]:  # noqa: ANN401 - messages have no common type here
    """Yield the messages right inside a message."""
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None:
            continue
        if descriptor.message_type.GetOptions().map_entry:
            yield from (entry for entry in value.values() if hasattr(entry, "ListFields"))
        elif hasattr(value, "ListFields"):
            yield value
        else:
            yield from value


def everything(message: Any) -> Iterator[Any]:  # noqa: ANN401 - likewise
    """Yield a message and all messages in it."""
    pending = [message]
    while pending:
        one = pending.pop()
        yield one
        pending.extend(parts(one))


def relations_in(message: Any) -> Iterator[Relation]:  # noqa: ANN401 - likewise
    """Yield the relations right below one, also those of subqueries in its expressions."""
    for part in parts(message):
        if isinstance(part, Relation):
            yield part
        else:
            yield from relations_in(part)


def own_messages(relation: Relation) -> Iterator[Any]:
    """Yield the messages in a relation but those of relations below it."""
    pending = list(parts(relation))
    while pending:
        one = pending.pop()
        if not isinstance(one, Relation):
            yield one
            pending.extend(parts(one))


def python_functions(message: Any) -> Iterator[proto.CommonInlineUserDefinedFunction]:  # noqa: ANN401 - likewise
    """Yield all Python functions in a message."""
    for part in everything(message):
        if _is_python(part):
            yield part


def is_ours(function: proto.CommonInlineUserDefinedFunction) -> bool:
    """Whether a function is one that an earlier rewriting has made."""
    return OURS in function.python_udf.command


def has_ours(message: Any) -> bool:  # noqa: ANN401 - likewise
    """Whether there is a function of ours in a message."""
    return any(map(is_ours, python_functions(message)))


def has_python(message: Any) -> bool:  # noqa: ANN401 - likewise
    """Whether there is a Python function in a message."""
    return next(python_functions(message), None) is not None


class Holders:
    """The messages in one that have something wanted in them, or are it.

    One walk finds all of them, O(messages); asking each by itself costs as much for each level. The
    message may be changed meanwhile: what is put in anew is not known.
    """

    def __init__(self, root: Any, wanted: Callable[[Any], bool]) -> None:  # noqa: ANN401 - likewise
        """Look through a message."""
        self._held: Final[dict[int, Any]] = {}  # as long as it is held, a message has its identity
        pending: list[tuple[Any, int]] = [(root, -1)]
        way: list[Any] = []  # from the root to where the walk is
        while pending:
            one, above = pending.pop()
            del way[above + 1 :]
            way.append(one)
            if wanted(one):
                for over in reversed(way):
                    if id(over) in self._held:
                        break
                    self._held[id(over)] = over
            pending.extend((part, above + 1) for part in parts(one))

    def __contains__(self, message: Any) -> bool:  # noqa: ANN401 - likewise
        """Whether it is one of them."""
        return id(message) in self._held


def python_holders(root: Any) -> Holders:  # noqa: ANN401 - likewise
    """Return the messages in one with a Python function in them."""
    return Holders(root, _is_python)


def _is_python(message: Any) -> bool:  # noqa: ANN401 - likewise
    return isinstance(message, proto.CommonInlineUserDefinedFunction) and message.HasField(
        "python_udf"
    )


def python_function(expression: Expression) -> proto.CommonInlineUserDefinedFunction | None:
    """Return the Python function that an expression calls; None for any other expression."""
    if not expression.HasField(UDF):
        return None
    function: proto.CommonInlineUserDefinedFunction = getattr(expression, UDF)
    return function if function.HasField("python_udf") else None


def named(expression: Expression) -> tuple[str, Sequence[Expression]]:
    """Return the name and the operands of what Spark itself computes; "" for another expression."""
    if not expression.HasField("unresolved_function"):
        return "", ()
    function = expression.unresolved_function
    if function.is_distinct or function.is_user_defined_function:
        return "", ()
    return function.function_name, list(function.arguments)


def operands(expression: Expression) -> Iterator[Expression]:
    """Yield the expressions right below one, whatever it is."""
    pending = deque(parts(expression))
    while pending:
        one = pending.popleft()
        if isinstance(one, Expression):
            yield one
        else:
            pending.extend(parts(one))


def columns_in(expression: Expression) -> list[Expression]:
    """Return the columns that an expression looks at, as often as it does."""
    return [
        one
        for one in everything(expression)
        if isinstance(one, Expression) and one.HasField("unresolved_attribute")
    ]


def conjuncts(condition: Expression) -> list[Expression]:
    """Return the conditions that must all be TRUE, in their order."""
    found: list[Expression] = []
    pending = [condition]
    while pending:
        one = pending.pop()
        name, terms = named(one)
        if name == "and":
            pending.extend(reversed(terms))
        else:
            found.append(one)
    return found


def is_leaf(expression: Expression) -> bool:
    """Whether an expression is a column or a constant."""
    return expression.HasField("unresolved_attribute") or expression.HasField("literal")


_PLAIN: Final = frozenset(
    {
        "alias",
        "cast",
        "lambda_function",
        "literal",
        "unresolved_attribute",
        "unresolved_extract_value",
        "unresolved_function",
        "unresolved_named_lambda_variable",
    }
)
"""Kinds of expressions that show all that is in them."""


@functools.cache
def _own_names() -> frozenset[str]:
    """Return the names of Spark's own functions, in lower case, and of its operators."""
    operators = [
        "+",
        "-",
        "*",
        "/",
        "%",
        "==",
        "<=>",
        "<",
        "<=",
        ">",
        ">=",
        "&",
        "|",
        "^",
        "and",
        "or",
        "not",
        "in",
        "when",
        "negative",
        "isNull",
        "isNotNull",
    ]
    more = ["isNaN", "startsWith", "endsWith", "struct", "named_struct", *operators]
    return frozenset(name.lower() for name in (*dir(functions), *more))


def is_plain(expression: Expression, *, python: bool = False) -> bool:
    """Whether nothing in an expression may be a Python function that is only known by its name.

    Text of SQL, and functions that somebody has registered, may be. With ``python`` functions that
    the message brings along are plain, too.
    """
    return all(
        _is_plain(message, python=python)
        for message in everything(expression)
        if isinstance(message, Expression)
    )


def _is_plain(expression: Expression, *, python: bool) -> bool:
    kind = expression.WhichOneof("expr_type")
    if kind == "unresolved_function":
        return expression.unresolved_function.function_name.lower() in _own_names()
    if python and kind == "named_argument_expression":
        return True
    return kind in _PLAIN or (python and python_function(expression) is not None)


def copied(expression: Expression) -> Expression:
    """Return a copy of an expression, with all that is in it."""
    copy = Expression()
    copy.CopyFrom(expression)
    return copy


def without_place(expression: Expression) -> Expression:
    """Return an expression without where in the user's program it was written.

    What the server says against one with its place PySpark also writes to a log of its own.
    """
    copy = copied(expression)
    for message in everything(copy):
        if isinstance(message, Expression):
            message.ClearField("common")
    return copy


def key_of(expression: Expression) -> bytes:
    """Return what an expression says, wherever it was written."""
    said: bytes = without_place(expression).SerializeToString(deterministic=True)
    return said


# ---------------------------------------------------------------- new ones


def conjunction(terms: Iterable[Expression]) -> Expression:
    """Return the AND of conditions in their order, TRUE for none.

    It is as flat as it can be: messages that are nested too deeply are not read.
    """
    level = list(terms)
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        level = [called("and", *pair) for pair in pairs] + level[len(level) // 2 * 2 :]
    return level[0] if level else literal_true()


def called(name: str, *operands: Expression) -> Expression:
    """Return a function of Spark's own over operands."""
    made = Expression()
    made.unresolved_function.function_name = name
    made.unresolved_function.arguments.extend(operands)
    return made


def literal_true() -> Expression:
    """Return the constant TRUE."""
    return Expression(literal=Expression.Literal(boolean=True))


def attribute(name: str) -> Expression:
    """Return a column by its name."""
    made = Expression()
    made.unresolved_attribute.unparsed_identifier = name
    return made


def field_of(struct: Expression, name: str) -> Expression:
    """Return a field of a struct."""
    made = Expression()
    made.unresolved_extract_value.child.CopyFrom(struct)
    made.unresolved_extract_value.extraction.literal.string = name
    return made


def aliased(expression: Expression, name: str) -> Expression:
    """Return an expression under a name."""
    made = Expression()
    made.alias.expr.CopyFrom(expression)
    made.alias.name.append(name)
    return made


# ---------------------------------------------------------------- for people


def text_of(expression: Expression) -> str:
    """Return an expression as people may recognize it."""
    kind = expression.WhichOneof("expr_type")
    show = _TEXTS.get(kind or "")
    return str(kind).replace("_", " ") if show is None else show(getattr(expression, str(kind)))


def _call_text(function: Any) -> str:  # noqa: ANN401 - a message of one of two kinds
    name, texts = function.function_name, list(map(text_of, function.arguments))
    if name in _WORDS:
        return f"({f' {_WORDS[name]} '.join(texts)})"
    return f"{name}({', '.join(texts)})"


def _literal_text(literal: Any) -> str:  # noqa: ANN401 - likewise
    kind = literal.WhichOneof("literal_type")
    return "NULL" if kind in {None, "null"} else str(getattr(literal, kind))


_WORDS: Final = {
    **{name: name for name in (*COMPARISONS, "+", "-", "*", "/", "%")},
    "==": "=",
    "and": "AND",
    "or": "OR",
}

_TEXTS: Final[Mapping[str, Callable[[Any], str]]] = {
    UDF: _call_text,
    "unresolved_function": _call_text,
    "unresolved_attribute": lambda column: str(column.unparsed_identifier),
    "expression_string": lambda text: str(text.expression),
    "literal": _literal_text,
    "alias": lambda alias: text_of(alias.expr),
    "cast": lambda cast: f"cast({text_of(cast.expr)})",
    "named_argument_expression": lambda argument: f"{argument.key} => {text_of(argument.value)}",
    "unresolved_extract_value": lambda got: f"{text_of(got.child)}.{text_of(got.extraction)}",
}
"""How expressions are shown, by the field that says their kind."""
