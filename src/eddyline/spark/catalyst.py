"""Spark's query plans in the JVM, behind typed functions.

This is the only file that reaches into the JVM. A :class:`Plan` and a
:class:`CatalystExpression` are opaque handles on Catalyst's immutable trees: everything
here either reads a handle or makes a new one. One call over the gateway costs
about 0.2 ms, so whatever grows with the number of columns is read in one call,
as JSON, or stays in the JVM altogether. The file is longer than others because
nothing outside it may say ``_jdf``; its functions know nothing of one another.
"""

from __future__ import annotations

import base64
import functools
import itertools
import operator
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

_EXPRESSIONS: Final = "org.apache.spark.sql.catalyst.expressions."
_ROW_BY_ROW: Final = frozenset({"Filter", "Project"})

_HELD: Final = frozenset({"InMemoryRelation", "LocalRelation", "Range"})
"""Leaves of a plan whose rows are at hand."""

_EXECUTION: Final = "org.apache.spark.sql.execution.datasources."
_LOGICAL: Final = "org.apache.spark.sql.catalyst.plans.logical."
_PYTHON_FUNCTION: Final = "org.apache.spark.api.python.PythonFunction"


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A node of a logical plan, with all that is below it."""

    java: Any


@dataclass(frozen=True, slots=True, eq=False)
class CatalystExpression:
    """A Catalyst expression, with all that is below it."""

    java: Any


@dataclass(frozen=True, slots=True)
class NodeText:
    """One node of a plan without its children, read in bulk.

    ``json`` is Catalyst's own form; ``deterministic`` says whether every
    expression of the node gives the same answer for the same row.
    """

    json: str
    deterministic: bool


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


# ---------------------------------------------------------------- the gateway


@functools.cache
def _class_in(_gateway: int, name: str) -> Any:  # noqa: ANN401  # Py4J has no types
    return getattr(_jvm(), name)


def _class(name: str) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return a class or a Scala object's static face; its look-up is remembered."""
    return _class_in(id(_jvm()), name)


@functools.cache
def _static_in(_gateway: int, name: str, member: str) -> Any:  # noqa: ANN401  # Py4J has no types
    return getattr(_class(name), member)


def _static(name: str, member: str) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return a static method or constant of a class, remembered: each look-up is a call."""
    return _static_in(id(_jvm()), name, member)


@functools.cache
def _pattern_in(_gateway: int, name: str) -> Any:  # noqa: ANN401  # Py4J has no types
    return _static("org.apache.spark.sql.catalyst.trees.TreePattern", name)()


def _jvm() -> Any:  # noqa: ANN401  # Py4J has no types
    return SparkContext._jvm  # Spark has no public way to its JVM


def _array(kind: str, elements: Sequence[object]) -> Any:  # noqa: ANN401  # Py4J has no types
    gateway: Any = SparkContext._gateway
    array = gateway.new_array(_class(kind), len(elements))
    for position, element in enumerate(elements):
        array[position] = element
    return array


def _seq(elements: Iterable[object]) -> Any:  # noqa: ANN401  # Py4J has no types
    held = list(elements)
    if not held:
        return _static("scala.collection.immutable.Nil$", "MODULE$")
    return _static("org.apache.spark.api.python.PythonUtils", "toSeq")(held)


def _none() -> Any:  # noqa: ANN401  # Py4J has no types
    return _static("scala.None$", "MODULE$")


def _in_python(seq: Any) -> list[Any]:  # noqa: ANN401  # Py4J has no types
    return [seq.apply(i) for i in range(seq.size())]


def _pattern(name: str) -> Any:  # noqa: ANN401  # Py4J has no types
    return _pattern_in(id(_jvm()), name)


# Py4J writes an answer in pieces of 8 KB. The second one waits until the first is acknowledged,
# and the acknowledgement for an answer that it could travel with: 40 ms, whatever the size. So
# long texts are built in the JVM, by functions made of its own methods, and fetched piece by
# piece: one of 37 KB takes 2 ms then instead of 48.
_PIECE: Final = 8000


@functools.cache
def _class_object_in(_gateway: int, name: str) -> Any:  # noqa: ANN401  # Py4J has no types
    # As Spark finds its classes, and at once.
    return _static("org.apache.spark.util.Utils", "classForName")(name, True, False)  # noqa: FBT003


def _signature(*names: str) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return an array of classes."""
    gateway = id(_jvm())
    return _array("java.lang.Class", [_class_object_in(gateway, name) for name in names])


def _function(handle: Any) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return a method handle as a Scala function."""
    proxies = _static("java.lang.invoke.MethodHandleProxies", "asInterfaceInstance")
    return proxies(_class_object_in(id(_jvm()), "scala.Function1"), handle)


@functools.cache
def _getter_in(gateway: int, name: str, member: str) -> Any:  # noqa: ANN401  # Py4J has no types
    method = _class_object_in(gateway, name).getMethod(member, _signature())
    return _function(_static("java.lang.invoke.MethodHandles", "publicLookup")().unreflect(method))


def _getter(name: str, member: str) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return a method without arguments as a Scala function."""
    return _getter_in(id(_jvm()), name, member)


@functools.cache
def _builder_in(gateway: int) -> Any:  # noqa: ANN401  # Py4J has no types
    builder = _class_object_in(gateway, "java.lang.StringBuilder")
    lookup = _static("java.lang.invoke.MethodHandles", "publicLookup")()
    constructor = builder.getConstructor(_signature("java.lang.String"))
    return _function(lookup.unreflectConstructor(constructor))


@functools.cache
def _long_text_in(gateway: int, name: str, member: str) -> Any:  # noqa: ANN401  # Py4J has no types
    return _getter_in(gateway, name, member).andThen(_builder_in(gateway))


@functools.cache
def _base64_in(gateway: int) -> Any:  # noqa: ANN401  # Py4J has no types
    lookup = _static("java.lang.invoke.MethodHandles", "publicLookup")()
    sequence = _class_object_in(gateway, "scala.collection.IterableOnceOps")
    to_array = lookup.unreflect(sequence.getMethod("toArray", _signature("scala.reflect.ClassTag")))
    arguments = _array("java.lang.Object", [_static("scala.reflect.ClassTag", "Byte")()])
    insert = _static("java.lang.invoke.MethodHandles", "insertArguments")
    encoder = _static("java.util.Base64", "getEncoder")()
    encode = lookup.unreflect(encoder.getClass().getMethod("encodeToString", _signature("[B")))
    return (
        _function(insert(to_array, 1, arguments))
        .andThen(_function(encode.bindTo(encoder)))
        .andThen(_builder_in(gateway))
    )


def _in_pieces(builder: Any) -> str:  # noqa: ANN401  # Py4J has no types
    """Return the text of a Java ``StringBuilder``."""
    length = builder.length()
    if length <= _PIECE or builder.codePointCount(0, length) != length:  # pairs must not be cut
        return str(builder.toString())
    starts = range(0, length, _PIECE)
    return "".join(builder.substring(start, min(start + _PIECE, length)) for start in starts)


def _json(tree: Any) -> str:  # noqa: ANN401  # Py4J has no types
    """Return Catalyst's own JSON of an expression or of a plan."""
    to_json = _long_text_in(id(_jvm()), "org.apache.spark.sql.catalyst.trees.TreeNode", "toJSON")
    return _in_pieces(to_json.apply(tree))


def _each(seq: Any, name: str, member: str) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return what a method without arguments gives for each element of a Scala sequence.

    In one call, where asking the elements takes two for each: a block of a hundred functions
    took 2,209 calls, now 136.
    """
    return seq.map(_getter(name, member))


def _texts(seq: Any) -> list[str]:  # noqa: ANN401  # Py4J has no types
    """Return the elements of a Scala sequence as text, in some calls, however many they are."""
    if not seq.size():
        return []
    separator = f"<{uuid.uuid4()}>"
    builder = seq.addString(_class("scala.collection.mutable.StringBuilder")(), separator)
    return _in_pieces(builder.underlying()).split(separator)


# ---------------------------------------------------------------- DataFrames


def default_time_zone() -> str:
    """Return the time zone of a session that sets none."""
    return str(_static("java.util.TimeZone", "getDefault")().getID())


def is_classic(df: object) -> TypeGuard[ClassicDataFrame]:
    """Whether this is a DataFrame whose plan lives in a JVM of ours."""
    return isinstance(df, ClassicDataFrame)


def is_query(spark: SparkSession, sql: str) -> bool:
    """Whether a statement asks for rows; all others do something, at once.

    Raises PySpark's ``ParseException`` for what is no SQL.
    """
    parsed = spark._jsparkSession.sessionState().sqlParser().parsePlan(sql)
    return not any(_is(parsed, _LOGICAL + kind) for kind in ("Command", "ParsedStatement"))


def optimized_plan(df: ClassicDataFrame) -> Plan:
    """Return the optimized logical plan, cached relations included.

    A streaming DataFrame has no such plan until it runs, so the optimizer is
    asked for one.
    """
    execution = df._jdf.queryExecution()
    if not df.isStreaming:
        return Plan(execution.optimizedPlan())
    optimizer = df._jdf.sparkSession().sessionState().optimizer()
    return Plan(optimizer.execute(execution.analyzed()))


def reads_the_clock(df: ClassicDataFrame) -> bool:
    """Whether the query asks for the current time or date; optimizing it fixes the answer."""
    return bool(df._jdf.queryExecution().analyzed().containsPattern(_pattern("CURRENT_LIKE")))


def dataframe(original: ClassicDataFrame, plan: Plan) -> ClassicDataFrame:
    """Return a DataFrame over ``plan`` which to its users is the original one.

    Its columns keep the names, qualifiers (``df.alias("a")``) and identities of
    the original, and a hint on top of the original stays on top.
    """
    analyzed = original._jdf.queryExecution().analyzed()
    optimized = _with_renewable_leaves(plan.java)
    java = _class(_LOGICAL + "Project")(_as_analyzed(analyzed, optimized), optimized)
    if analyzed.nodeName() == "ResolvedHint":
        java = analyzed.withNewChildren(_seq([java]))
    # The parts were analyzed already, and some nodes that the optimizer makes are
    # unknown to the analyzer.
    java.setAnalyzed()
    session = original.sparkSession
    datasets = _class("org.apache.spark.sql.classic.Dataset")
    return ClassicDataFrame(datasets.ofRows(session._jsparkSession, java), session)


def _as_analyzed(analyzed: Any, optimized: Any) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return the analyzed output, column by column, in terms of the optimized plan's."""
    outputs = optimized.outputSet()
    if analyzed.outputSet().subsetOf(outputs):
        return analyzed.output()
    # The optimizer renamed some columns, as where it inlines a common table expression twice.
    columns = zip(_in_python(analyzed.output()), _in_python(optimized.output()), strict=True)
    return _seq(
        column
        if outputs.contains(column)
        else attribute_like(CatalystExpression(column), CatalystExpression(given)).java
        for column, given in columns
    )


def _with_renewable_leaves(plan: Any) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return a plan whose output the analyzer can give new identities, for a join with itself.

    It cannot where a column comes from a leaf of which the scan was planned, as that of a table
    of version 2. Such a leaf gets new attributes, and a projection right above it that gives them
    the names and identities of the old ones. A projection above the whole plan would not do:
    ``a#1 AS a#1`` is no valid plan, nor what the optimizer makes of two that undo each other.
    """
    outputs = plan.outputSet()
    fixed = [leaf for leaf in _in_python(plan.collectLeaves()) if _is_fixed(leaf, outputs)]
    if not fixed:
        return plan
    renewed = _static("scala.collection.immutable.Map$", "MODULE$").empty()
    for leaf in fixed:
        renewed = renewed.updated(leaf, _over_new_attributes(leaf))
    return plan.transformUp(renewed)  # a map is a partial function, so it can be a rule


def _is_fixed(leaf: Any, outputs: Any) -> bool:  # noqa: ANN401  # Py4J has no types
    """Whether the analyzer can give a leaf no new attributes though ``outputs`` has some of it."""
    multiple = "org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation"
    return not _is(leaf, multiple) and bool(leaf.outputSet().intersect(outputs).nonEmpty())


def _over_new_attributes(leaf: Any) -> Any:  # noqa: ANN401  # Py4J has no types
    """Return the projection to a leaf's attributes over the same leaf with new ones."""
    old = outputs(Plan(leaf))
    new = [CatalystExpression(attribute.java.newInstance()) for attribute in old]
    pairs = leaf.output().zip(_seq(attribute.java for attribute in new))
    renewal = _static(_EXPRESSIONS + "AttributeMap$", "MODULE$").apply(pairs)
    items = [attribute_like(one, other) for one, other in zip(old, new, strict=True)]
    return projected(items, Plan(leaf.rewriteAttrs(renewal))).java


# ---------------------------------------------------------------- plans


def class_name(plan: Plan) -> str:
    """Return the full class name of the top node."""
    return str(plan.java.getClass().getName())


def children(plan: Plan) -> list[Plan]:
    """Return the nodes right below."""
    return [Plan(java) for java in _in_python(plan.java.children())]


def with_children(plan: Plan, new: Sequence[Plan]) -> Plan:
    """Return the top node over other children."""
    return Plan(plan.java.withNewChildren(_seq(child.java for child in new)))


def has_python_function(plan: Plan) -> bool:
    """Whether a Python function is called anywhere in the plan, subqueries included."""
    return bool(plan.java.containsPattern(_pattern("PYTHON_UDF")))


def has_join(plan: Plan) -> bool:
    """Whether there is a join anywhere in the plan, subqueries included."""
    return bool(plan.java.containsPattern(_pattern("JOIN")))


def has_subquery(plan: Plan) -> bool:
    """Whether there is a subquery expression anywhere in the plan."""
    return bool(plan.java.containsPattern(_pattern("PLAN_EXPRESSION")))


def read_node(plan: Plan) -> NodeText:
    """Read the top node alone: its JSON has one dummy child."""
    alone = plan.java.withNewChildren(_dummy_in(id(_jvm())))
    return NodeText(_json(alone), bool(alone.deterministic()))


@functools.cache
def _dummy_in(_gateway: int) -> Any:  # noqa: ANN401  # Py4J has no types
    return _seq([_class(_LOGICAL + "OneRowRelation")()])


def condition(plan: Plan) -> CatalystExpression:
    """Return the condition of a ``Filter``."""
    return CatalystExpression(plan.java.condition())


def project_item(plan: Plan, index: int) -> CatalystExpression:
    """Return entry ``index`` of a ``Project``'s list."""
    return CatalystExpression(plan.java.projectList().apply(index))


def evaluated_function(plan: Plan, index: int) -> CatalystExpression:
    """Return ``PythonUDF`` number ``index`` of a node that evaluates Python functions."""
    return CatalystExpression(plan.java.udfs().apply(index))


def evaluated_functions(plan: Plan) -> list[CatalystExpression]:
    """Return the ``PythonUDF``s that the top node evaluates with Arrow."""
    name = class_name(plan).rpartition(".")[2]
    if name == "MapInArrow":
        return [CatalystExpression(plan.java.functionExpr())]
    if name != "ArrowEvalPython":
        return []
    return [CatalystExpression(java) for java in _in_python(plan.java.udfs())]


def cached(plan: Plan) -> list[Plan]:
    """Return the plan that filled the cache, if the top node reads one."""
    if not class_name(plan).endswith(".InMemoryRelation"):
        return []
    return [Plan(plan.java.cacheBuilder().logicalPlan())]


def result_attribute(plan: Plan, index: int) -> CatalystExpression:
    """Return the attribute that carries the result of function ``index``."""
    return CatalystExpression(plan.java.resultAttrs().apply(index))


def filtered(kept: CatalystExpression, child: Plan) -> Plan:
    """Return a ``Filter`` over ``child``."""
    return Plan(_class(_LOGICAL + "Filter")(kept.java, child.java))


def projected_like(pattern: Plan, child: Plan) -> Plan:
    """Return a ``Project`` of ``child`` to exactly the output of ``pattern``."""
    return Plan(_class(_LOGICAL + "Project")(pattern.java.output(), child.java))


def output_and_more(pattern: Plan, child: Plan, more: Sequence[CatalystExpression]) -> Plan:
    """Return a ``Project`` of ``child`` to the output of ``pattern`` and named expressions."""
    return _projected(pattern.java.output(), child, more)


def project_over(project: Plan, child: Plan, more: Sequence[CatalystExpression]) -> Plan:
    """Return a ``Project`` of the same list, and more, over another child."""
    return _projected(project.java.projectList(), child, more)


def _projected(
    names: Any,  # noqa: ANN401  # Py4J has no types; stays in the JVM, however wide
    child: Plan,
    more: Sequence[CatalystExpression],
) -> Plan:
    if more:
        names = names.concat(_seq(each.java for each in more))
    return Plan(_class(_LOGICAL + "Project")(names, child.java))


def evaluation_of(node: Plan, indexes: Sequence[int], child: Plan) -> Plan:
    """Return the node evaluating some of its Python functions only, over another child."""
    functions = _seq(node.java.udfs().apply(i) for i in indexes)
    results = _seq(node.java.resultAttrs().apply(i) for i in indexes)
    name = class_name(node)
    if name.endswith("ArrowEvalPython"):
        return Plan(_class(name)(functions, results, child.java, node.java.evalType()))
    return Plan(_class(name)(functions, results, child.java))


def arrow_evaluation(
    function: CatalystExpression, result: CatalystExpression, kind: int, child: Plan
) -> Plan:
    """Return an ``ArrowEvalPython`` of one function over ``child``."""
    evaluate = _class(_LOGICAL + "ArrowEvalPython")
    return Plan(evaluate(_seq([function.java]), _seq([result.java]), child.java, kind))


# ---------------------------------------------------------------- joins


def join_type(plan: Plan) -> str:
    """Return the type of a ``Join``, as ``INNER`` or ``LEFT OUTER``."""
    return str(plan.java.joinType().sql())


def join_condition(plan: Plan) -> CatalystExpression | None:
    """Return the condition of a ``Join``, None where there is none."""
    given = plan.java.condition()
    return CatalystExpression(given.get()) if given.isDefined() else None


def expression_json(expression: CatalystExpression) -> str:
    """Return an expression in Catalyst's own JSON."""
    return _json(expression.java)


def size_in_bytes(plan: Plan) -> int:
    """Return Spark's estimate of a plan's size; huge where Spark knows nothing."""
    return int(str(plan.java.stats().sizeInBytes()))


def parquet_rows(plan: Plan, files: int) -> int | None:
    """Return how many rows a table has, judged by the footers of its first files.

    None unless the plan reads one table of Parquet files, or where they cannot be read.
    """
    leaves = plan.java.collectLeaves()
    leaf = leaves.apply(0)
    if leaves.size() != 1 or not _is(leaf, _EXECUTION + "LogicalRelation"):
        return None
    relation = leaf.relation()
    if not _is(relation, _EXECUTION + "HadoopFsRelation"):
        return None
    if not _is(relation.fileFormat(), _EXECUTION + "parquet.ParquetFileFormat"):
        return None
    settings = relation.sparkSession().sessionState().newHadoopConf()
    rows = size = 0
    try:
        for name in relation.location().inputFiles()[:files]:
            path = _class("org.apache.hadoop.fs.Path")(_class("java.net.URI")(name))
            file = _static("org.apache.parquet.hadoop.util.HadoopInputFile", "fromPath")(
                path, settings
            )
            reader = _static("org.apache.parquet.hadoop.ParquetFileReader", "open")(file)
            try:
                rows += reader.getRecordCount()
                size += file.getLength()
            finally:
                reader.close()
    except Py4JJavaError:  # not there any more, or no such files: the query will say so
        return None
    return rows * size_in_bytes(Plan(leaf)) // size if size else None


def bytes_of(text: str) -> int:
    """Return a size as Spark's settings state it, as ``10MB``, in bytes."""
    network = _class("org.apache.spark.network.util.JavaUtils")
    return int(text) if text.lstrip("-").isdigit() else int(network.byteStringAsBytes(text))


def table_name(plan: Plan) -> str | None:
    """Return the name of the only table that a plan reads; None where it has no name."""
    leaves = plan.java.collectLeaves()
    if leaves.size() != 1:
        return None
    leaf = leaves.apply(0)
    if _is(leaf, _EXECUTION + "LogicalRelation"):
        table = leaf.catalogTable()
        if table.isDefined():
            return str(table.get().identifier().table())
        relation = leaf.relation()
        if _is(relation, _EXECUTION + "HadoopFsRelation"):
            paths = relation.location().rootPaths()
            if paths.size() == 1:
                return str(paths.apply(0).getName()).partition(".")[0]
    return None


def is_scan(plan: Plan) -> bool:
    """Whether a plan reads files or what is in memory, with filters and projections at most.

    Such a plan can be read twice for little. Others compute, or ask another system.
    """
    java = plan.java
    while java.nodeName() in _ROW_BY_ROW:
        java = java.child()
    if _is(java, _EXECUTION + "LogicalRelation"):
        files = _EXECUTION + "HadoopFsRelation"
        return _is(java.relation(), files) and not has_python_function(plan)
    return str(java.nodeName()).partition(" ")[0] in _HELD and not has_python_function(plan)


def first_rows(count: int, scan: Plan) -> Plan:
    """Return a scan of no more than the first so many rows of each partition, then filtered."""
    java = scan.java
    if java.nodeName() in _ROW_BY_ROW:
        below = first_rows(count, Plan(java.child()))
        return Plan(java.withNewChildren(_seq([below.java])))
    whole = _static("org.apache.spark.sql.types.DataTypes", "IntegerType")
    limit = _static(_EXPRESSIONS + "Literal", "create")(count, whole)
    return Plan(_class(_LOGICAL + "LocalLimit")(limit, java))


def outputs(plan: Plan) -> list[CatalystExpression]:
    """Return the attributes of a plan's output."""
    return [CatalystExpression(java) for java in _in_python(plan.java.output())]


def output_numbers(plan: Plan) -> frozenset[int]:
    """Return the numbers in the identities of a plan's output, in some calls for all."""
    identities = _each(plan.java.output(), _EXPRESSIONS + "NamedExpression", "exprId")
    return frozenset(map(int, _texts(_each(identities, _EXPRESSIONS + "ExprId", "id"))))


def identity_number(attribute: CatalystExpression) -> int:
    """Return the number in an attribute's identity."""
    return int(attribute.java.exprId().id())


def named(expression: CatalystExpression, name: str) -> CatalystExpression:
    """Return an expression under a new name and a new identity."""
    alias = _class(_EXPRESSIONS + "Alias")
    identity = _static(_EXPRESSIONS + "NamedExpression", "newExprId")()
    return CatalystExpression(alias(expression.java, name, identity, _seq([]), _none(), _seq([])))


def in_struct(expression: CatalystExpression) -> CatalystExpression:
    """Return a struct of one field, never NULL itself: ``a <=> b`` is ``struct(a) = struct(b)``."""
    text = _static("org.apache.spark.sql.types.DataTypes", "StringType")
    literal = _static(_EXPRESSIONS + "Literal", "create")("v", text)
    make = _class(_EXPRESSIONS + "CreateNamedStruct")
    return CatalystExpression(make(_seq([literal, expression.java])))


def projected(items: Sequence[CatalystExpression], child: Plan) -> Plan:
    """Return a ``Project`` of named expressions."""
    return Plan(_class(_LOGICAL + "Project")(_seq(item.java for item in items), child.java))


def mapped_in_arrow(call: CatalystExpression, schema: str, child: Plan) -> Plan:
    """Return a ``MapInArrow`` of a function over the record batches of ``child``.

    ``schema`` is the struct of its output, as JSON.
    """
    struct = _static("org.apache.spark.sql.types.DataType", "fromJson")(schema)
    attributes = _static("org.apache.spark.sql.catalyst.types.DataTypeUtils", "toAttributes")(
        struct
    )
    return Plan(
        _class(_LOGICAL + "MapInArrow")(call.java, attributes, child.java, False, _none())  # noqa: FBT003 - no barrier
    )


def frame(spark: SparkSession, plan: Plan) -> ClassicDataFrame:
    """Return a DataFrame over a plan."""
    plan.java.setAnalyzed()
    datasets = _class("org.apache.spark.sql.classic.Dataset")
    return ClassicDataFrame(datasets.ofRows(spark._jsparkSession, plan.java), spark)


def analyzed_plan(df: DataFrame) -> Plan:
    """Return the plan of a DataFrame before it is optimized; TypeError for one of Connect."""
    if not is_classic(df):
        raise TypeError("only a classic DataFrame has its plan at hand")
    return Plan(df._jdf.queryExecution().analyzed())


# ---------------------------------------------------------------- expressions


def expression_at(root: CatalystExpression, path: Sequence[int]) -> CatalystExpression:
    """Return the expression below ``root`` reached by taking child after child."""
    java = root.java
    for index in path:
        java = java.children().apply(index)
    return CatalystExpression(java)


def with_operands(
    expression: CatalystExpression, new: Sequence[CatalystExpression]
) -> CatalystExpression:
    """Return the expression over other children."""
    operands = _seq(child.java for child in new)
    return CatalystExpression(expression.java.withNewChildren(operands))


def conjunction(terms: Sequence[CatalystExpression]) -> CatalystExpression:
    """Return the AND of one or more conditions."""
    return _combined("And", terms)


def disjunction(terms: Sequence[CatalystExpression]) -> CatalystExpression:
    """Return the OR of one or more conditions."""
    return _combined("Or", terms)


def _combined(name: str, terms: Sequence[CatalystExpression]) -> CatalystExpression:
    combine = _class(_EXPRESSIONS + name)
    return CatalystExpression(functools.reduce(combine, (term.java for term in terms)))


def is_deterministic(expression: CatalystExpression) -> bool:
    """Whether the expression gives the same answer for the same row."""
    return bool(expression.java.deterministic())


def evaluation_mode(expression: CatalystExpression) -> str:
    """Return what a cast or an arithmetic expression does where it has no result.

    That is ``LEGACY``, ``ANSI`` or ``TRY``.
    """
    return str(expression.java.evalMode().toString())


def always_casts(cast: CatalystExpression) -> bool:
    """Whether a ``Cast`` has a result for every value, as from integer to long."""
    operand = cast.java.child().dataType()
    return bool(_static(_EXPRESSIONS + "Cast", "canUpCast")(operand, cast.java.dataType()))


def escape_character(like: CatalystExpression) -> str:
    """Return the escape character of a ``Like``."""
    return str(like.java.escapeChar())


def literal_value(literal: CatalystExpression) -> object:
    """Return Catalyst's own value of a ``Literal``: numbers and bytes, all else as text."""
    return _plain(literal.java.value())


def set_members(in_set: CatalystExpression) -> list[object]:
    """Return the members of an ``InSet``: Catalyst's own values, None for NULL.

    Numbers, booleans and bytes come as themselves, all else as text.
    """
    members = in_set.java.hset()
    found: list[object] = []
    if members.contains(None):
        members = members.excl(None)
        found.append(None)
    kind = str(in_set.java.child().dataType().typeName())
    if kind == "binary" or not members.size():
        return found + [_plain(member) for member in _in_python(members.toSeq())]
    read = _READERS.get(kind, str)
    return found + [read(text) for text in _texts(members)]


_READERS: Final[dict[str, Callable[[str], object]]] = {
    "boolean": "true".__eq__,
    "date": int,
    "double": float,
    "float": float,
    "byte": int,
    "integer": int,
    "long": int,
    "short": int,
    "timestamp": int,
    "timestamp_ntz": int,
}


def _plain(value: object) -> object:
    return str(value.toString()) if isinstance(value, JavaObject) else value


def data_type(expression: CatalystExpression) -> str:
    """Return the type as JSON."""
    return str(expression.java.dataType().json())


def same_value(one: CatalystExpression, other: CatalystExpression) -> bool:
    """Whether two expressions mean the same, whatever their looks."""
    return bool(one.java.semanticEquals(other.java))


def hash_of_value(expression: CatalystExpression) -> int:
    """Return a number that is the same for all expressions that mean the same."""
    return int(expression.java.semanticHash())


def pretty(expression: CatalystExpression) -> str:
    """Return the text that Spark would show for a column of this expression."""
    prettify = _static("org.apache.spark.sql.catalyst.util.package", "toPrettySQL")
    return str(prettify(expression.java, True))  # noqa: FBT003  # the JVM knows no keywords


def literal_true() -> CatalystExpression:
    """Return the constant TRUE."""
    return CatalystExpression(_static(_EXPRESSIONS + "Literal", "TrueLiteral")())


def attribute_like(attribute: CatalystExpression, value: CatalystExpression) -> CatalystExpression:
    """Return ``value`` under the name and the identity of an attribute."""
    java = attribute.java
    alias = _class(_EXPRESSIONS + "Alias")
    return CatalystExpression(
        alias(value.java, java.name(), java.exprId(), java.qualifier(), _none(), _seq([]))
    )


def known_not_null(value: CatalystExpression) -> CatalystExpression:
    """Return a value that is never NULL, though Spark cannot know it, as one that is not."""
    return CatalystExpression(_class(_EXPRESSIONS + "KnownNotNull")(value.java))


def is_nullable(expression: CatalystExpression) -> bool:
    """Whether an expression may be NULL, as far as Spark knows."""
    return bool(expression.java.nullable())


def new_attribute(name: str, like: CatalystExpression) -> CatalystExpression:
    """Return a fresh nullable attribute of the type of an expression."""
    metadata = _static("org.apache.spark.sql.types.Metadata", "empty")()
    identity = _static(_EXPRESSIONS + "NamedExpression", "newExprId")()
    attribute = _class(_EXPRESSIONS + "AttributeReference")
    java = attribute(name, like.java.dataType(), True, metadata, identity, _seq([]))  # noqa: FBT003
    return CatalystExpression(java)


def struct_field(struct: CatalystExpression, index: int) -> CatalystExpression:
    """Return field ``index`` of a struct."""
    return CatalystExpression(_class(_EXPRESSIONS + "GetStructField")(struct.java, index, _none()))


# ---------------------------------------------------------------- Python functions


def function_name(expression: CatalystExpression) -> str:
    """Return the name of a ``PythonUDF``."""
    return str(expression.java.name())


def plain_environment(context: SparkContext) -> PickledFunction:
    """Return a function that does nothing, with the environment that functions have by default."""
    java = _class("org.apache.spark.api.python.SimplePythonFunction")(
        bytearray(),
        context.environment,
        context._python_includes,
        context.pythonExec,
        context.pythonVer,
        [],
        context._javaAccumulator,
    )
    return PickledFunction(b"", "", lambda: java)


def pickled_function(expression: CatalystExpression) -> PickledFunction:
    """Return the function of a ``PythonUDF``."""
    return _pickled(_seq([expression.java]))[0]


def pickled_functions(plan: Plan) -> list[PickledFunction]:
    """Return the functions of a node that evaluates Python functions, in some ten calls."""
    return _pickled(plan.java.udfs())


def _pickled(expressions: Any) -> list[PickledFunction]:  # noqa: ANN401  # Py4J has no types
    functions = _each(expressions, _EXPRESSIONS + "PythonUDF", "func")
    commands = _each(functions, _PYTHON_FUNCTION, "command")
    sizes = map(int, _texts(_each(commands, "scala.collection.SeqOps", "size")))
    # The bytes of all, one behind the other: flattened by the function that changes nothing.
    flat = commands.flatten(_static("scala.$less$colon$less$", "MODULE$").refl())
    pickles = base64.b64decode(_in_pieces(_base64_in(id(_jvm())).apply(flat)))
    includes = _texts(_each(functions, _PYTHON_FUNCTION, "pythonIncludes"))
    broadcasts = _texts(_each(functions, _PYTHON_FUNCTION, "broadcastVars"))
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
    arguments: Sequence[CatalystExpression],
    kind: int,
) -> CatalystExpression:
    """Return a ``PythonUDF`` of a new function made of others.

    It runs where and as they run: with the environment and the interpreter of
    the first, and the files and the broadcast variables of all.
    """
    first = like[0].java
    kinds: dict[str, PickledFunction] = {}  # most have all the same: one of a kind is asked
    for function in like:
        kinds.setdefault(function.surroundings, function)
    distinct = [function.java for function in kinds.values()]
    environment = _class("org.apache.spark.api.python.SimplePythonFunction")(
        bytearray(command),
        first.envVars(),
        _united([function.pythonIncludes() for function in distinct], str),
        first.pythonExec(),
        first.pythonVer(),
        _united([function.broadcastVars() for function in distinct], operator.methodcaller("id")),
        first.accumulator(),
    )
    types = _class("org.apache.spark.sql.types.DataType")
    java = _class(_EXPRESSIONS + "PythonUDF")(
        name,
        environment,
        types.fromJson(return_type),
        _seq(argument.java for argument in arguments),
        kind,
        True,  # noqa: FBT003  # deterministic
        _static(_EXPRESSIONS + "NamedExpression", "newExprId")(),
    )
    return CatalystExpression(java)


def _united(lists: Sequence[Any], key: Callable[[Any], object]) -> list[Any]:
    """Return the distinct elements of some Java lists in order of first appearance."""
    found: dict[object, Any] = {}
    for elements in lists:
        # By index: Py4J's iterator ends with a Java exception, and to make a Python
        # exception of that takes PySpark 14 ms, twice for each of a block's functions.
        for index in range(elements.size()):
            element = elements.get(index)
            found.setdefault(key(element), element)
    return list(found.values())


# ---------------------------------------------------------------- subqueries


def subqueries(plan: Plan) -> list[Plan]:
    """Return the plans of the subquery expressions in the top node."""
    return [Plan(java) for java in _in_python(plan.java.subqueries())]


def with_subqueries(plan: Plan, new: Sequence[Plan]) -> Plan | None:
    """Return the top node with other plans in its subquery expressions, in order.

    None if the node holds one where it is not found: neither a field that is an
    expression nor in a sequence or an option of expressions.
    """
    remaining = iter([replacement.java for replacement in new])
    fields = plan.java.productIterator().toArray(_static("scala.reflect.ClassTag", "Any")())
    for position in range(len(fields)):
        field = fields[position]
        if _is(field, _EXPRESSIONS + "Expression"):
            fields[position] = _with_plans(field, remaining)
        elif _is(field, "scala.Some") and _is(field.get(), _EXPRESSIONS + "Expression"):
            fields[position] = _class("scala.Some")(_with_plans(field.get(), remaining))
        elif _is(field, "scala.collection.immutable.Seq"):
            elements = _in_python(field) if field.size() else []
            if elements and all(_is(each, _EXPRESSIONS + "Expression") for each in elements):
                fields[position] = _seq(_with_plans(each, remaining) for each in elements)
    if next(remaining, None) is not None:
        return None
    return Plan(plan.java.makeCopy(fields))


def _is(java: object, name: str) -> bool:
    """Whether something from the JVM is an instance of a class."""
    is_instance = _static("py4j.reflection.TypeUtil", "isInstanceOf")
    return isinstance(java, JavaObject) and bool(is_instance(name, java))


def _with_plans(java: Any, remaining: Iterator[Any]) -> Any:  # noqa: ANN401  # Py4J has no types
    if not java.containsPattern(_pattern("PLAN_EXPRESSION")):
        return java
    if _is(java, _EXPRESSIONS + "PlanExpression"):
        return java.withNewPlan(next(remaining))
    return java.withNewChildren(
        _seq(_with_plans(child, remaining) for child in _in_python(java.children()))
    )
