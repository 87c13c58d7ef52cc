"""Arguments that Catalyst's functions take in some versions of Spark."""

from __future__ import annotations

from typing import Final

from eddyline.quirks.pyspark_at_hand import MINOR

PRETTY_OPTIONS: Final[tuple[bool, ...]] = (True,) if MINOR >= (4, 1) else ()
"""What ``toPrettySQL`` takes beside an expression: whether to leave out unresolved columns."""

MAP_IN_ARROW: Final = "MapInArrow" if MINOR >= (4, 0) else "PythonMapInArrow"
"""The node that maps record batches by a Python function."""

HAS_PROFILES: Final = MINOR >= (4, 0)
"""Whether it takes a profile of resources."""

AGGREGATES_TAKE_HINTS: Final = MINOR >= (4, 0)
"""Whether ``Aggregate`` does."""

DATAFRAMES_ARE_SCALARS: Final = MINOR >= (4, 0)
"""Whether ``DataFrame.scalar`` makes a subquery."""

ERRORS_HAVE_CLASSES: Final = MINOR >= (4, 0)
"""Whether ``RaiseError`` takes a class and its parameters; else a text."""

_LATER: Final = {
    "toPrettySQL(condition, true)": "toPrettySQL(condition)",
    "toPrettySQL(attribute, true)": "toPrettySQL(attribute)",
    "toPrettySQL(tree, true)": "toPrettySQL(tree)",
}
"""What our Java, which is written for the latest Spark, says, and what 4.0 would have it say."""


_CACHED: Final = """
        org.apache.spark.sql.execution.SparkPlan cached = {}.cachedPlan();
        while (cached.logicalLink().isEmpty()) {{
            cached = (org.apache.spark.sql.execution.SparkPlan) (
                cached instanceof org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec
                ? ((org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec)
                    cached).inputPlan()
                : cached.children().apply(0));
        }}
        """
"""What was planned for a cached table: Spark 3.5 keeps no more of its optimized plan."""


_SCALA_2_12: Final = {
    "org.apache.spark.sql.classic.": "org.apache.spark.sql.",
    "import scala.collection.immutable.Seq;": "import scala.collection.Seq;",
    "logical.MapInArrow;": "logical.PythonMapInArrow;",
    "new LocalRelation(leaf.output(), PythonUtils.toSeq(none), false, Option.empty())": "new "
    "LocalRelation(leaf.output(), PythonUtils.toSeq(none), false)",
    "instanceof MapInArrow": "instanceof PythonMapInArrow",
    "((MapInArrow) plan)": "((PythonMapInArrow) plan)",
    "return product.productElementName(n);": """
        scala.collection.Seq names = (scala.collection.Seq) FIELDS.get(product.getClass());
        if (names == null) {  // reflection takes long
            names = org.apache.spark.sql.catalyst.ScalaReflection$.MODULE$
                .getConstructorParameterNames(product.getClass());
            FIELDS.put(product.getClass(), names);
        }
        return (String) names.apply(n);""",
    "    public static String fieldName(": """    private static final ConcurrentHashMap FIELDS
        = new ConcurrentHashMap();

    public static String fieldName(""",
    "return relation.cacheBuilder().logicalPlan();": _CACHED.format("relation")
    + "return (LogicalPlan) cached.logicalLink().get();",
    "functions(((InMemoryRelation) plan).cacheBuilder().logicalPlan(), digests);": _CACHED.format(
        "((InMemoryRelation) plan)"
    )
    + "functions((LogicalPlan) cached.logicalLink().get(), digests);",
}
"""What it says on Spark 3.5, which is compiled with Scala 2.12."""


def java_as_known_here(text: str) -> str:
    """Return a source of ours as the Spark at hand compiles it."""
    known = (_LATER if MINOR < (4, 1) else {}) | (_SCALA_2_12 if MINOR < (4, 0) else {})
    for new, old in known.items():
        text = text.replace(new, old)
    return text
