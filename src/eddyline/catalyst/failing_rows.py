"""Rows on which an expression raises: counted while an action runs, and looked at afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from eddyline.catalyst.gateway import EXPRESSIONS, fetched, java_class, scala_seq, static
from eddyline.catalyst.handles import CatalystExpression
from eddyline.catalyst.new_expressions import as_text, long_literal
from eddyline.catalyst.pipeline import new_alone
from eddyline.quirks.classic_frames import ClassicDataFrame


class RowCounter:
    """Counts rows in the tasks of all actions from its making on; costs the others a comparison.

    The driver knows the number when an action returns: it travels as Spark's own metrics do. Rows
    that were evaluated twice count twice.
    """

    def __init__(self, spark: SparkSession) -> None:
        """Begin with none."""
        context = cast("Any", spark.sparkContext)._jsc.sc()
        self._accumulator: Final = context.longAccumulator("eddyline failing rows")

    @property
    def rows(self) -> int:
        """The number of rows so far."""
        return int(self._accumulator.sum())

    def counted(self, condition: CatalystExpression) -> CatalystExpression:
        """Return what is TRUE where a condition is not, and FALSE, and counts, where it is.

        Of Catalyst's expressions only the one that fills Java beans calls a method for its effect:
        here that of an accumulator, which is NULL, and so left alone, where there is nothing to
        count.
        """
        literal = java_class(EXPRESSIONS + "Literal")
        kind = java_class("org.apache.spark.sql.types.ObjectType")(self._accumulator.getClass())
        none = literal(None, kind)
        which = java_class(EXPRESSIONS + "If")(
            condition.java, literal(self._accumulator, kind), none
        )
        setters = static("scala.collection.immutable.Map$", "MODULE$").empty()
        setters = setters.updated("add", long_literal(1))
        adding = java_class(EXPRESSIONS + "objects.InitializeJavaBean")(which, setters)
        return CatalystExpression(java_class(EXPRESSIONS + "IsNull")(adding))


class CollectedRow:
    """A row in the driver's JVM, to evaluate expressions over its columns."""

    def __init__(self, row: Any, columns: Sequence[CatalystExpression]) -> None:  # noqa: ANN401
        """Take Spark's internal row, and attributes for its columns."""
        self._row = row
        of = java_class(EXPRESSIONS + "package$AttributeSeq")
        self._columns = of(scala_seq(column.java for column in columns))

    def error(self, expression: CatalystExpression) -> str | None:
        """Return the first line of the error that an expression raises; None where it raises none.

        A name above the expression is left out.
        """
        try:
            evaluator = new_alone("ErrorOfValue")
        except (Py4JError, TypeError):  # nothing can be compiled
            return "an output raises an error"
        text = evaluator.of(self._bound(expression.java.child()), self._row)
        return None if text is None else str(text).strip().split("\n", 1)[0]

    def text(self, column: CatalystExpression, time_zone: str) -> str:
        """Return the value of a column as Spark casts it to a text."""
        value = fetched(self._bound(as_text(column, time_zone).java).eval(self._row))
        return "NULL" if value is None else str(value.toString())

    def _bound(self, java: Any) -> Any:  # noqa: ANN401 - Py4J has no types
        bind = static(EXPRESSIONS + "BindReferences", "bindReference")
        return fetched(bind(java, self._columns, False))  # noqa: FBT003 - Java's


def collected_rows(
    rows: ClassicDataFrame, columns: Sequence[CatalystExpression]
) -> list[tuple[str, int, int, CollectedRow]]:
    """Collect rows of a text, a number of 32 bits, one of 64, and a struct of some columns.

    They stay in the JVM, as Spark has them; the columns are as ``columns`` from then on.
    """
    collected = rows._jdf.queryExecution().executedPlan().executeCollect()
    return [
        (
            str(row.getUTF8String(0).toString()),
            int(row.getInt(1)),
            int(row.getLong(2)),
            CollectedRow(row.getStruct(3, len(columns)), columns),
        )
        for row in collected
    ]
