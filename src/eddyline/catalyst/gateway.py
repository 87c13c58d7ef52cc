"""The way into the JVM: classes, sequences and long texts, in as few calls as may be.

A call over the gateway costs about 0.2 ms, and an answer of more than 8 KB 40 ms more. So
whatever grows with the number of columns or functions is read in one call, as JSON or as one
text that comes in pieces, or stays in the JVM altogether.
"""

from __future__ import annotations

import functools
import socket
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeGuard

from py4j.java_gateway import JavaMember, JavaObject
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from eddyline.catalyst.pipeline import Later, Pipeline
from eddyline.quirks import scala_collections
from eddyline.quirks.classic_frames import CLASSIC, ClassicDataFrame

GONE: Final = (Py4JError, OSError)
"""What is raised where Spark has stopped, or its JVM has ended."""

EXPRESSIONS: Final = "org.apache.spark.sql.catalyst.expressions."


EXECUTION: Final = "org.apache.spark.sql.execution.datasources."


LOGICAL: Final = "org.apache.spark.sql.catalyst.plans.logical."


@functools.cache
def _class_in(_gateway: int, name: str) -> Any:  # noqa: ANN401  # Py4J has no types
    return getattr(jvm(), name)


class JavaType:
    """A class of the JVM's, for making objects and calling static methods.

    A call with an argument for which calls are put off is put off as well.
    """

    def __init__(self, name: str) -> None:
        """Name the class in full."""
        self._name = name

    def __call__(self, *arguments: object) -> Any:  # noqa: ANN401  # Py4J has no types
        """Return a new object of the class."""
        of_thread = _pipeline_of(arguments)
        if of_thread is not None:
            return of_thread.new(self._name, arguments)
        return _class_in(id(jvm()), self._name)(*arguments)

    def __getattr__(self, member: str) -> Any:  # noqa: ANN401  # Py4J has no types
        """Return a static method or constant of the class."""
        return static(self._name, member)


class _StaticMethod:
    def __init__(self, kind: str, name: str, java: Any) -> None:  # noqa: ANN401
        self._kind, self._name, self._java = kind, name, java

    def __call__(self, *arguments: object) -> Any:  # noqa: ANN401  # Py4J has no types
        of_thread = _pipeline_of(arguments)
        if of_thread is not None:
            return of_thread.static(self._kind, self._name, arguments)
        return self._java(*arguments)


def _pipeline_of(arguments: Iterable[object]) -> Pipeline | None:
    """Return the pipeline by which a call with these arguments is put off; mostly None."""
    for argument in arguments:
        if isinstance(argument, Later):
            return argument.pipeline
        if isinstance(argument, list) and (pipeline := _pipeline_of(argument)) is not None:
            return pipeline
    return None


@functools.cache
def java_class(name: str) -> JavaType:
    """Return a class or a Scala object's static face; its look-up is remembered."""
    return JavaType(name)


@functools.cache
def _static_in(_gateway: int, name: str, member: str) -> Any:  # noqa: ANN401  # Py4J has no types
    attribute = getattr(_class_in(id(jvm()), name), member)
    return (
        _StaticMethod(name, member, attribute) if isinstance(attribute, JavaMember) else attribute
    )


def static(name: str, member: str) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return a static method or constant of a class, remembered: each look-up is a call."""
    return _static_in(id(jvm()), name, member)


@functools.cache
def _pattern_in(_gateway: int, name: str) -> Any:  # noqa: ANN401  # Py4J has no types
    return static("org.apache.spark.sql.catalyst.trees.TreePattern", name)()


def jvm() -> Any:  # noqa: ANN401  # Py4J has no types
    """Return the JVM that this process talks to."""
    return SparkContext._jvm  # Spark has no public way to its JVM


def let_go_of_call() -> None:
    """Give up the connection over which this thread is asking the JVM, if it is.

    For a signal's handler that raises. The interrupted call stays unanswered, and its answer
    would be taken for that to the next call over the same connection: Py4J keeps one for each
    thread. The next call makes a new one.

    If the connection were still there, Py4J would have the JVM close the other end, and with it
    those of other threads and of the next call, since all of them lead to one port.
    """
    gateway = SparkContext._gateway
    if gateway is None:
        return
    client = gateway._gateway_client
    connection = client.get_thread_connection()
    client.thread_connection.connection = None
    if connection is not None and connection.socket is not None:
        given_up, connection.socket = connection.socket, None
        with suppress(OSError):
            given_up.shutdown(socket.SHUT_RDWR)
        given_up.close()


def java_session(spark: SparkSession) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return a session's own self in the JVM."""
    return spark._jsparkSession


def is_stopped(spark: SparkSession) -> bool:
    """Whether a session was stopped, or the context that it shares with others."""
    return spark.sparkContext._jsc is None


def execution_of(df: ClassicDataFrame) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return the plans of a DataFrame in the JVM, parsed to physical."""
    return df._jdf.queryExecution()


def dataframe_of(spark: SparkSession, plan: Any) -> ClassicDataFrame:  # noqa: ANN401  # Py4J has no types
    """Return a DataFrame over a plan, analyzed unless it says that it is."""
    rows = static(CLASSIC + "Dataset", "ofRows")
    return ClassicDataFrame(fetched(rows(java_session(spark), plan)), spark)


def fetched(value: Any) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return a value itself, where calls for it were put off."""
    return value.fetch() if isinstance(value, Later) else value


def new_identity(near: Any) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return a new identity for an expression, in the way that ``near`` came."""
    return static_near(near, EXPRESSIONS + "NamedExpression", "newExprId")


def type_from(text: str, near: Any) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return a type from its JSON, in the way that ``near`` came."""
    return static_near(near, "org.apache.spark.sql.types.DataType", "fromJson", text)


def static_near(near: Any, kind: str, name: str, *arguments: object) -> Any:  # noqa: ANN401
    """Return what a static method gives; the call is put off where those of ``near`` are."""
    if isinstance(near, Later):
        return near.pipeline.static(kind, name, arguments)
    return static(kind, name)(*arguments)


def is_java(value: object) -> TypeGuard[JavaObject]:
    """Whether this lives in the JVM; Py4J brings numbers and strings over."""
    return isinstance(fetched(value), JavaObject)


def java_array(kind: str, elements: Sequence[object]) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return a Java array of a class."""
    gateway: Any = SparkContext._gateway
    array = gateway.new_array(_class_in(id(jvm()), kind), len(elements))
    for position, element in enumerate(elements):
        array[position] = element
    return array


def scala_seq(elements: Iterable[object]) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return an immutable Scala sequence."""
    held = list(elements)
    if not held:
        return static("scala.collection.immutable.Nil$", "MODULE$")
    return static("org.apache.spark.api.python.PythonUtils", "toSeq")(held)


def scala_none() -> Any:  # noqa: ANN401  # Py4J has no types
    """Return Scala's ``None``."""
    return static("scala.None$", "MODULE$")


def in_python(seq: Any) -> list[Any]:  # noqa: ANN401  # Py4J has no types
    """Return the elements of a Scala sequence, one call each unless these are put off."""
    return [seq.apply(i) for i in range(seq.size())]


def tree_pattern(name: str) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return one of the patterns that Catalyst finds in a tree at once."""
    return _pattern_in(id(jvm()), name)


# Py4J writes an answer in pieces of 8 KB. The second one waits until the first is acknowledged,
# and the acknowledgement for an answer that it could travel with: 40 ms, whatever the size. So
# long texts are built in the JVM, by functions made of its own methods, and fetched piece by
# piece: one of 37 KB takes 2 ms then instead of 48.
_PIECE: Final = 8000


@functools.cache
def _class_object_in(_gateway: int, name: str) -> Any:  # noqa: ANN401  # Py4J has no types
    # As Spark finds its classes, and at once.
    return static("org.apache.spark.util.Utils", "classForName")(name, True, False)  # noqa: FBT003


def _signature(*names: str) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return an array of classes."""
    gateway = id(jvm())
    return java_array("java.lang.Class", [_class_object_in(gateway, name) for name in names])


def _function(handle: Any) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return a method handle as a Scala function."""
    proxies = static("java.lang.invoke.MethodHandleProxies", "asInterfaceInstance")
    return proxies(_class_object_in(id(jvm()), "scala.Function1"), handle)


@functools.cache
def _getter_in(gateway: int, name: str, member: str) -> Any:  # noqa: ANN401  # Py4J has no types
    method = _class_object_in(gateway, name).getMethod(member, _signature())
    return _function(static("java.lang.invoke.MethodHandles", "publicLookup")().unreflect(method))


def _getter(name: str, member: str) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return a method without arguments as a Scala function."""
    return _getter_in(id(jvm()), name, member)


@functools.cache
def _builder_in(gateway: int) -> Any:  # noqa: ANN401  # Py4J has no types
    builder = _class_object_in(gateway, "java.lang.StringBuilder")
    lookup = static("java.lang.invoke.MethodHandles", "publicLookup")()
    constructor = builder.getConstructor(_signature("java.lang.String"))
    return _function(lookup.unreflectConstructor(constructor))


@functools.cache
def _long_text_in(gateway: int, name: str, member: str) -> Any:  # noqa: ANN401  # Py4J has no types
    return _getter_in(gateway, name, member).andThen(_builder_in(gateway))


@functools.cache
def base64_in(gateway: int) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return a Scala function from a sequence of bytes to the builder of its Base64 text."""
    lookup = static("java.lang.invoke.MethodHandles", "publicLookup")()
    sequence = _class_object_in(gateway, scala_collections.ONCE)
    to_array = lookup.unreflect(sequence.getMethod("toArray", _signature("scala.reflect.ClassTag")))
    arguments = java_array("java.lang.Object", [static("scala.reflect.ClassTag", "Byte")()])
    insert = static("java.lang.invoke.MethodHandles", "insertArguments")
    encoder = static("java.util.Base64", "getEncoder")()
    encode = lookup.unreflect(encoder.getClass().getMethod("encodeToString", _signature("[B")))
    return (
        _function(insert(to_array, 1, arguments))
        .andThen(_function(encode.bindTo(encoder)))
        .andThen(_builder_in(gateway))
    )


def text_of_builder(builder: Any) -> str:  # noqa: ANN401  # Py4J has no types
    """Return the text of a Java ``StringBuilder``."""
    if isinstance(builder, Later):
        return str(builder.toString())
    length = builder.length()
    if length <= _PIECE or builder.codePointCount(0, length) != length:  # pairs must not be cut
        return str(builder.toString())
    starts = range(0, length, _PIECE)
    return "".join(builder.substring(start, min(start + _PIECE, length)) for start in starts)


def json_of(tree: Any) -> str:  # noqa: ANN401  # Py4J has no types
    """Return Catalyst's own JSON of an expression or of a plan."""
    if isinstance(tree, Later):
        return str(tree.toJSON())
    to_json = _long_text_in(id(jvm()), "org.apache.spark.sql.catalyst.trees.TreeNode", "toJSON")
    return text_of_builder(to_json.apply(tree))


def each_of(seq: Any, name: str, member: str) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return what a method without arguments gives for each element of a Scala sequence.

    In one call, where asking the elements takes two for each: a block of a hundred functions
    takes 136 calls, not 2,209.
    """
    return scala_collections.mapped(seq, _getter(name, member))


@functools.cache
def joined_in(gateway: int, *members: tuple[str, str]) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return a Scala function from a tree to a text: what its nodes are, with commas between.

    ``members`` are methods without arguments, by class: the first gives a sequence, where its
    name is ``map`` that of all nodes; each further one is asked of each of its elements.
    """
    lookup = static("java.lang.invoke.MethodHandles", "publicLookup")()
    insert = static("java.lang.invoke.MethodHandles", "insertArguments")

    def with_argument(name: str, member: str, kind: str, argument: Any) -> Any:  # noqa: ANN401
        method = _class_object_in(gateway, name).getMethod(member, _signature(kind))
        bound = java_array("java.lang.Object", [argument])
        return _function(insert(lookup.unreflect(method), 1, bound))

    def each(*of_element: tuple[str, str]) -> Any:  # noqa: ANN401
        return functools.reduce(
            lambda so_far, then: so_far.andThen(then),
            [_getter_in(gateway, name, member) for name, member in of_element],
        )

    first, *others = members
    if first[1] == "map":
        start = with_argument(first[0], "map", "scala.Function1", each(*others))
    else:
        mapped = with_argument(scala_collections.MAPPED, "map", "scala.Function1", each(*others))
        start = each(first, *scala_collections.TO_MAPPED).andThen(mapped)
    joined = with_argument(scala_collections.ONCE, "mkString", "java.lang.String", ",")
    return start.andThen(joined)


@functools.cache
def chained_in(gateway: int, *members: tuple[str, str]) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return a chain of methods without arguments, by class, as one Scala function."""
    return functools.reduce(
        lambda so_far, then: so_far.andThen(then),
        [_getter_in(gateway, name, member) for name, member in members],
    )


def texts_of(seq: Any) -> list[str]:  # noqa: ANN401  # Py4J has no types
    """Return the elements of a Scala sequence as text, in some calls, however many they are."""
    if not seq.size():
        return []
    separator = f"<{uuid.uuid4()}>"
    if not scala_collections.TELL_THEIR_BUILDER:
        return str(seq.mkString(separator)).split(separator)
    builder = seq.addString(java_class("scala.collection.mutable.StringBuilder")(), separator)
    return text_of_builder(builder.underlying()).split(separator)


def instance_of(java: object, name: str) -> bool:
    """Whether something from the JVM is an instance of a class."""
    is_instance = static("py4j.reflection.TypeUtil", "isInstanceOf")
    if not isinstance(java, Later | JavaObject):
        return False
    return bool(is_instance(name, java))


def has_method(java: Any, name: str) -> bool:  # noqa: ANN401  # Py4J has no types
    """Whether something from the JVM has a method of that name and no arguments."""
    return _has_method_in(id(jvm()), str(java.getClass().getName()), name)


@functools.cache
def _has_method_in(_gateway: int, kind: str, name: str) -> bool:
    methods = static("java.lang.Class", "forName")(kind).getMethods()
    return any(method.getName() == name for method in methods)
