"""Python functions in plans."""

from __future__ import annotations

import base64
import functools
import itertools
import json
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark import SparkContext
from pyspark.sql.udf import UserDefinedFunction

from eddyline.catalyst.foreign_functions import accumulator_for, require_usable
from eddyline.catalyst.gateway import (
    EXPRESSIONS,
    LOGICAL,
    base64_in,
    each_of,
    in_python,
    instance_of,
    java_class,
    jvm,
    new_identity,
    scala_seq,
    static,
    text_of_builder,
    texts_of,
    tree_pattern,
    type_from,
)
from eddyline.catalyst.handles import CatalystExpression, Plan, remembered
from eddyline.catalyst.pipeline import Later, questions
from eddyline.catalyst.plan_data import node_fields
from eddyline.latest import Latest
from eddyline.quirks import scala_collections
from eddyline.quirks.catalyst_arguments import HAS_PROFILES, MAP_IN_ARROW

_PYTHON_FUNCTION: Final = "org.apache.spark.api.python.PythonFunction"


@dataclass(frozen=True, eq=False)
class PickledFunction:
    """What Spark keeps of a Python function: its pickle, and the handle with its environment.

    Functions of equal ``surroundings`` have the same files and broadcast variables.
    """

    command: bytes
    surroundings: str
    fetch: Callable[[], Any]

    @functools.cached_property
    def java(self) -> Any:  # noqa: ANN401  # Py4J has no types
        """The handle; only asked for where it is needed."""
        return self.fetch()


@remembered
def function_name(expression: CatalystExpression) -> str:
    """Return the name of a ``PythonUDF``."""
    return str(expression.java.name())


def python_functions(plan: Plan) -> list[CatalystExpression]:
    """Return all ``PythonUDF``s in the expressions of the top node, outer ones first."""
    if isinstance(plan.java, Later):
        there = questions(plan.java.pipeline).pythonFunctions(plan.java)
        return [CatalystExpression(there.get(index)) for index in range(there.size())]
    functions = []
    pattern = tree_pattern("PYTHON_UDF")
    pending = list(in_python(plan.java.expressions()))
    while pending:
        java = pending.pop()
        if java.containsPattern(pattern):
            if instance_of(java, EXPRESSIONS + "PythonUDF"):
                functions.append(CatalystExpression(java))
            pending.extend(in_python(java.children()))
    return functions


def plain_environment(context: SparkContext) -> PickledFunction:
    """Return a function that does nothing, with the environment that functions have by default."""
    java = java_class("org.apache.spark.api.python.SimplePythonFunction")(
        bytearray(),
        context.environment,
        context._python_includes,
        context.pythonExec,
        context.pythonVer,
        [],
        context._javaAccumulator,
    )
    return PickledFunction(b"", "", lambda: java)


@remembered
def pickled_function(expression: CatalystExpression) -> PickledFunction:
    """Return the function of a ``PythonUDF``."""
    return _pickled(scala_seq([expression.java]))[0]


def pickled_functions(plan: Plan) -> list[PickledFunction]:
    """Return the functions of a node that evaluates Python functions, in some ten calls.

    In none where all of them were fetched before, for whatever plan.
    """
    functions = [expression[0].handle for expression in node_fields(plan).fields["udfs"]]
    names = [None if handle is None else handle.told.get("pickle_name") for handle in functions]
    known = [
        PickledFunction(*fetched, functools.partial(_function_of, handle))
        for name, handle in zip(names, functions, strict=True)
        if (fetched := _FETCHED.get(str(name))) is not None
    ]
    if len(known) == len(functions):
        return known
    pickled = _pickled(plan.java.udfs())
    for name, function in zip(names, pickled, strict=True):
        if name is not None:
            _FETCHED.put(str(name), (function.command, function.surroundings))
    return pickled


_FETCHED: Final = Latest[str, tuple[bytes, str]](1_000, lambda fetched: len(fetched[0]), 1 << 23)
"""Pickles of functions, and their surroundings, by the names that the JVM has for these."""


def _function_of(expression: CatalystExpression | None) -> Any:  # noqa: ANN401  # Py4J has no types
    return None if expression is None else expression.java.func()


def _pickled(expressions: Any) -> list[PickledFunction]:  # noqa: ANN401  # Py4J has no types
    functions = each_of(expressions, EXPRESSIONS + "PythonUDF", "func")
    if isinstance(expressions, Later):
        told = json.loads(str(questions(expressions.pipeline).functions(expressions)))
        return [
            PickledFunction(
                base64.b64decode(command),
                f"{included} {broadcast}",
                functools.partial(functions.apply, index),
            )
            for index, (command, included, broadcast) in enumerate(told)
        ]
    commands = each_of(functions, _PYTHON_FUNCTION, "command")
    sizes = map(int, texts_of(each_of(commands, scala_collections.SEQUENCE, "size")))
    # The bytes of all, end to end: flattened by the function that changes nothing.
    flat = scala_collections.flattened(commands, static)
    pickles = base64.b64decode(text_of_builder(base64_in(id(jvm())).apply(flat)))
    includes = texts_of(each_of(functions, _PYTHON_FUNCTION, "pythonIncludes"))
    broadcasts = texts_of(each_of(functions, _PYTHON_FUNCTION, "broadcastVars"))
    ends = list(itertools.accumulate(sizes))
    starts = [0, *ends]
    return [
        PickledFunction(
            pickles[starts[index] : end],
            f"{includes[index]} {broadcasts[index]}",
            functools.partial(functions.apply, index),
        )
        for index, end in enumerate(ends)
    ]


def python_call(  # the fields of Spark's node
    *,
    name: str,
    command: bytes,
    like: Sequence[PickledFunction],
    return_type: str,
    arguments: Sequence[CatalystExpression] | Plan,
    kind: int,
    deterministic: bool = True,
) -> CatalystExpression:
    """Return a ``PythonUDF`` of a new function made of others; of a plan it takes all columns.

    No rule of the optimizer moves one that is not ``deterministic``, or calls it twice.

    It runs where and as they run: with the environment and the interpreter of
    the first, and the files and the broadcast variables of all. With them come the files that
    were sent to executors since the functions were made: Eddyline itself may be among these.
    """
    first = like[0].java
    require_usable((function.command for function in like), first)
    kinds: dict[str, PickledFunction] = {}  # most have all the same: one of a kind is asked
    for function in like:
        kinds.setdefault(function.surroundings, function)
    distinct = [function.java for function in kinds.values()]
    environment = java_class("org.apache.spark.api.python.SimplePythonFunction")(
        bytearray(command),
        first.envVars(),
        _files([function.pythonIncludes() for function in distinct]),
        first.pythonExec(),
        first.pythonVer(),
        _united([function.broadcastVars() for function in distinct], operator.methodcaller("id")),
        accumulator_for(first),
    )
    if isinstance(arguments, Plan):
        like_java = arguments.java
        given = like_java.output()
    else:
        like_java = arguments[0].java if arguments else first
        given = scala_seq(argument.java for argument in arguments)
    java = java_class(EXPRESSIONS + "PythonUDF")(
        name,
        environment,
        type_from(return_type, like_java),
        given,
        kind,
        deterministic,
        new_identity(like_java),
    )
    return CatalystExpression(java)


def udf_call(
    udf: UserDefinedFunction, arguments: Sequence[CatalystExpression]
) -> CatalystExpression:
    """Return a ``PythonUDF`` of a function made here, with the environment that it would have."""
    near, made = arguments[0].java, udf._judf
    java = java_class(EXPRESSIONS + "PythonUDF")(
        made.name(),
        made.func(),
        made.dataType(),
        scala_seq(argument.java for argument in arguments),
        udf.evalType,
        udf.deterministic,
        new_identity(near),
    )
    return CatalystExpression(java)


def calling_instead(node: Plan, number: int, command: bytes, *, maps: bool) -> Plan:
    """Return a node that evaluates functions with another pickle in one of these.

    It ``maps`` if it is a ``MapInArrow``, which has one.
    """
    old = node.java.functionExpr() if maps else node.java.udfs().apply(number)
    function = old.func()
    environment = java_class("org.apache.spark.api.python.SimplePythonFunction")(
        bytearray(command),
        function.envVars(),
        function.pythonIncludes(),
        function.pythonExec(),
        function.pythonVer(),
        function.broadcastVars(),
        function.accumulator(),
    )
    new = _like(old, environment, deterministic=old.udfDeterministic())
    child = node.java.child()
    if maps:
        make = java_class(LOGICAL + MAP_IN_ARROW)
        java = node.java
        profile = [java.profile()] if HAS_PROFILES else []
        return Plan(make(new, java.output(), child, java.isBarrier(), *profile))
    functions = scala_collections.updated(node.java.udfs(), number, new)
    make = java_class(LOGICAL + "ArrowEvalPython")
    return Plan(make(functions, node.java.resultAttrs(), child, node.java.evalType()))


def staying(call: CatalystExpression) -> CatalystExpression:
    """Return a ``PythonUDF`` that no rule of the optimizer moves or calls twice."""
    return CatalystExpression(_like(call.java, call.java.func(), deterministic=False))


def _like(call: Any, function: Any, *, deterministic: bool) -> Any:  # noqa: ANN401  # likewise
    return java_class(EXPRESSIONS + "PythonUDF")(
        call.name(),
        function,
        call.dataType(),
        call.children(),
        call.evalType(),
        deterministic,
        call.resultId(),
    )


def _files(lists: Sequence[Any]) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return the files of some functions, and those that the context has now."""
    context = SparkContext._active_spark_context
    now = (context and context._python_includes) or []
    if not now:
        return _united(lists, str)
    names = {str(files.get(index)): None for files in lists for index in range(files.size())}
    return list(names | dict.fromkeys(now))


def _united(lists: Sequence[Any], key: Callable[[Any], object]) -> Any:  # noqa: ANN401
    """Return the distinct elements of some Java lists in order of first appearance."""
    if len(lists) == 1:
        return lists[0]
    distinct: dict[object, Any] = {}
    for elements in lists:
        # By index: Py4J's iterator ends with a Java exception, and to make a Python
        # exception of that takes PySpark 14 ms, twice for each of a block's functions.
        for index in range(elements.size()):
            element = elements.get(index)
            distinct.setdefault(key(element), element)
    return list(distinct.values())
