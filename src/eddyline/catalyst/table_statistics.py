"""What a plan reads, and how much of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from py4j.protocol import Py4JJavaError

from eddyline.catalyst.gateway import (
    EXECUTION,
    EXPRESSIONS,
    LOGICAL,
    chained_in,
    fetched,
    in_python,
    instance_of,
    java_class,
    jvm,
    scala_seq,
    static,
)
from eddyline.catalyst.handles import Plan, remember, remembered
from eddyline.catalyst.pipeline import Later, questions
from eddyline.catalyst.plan_data import told_by_patterns
from eddyline.catalyst.plan_nodes import has_python_function
from eddyline.catalyst.reductions import (
    SAME_TWICE,
    SAY_NOTHING,
    drops_rows,
    unrepeatable,
)

_ROW_BY_ROW: Final = frozenset({"Filter", "Project"})


LARGEST_ESTIMATE: Final = (1 << 63) - 1
"""The largest estimate, which is Spark's for a leaf that it knows nothing about.

To Spark the size of a join is the product of its sides', without a bound: where unknown leaves are
joined, and the result with itself, five times in all, it has 600 digits, which no float holds, and
after nine times 9,600, which Python does not read. All arithmetic on estimates starts from what
this room says of them.
"""

_SIZE: Final = (
    (LOGICAL + "LogicalPlan", "stats"),
    (LOGICAL + "Statistics", "sizeInBytes"),
    ("scala.math.BigInt", "doubleValue"),  # an infinity where it is more than that holds
)

_HELD: Final = frozenset({"InMemoryRelation", "LocalRelation", "Range"})
"""Leaves of a plan whose rows are at hand."""

FOOTERS: Final = 1
"""Parquet files of an input whose footers are read: the others are taken to be alike."""


def look_at(plans: Iterable[Plan]) -> None:
    """Have plans that are to be joined tell, in one crossing, all that is asked about each.

    Where calls are not put off, each asks for itself when somebody wants to know.
    """
    asked = [plan for plan in plans if size_in_bytes.__name__ not in plan.told]
    if not asked or not all(isinstance(plan.java, Later) for plan in asked):
        return
    ask = questions(asked[0].java.pipeline).facts
    javas = [plan.java for plan in asked]
    answers = ask(javas, sorted(_HELD), sorted(SAME_TWICE), sorted(SAY_NOTHING), FOOTERS)
    for plan, facts in zip(asked, json.loads(str(answers)), strict=True):
        patterns, size, rows, name, again, drops, scan, reduced = facts
        plan.told |= told_by_patterns(patterns)
        remember(size_in_bytes, plan, size)
        remember(parquet_rows, plan, None if rows < 0 else rows)
        remember(table_name, plan, name)
        remember(unrepeatable, plan, again)
        remember(drops_rows, plan, drops)
        remember(is_scan, plan, scan)
        remember(is_reduced_scan, plan, reduced)


@remembered
def size_in_bytes(plan: Plan) -> int:
    """Return Spark's estimate of a plan's size, at most :data:`LARGEST_ESTIMATE`.

    It is as large as that where Spark knows nothing.
    """
    size = chained_in(id(jvm()), *_SIZE).apply(plan.java)
    return _saturated(float(fetched(size)))


def _saturated(estimate: float) -> int:
    return int(min(estimate, LARGEST_ESTIMATE))


@remembered
def parquet_rows(plan: Plan) -> int | None:
    """Return how many rows a table has, judged by the footers of its first files.

    None unless the plan reads one table of Parquet files, or where they cannot be read.
    """
    if isinstance(plan.java, Later):
        count = int(questions(plan.java.pipeline).parquetRows(plan.java, FOOTERS))
        return None if count < 0 else count
    leaves = plan.java.collectLeaves()
    leaf = leaves.apply(0)
    if leaves.size() != 1 or not instance_of(leaf, EXECUTION + "LogicalRelation"):
        return None
    relation = leaf.relation()
    if not instance_of(relation, EXECUTION + "HadoopFsRelation"):
        return None
    if not instance_of(relation.fileFormat(), EXECUTION + "parquet.ParquetFileFormat"):
        return None
    settings = relation.sparkSession().sessionState().newHadoopConf()
    rows = size = 0
    try:
        for name in fetched(relation.location().inputFiles())[:FOOTERS]:
            path = java_class("org.apache.hadoop.fs.Path")(java_class("java.net.URI")(name))
            file = static("org.apache.parquet.hadoop.util.HadoopInputFile", "fromPath")(
                path, settings
            )
            # At once, not when somebody asks: what fails here is caught here.
            reader = fetched(static("org.apache.parquet.hadoop.ParquetFileReader", "open")(file))
            try:
                rows += int(reader.getRecordCount())
                size += int(file.getLength())
            finally:
                reader.close()
    except Py4JJavaError:  # not there any more, or no such files: the query will say so
        return None
    return _saturated(rows * size_in_bytes(Plan(leaf)) // size) if size else None


@remembered
def table_name(plan: Plan) -> str | None:
    """Return the name of the only table that a plan reads; None where it has no name.

    Tables that reduce it by semijoins do not count.
    """
    if isinstance(plan.java, Later):
        name = questions(plan.java.pipeline).tableName(plan.java).fetch()
        return None if name is None else str(name)
    java = plan.java
    while java.nodeName() in _ROW_BY_ROW or _is_semijoin(java):
        java = java.children().apply(0)
    leaves = java.collectLeaves()
    if leaves.size() != 1:
        return None
    leaf = leaves.apply(0)
    if instance_of(leaf, EXECUTION + "LogicalRelation"):
        table = leaf.catalogTable()
        if table.isDefined():
            return str(table.get().identifier().table())
        relation = leaf.relation()
        if instance_of(relation, EXECUTION + "HadoopFsRelation"):
            paths = relation.location().rootPaths()
            if paths.size() == 1:
                return str(paths.apply(0).getName()).partition(".")[0]
    return None


def _is_semijoin(java: Any) -> bool:  # noqa: ANN401  # Py4J has no types
    # Not by its name in SQL: what EXISTS under OR becomes has none, and raises.
    return java.nodeName() == "Join" and str(java.joinType().toString()) == "LeftSemi"


@remembered
def is_scan(plan: Plan) -> bool:
    """Whether a plan reads files or what is in memory, with filters and projections at most.

    Such a plan can be read twice for little. Others compute, or ask another system.
    """
    return _is_scan(plan, reduced=False)


@remembered
def is_reduced_scan(plan: Plan) -> bool:
    """Whether a plan is such a scan that may have been reduced by semijoins."""
    return _is_scan(plan, reduced=True)


def _is_scan(plan: Plan, *, reduced: bool) -> bool:
    java = plan.java
    while java.nodeName() in _ROW_BY_ROW or (reduced and _is_semijoin(java)):
        java = java.children().apply(0)
    if instance_of(java, EXECUTION + "LogicalRelation"):
        files = EXECUTION + "HadoopFsRelation"
        return instance_of(java.relation(), files) and not has_python_function(plan)
    return str(java.nodeName()).partition(" ")[0] in _HELD and not has_python_function(plan)


def first_rows(count: int, scan: Plan) -> Plan:
    """Return a scan of at most the first ``count`` rows of each partition, then filtered."""
    java = scan.java
    if java.nodeName() in _ROW_BY_ROW or _is_semijoin(java):
        first, *others = in_python(java.children())
        below = first_rows(count, Plan(first))
        return Plan(java.withNewChildren(scala_seq([below.java, *others])))
    whole = static("org.apache.spark.sql.types.DataTypes", "IntegerType")
    limit = static(EXPRESSIONS + "Literal", "create")(count, whole)
    return Plan(java_class(LOGICAL + "LocalLimit")(limit, java))
