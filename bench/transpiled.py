"""``python -m bench transpiled``: Spark's transpiler of Python functions beside the functions.

Plain Spark alone, with ``spark.sql.experimental.optimizer.transpilePyUDFs`` on and off: in how many
rows a function that has become a Catalyst expression gives another result than the function itself,
over the edges of each type; how many functions of the realistic
benchmark the transpiler accepts; and the time of one function as an expression, with Arrow, and
pickled. See docs/decisions/0065-functions-are-not-lowered.md.
"""

from __future__ import annotations

import inspect
import itertools
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from rich.console import Console
from rich.table import Table

from bench import report
from bench.against_plain import start
from bench.realistic import functions as realistic
from bench.turns import take_turns

Function = Callable[..., Any]

SETTING: Final = "spark.sql.experimental.optimizer.transpilePyUDFs"

TIMED: Final = 1_000_000
"""Rows of the measurement."""

RETURNED: Final = ("string", "boolean")
"""What the functions of the realistic benchmark return."""

TYPES: Final = {
    "tinyint": pa.int8(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.binary(),  # cast by Spark, which does not ask whether the bytes are UTF-8
    "utf-8": pa.binary(),
}

FLOATS: Final = (0.0, -0.0, 1.0, -1.0, 0.1, -1e-20, float("nan"), float("inf"), 2.0**53, 1.5, 1e308)

EDGES: Final[dict[str, tuple[Any, ...]]] = {
    "tinyint": (None, 0, 1, -1, 127, -128, 12),
    "bigint": (None, 0, 1, -1, 3, -3, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)),
    "float": (None, *FLOATS[:-1]),
    "double": (None, *FLOATS),
    "string": (None, b"", b"a", b"\xff", b"\xef\xbf\xbd", b"\xf0ab", "\U0001f600".encode()),
    "utf-8": (None, b"", b"a", b"A", "ß".encode(), "\uffee".encode(), "\U0001f600".encode()),
}
"""Values of each type at which Python and SQL may part; the last but one: not always UTF-8."""


# No docstrings here: the transpiler refuses a function of more than one statement.
def _add_one(x: int) -> int:
    return x + 1


def _square(x: int) -> int:
    return x * x


def _negative(x: int) -> int:
    return -x


def _sum(a: float, b: float) -> float:
    return a + b


def _remainder(a: float, b: float) -> float:
    return a % b


def _is_positive(x: float) -> bool:
    return x > 0


def _is_known_and_positive(x: float | None) -> bool:
    return x is not None and x > 0


def _equal(a: float, b: float) -> bool:
    return a == b


def _same(a: str, b: str) -> bool:
    return a == b


def _before(a: str, b: str) -> bool:
    return a < b


def _is_replacement(s: str) -> bool:
    return s == "\ufffd"


def _itself(s: str) -> str:
    return s


def _length(s: str) -> int:
    return len(s)


def _both(s: str, t: str) -> str:
    return s + t


def _times(s: str, n: int) -> str:
    return s * n


def _is_missing(x: int) -> bool:
    return x is None


def _one_if(x: float) -> int:
    return 1 if x else 0


def _with_a_name_of_its_own() -> Function:
    def len(_: str) -> int:  # noqa: A001 - what becomes of it is the question
        return 42

    def length(s: str) -> int:
        return len(s)  # its own

    return length


@dataclass(frozen=True, slots=True)
class Case:
    """A function, the types of its arguments and the type it is declared to return."""

    function: Function
    takes: tuple[str, ...]
    returns: str

    def rows(self) -> list[tuple[Any, ...]]:
        """Return argument tuples: the edges of the types, in all combinations."""
        return list(itertools.product(*(EDGES[name] for name in self.takes)))

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return the rows with their numbers, bytes as Spark's strings."""
        columns = zip(*self.rows(), strict=True)
        table = {
            f"c{number}": pa.array(values, TYPES[name])
            for number, (name, values) in enumerate(zip(self.takes, columns, strict=True))
        }
        frame = spark.createDataFrame(pa.table({"row": range(len(self.rows())), **table}))
        texts = {"string", "utf-8"}
        return frame.select(
            "row",
            *(
                F.col(f"c{number}").cast("string" if name in texts else name).alias(f"c{number}")
                for number, name in enumerate(self.takes)
            ),
        )

    def asked(self, spark: SparkSession, *, transpiled: bool) -> Column:
        """Return a call of the function over the columns of ``frame``."""
        spark.conf.set(SETTING, str(transpiled).lower())
        with warnings.catch_warnings():
            warnings.simplefilter("error" if transpiled else "default")  # "Unable to transpile"
            function = F.udf(self.function, self.returns, useArrow=False)
        call = function(*(f"c{number}" for number in range(len(self.takes))))
        # PySpark reads bytes that are no UTF-8 as U+FFFD, so that texts would look the same.
        return call.cast("binary") if self.returns == "string" else call

    def raises(self, row: Sequence[Any]) -> bool:
        """Tell whether the function raises for the values as a worker hands them over."""
        values = (
            each.decode(errors="replace") if isinstance(each, bytes) else each for each in row
        )
        try:
            self.function(*values)
        except Exception:  # noqa: BLE001 - whatever it is
            return True
        return False

    @property
    def text(self) -> str:
        """What the function returns, as it is written, and the types."""
        written = inspect.getsource(self.function).split("return ")[-1].strip()
        return f"{written}  ({', '.join(self.takes)} -> {self.returns})"


CASES: Final = (
    Case(_add_one, ("bigint",), "bigint"),
    Case(_add_one, ("bigint",), "int"),
    Case(_add_one, ("bigint",), "double"),
    Case(_add_one, ("double",), "bigint"),
    Case(_square, ("tinyint",), "bigint"),
    Case(_negative, ("tinyint",), "bigint"),
    Case(_sum, ("float", "float"), "double"),
    Case(_sum, ("double", "double"), "double"),
    Case(_remainder, ("bigint", "bigint"), "bigint"),
    Case(_remainder, ("double", "double"), "double"),
    Case(_is_positive, ("bigint",), "boolean"),
    Case(_is_known_and_positive, ("bigint",), "boolean"),
    Case(_is_known_and_positive, ("double",), "boolean"),
    Case(_equal, ("bigint", "bigint"), "boolean"),
    Case(_equal, ("bigint", "double"), "boolean"),
    Case(_equal, ("double", "double"), "boolean"),
    Case(_same, ("utf-8", "utf-8"), "boolean"),
    Case(_before, ("utf-8", "utf-8"), "boolean"),
    Case(_is_replacement, ("string",), "boolean"),
    Case(_itself, ("string",), "string"),
    Case(_length, ("utf-8",), "bigint"),
    Case(_length, ("string",), "bigint"),
    Case(_with_a_name_of_its_own(), ("utf-8",), "bigint"),
    Case(_both, ("utf-8", "utf-8"), "string"),
    Case(_times, ("utf-8", "tinyint"), "string"),
    Case(_times, ("utf-8", "double"), "string"),
    Case(_is_missing, ("bigint",), "boolean"),
    Case(_one_if, ("double",), "bigint"),
)


def values(frame: DataFrame, call: Column) -> dict[int, str]:
    """Return what a call gives by row; as text, which tells NaN and -0.0 apart."""
    asked = frame.select("row", call.alias("value"))
    return {row["row"]: repr(row["value"]) for row in asked.collect()}


def values_or_errors(frame: DataFrame, call: Column, rows: range) -> dict[int, str | None]:
    """Return what a call gives by row, and None where it raises."""
    try:
        within = frame.filter(F.col("row").between(rows.start, rows.stop - 1))
        return {**values(within, call)}
    except PySparkException:
        if len(rows) == 1:
            return {rows.start: None}
    half = len(rows) // 2
    return {
        **values_or_errors(frame, call, rows[:half]),
        **values_or_errors(frame, call, rows[half:]),
    }


def compare(spark: SparkSession, case: Case) -> Counter[str]:
    """Return how many rows are equal, and how many differ in which way."""
    rows = case.rows()
    frame = case.frame(spark)
    raising = {number for number, row in enumerate(rows) if case.raises(row)}
    function = case.asked(spark, transpiled=False)
    expected = values(frame.filter(~F.col("row").isin(raising)), function)
    expression = case.asked(spark, transpiled=True)
    counts: Counter[str] = Counter(rows=len(rows))
    for number, value in values_or_errors(frame, expression, range(len(rows))).items():
        if number in raising:
            counts["no error" if value is not None else "other error"] += 1
        elif value is None:
            counts["new error"] += 1
        elif value != expected[number]:
            counts["other value"] += 1
    return counts


def differences(spark: SparkSession) -> Table:
    """Return the table of the differences."""
    ways = ("rows", "other value", "new error", "no error", "other error")
    table = Table("function", *ways, title="A function as a Catalyst expression")
    with report.progress(len(CASES)) as advance:
        for case in CASES:
            advance(case.text)
            counts = compare(spark, case)
            table.add_row(case.text, *(str(counts[way] or "") for way in ways))
            advance()
    spark.conf.unset(SETTING)
    return table


def accepted(spark: SparkSession) -> str:
    """Return how many functions of the realistic benchmark the transpiler accepts."""
    spark.conf.set(SETTING, "true")
    names = [
        function
        for _, function in inspect.getmembers(realistic, inspect.isfunction)
        if function.__module__ == realistic.__name__
    ]
    refused = 0
    for function in names:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for returns in RETURNED:
                F.udf(function, returns, useArrow=False)
        refused += len(told) == len(RETURNED)
    spark.conf.unset(SETTING)
    return f"{len(names) - refused} of {len(names)} functions of the realistic benchmark accepted"


def speed(spark: SparkSession, turns: int) -> str:
    """Return what a million rows take in each way, one after the other in turn."""
    numbers = spark.range(TIMED, numPartitions=1)

    def asking(*, transpiled: bool, arrow: bool) -> Callable[[], object]:
        spark.conf.set(SETTING, str(transpiled).lower())
        function = F.udf(_is_known_and_positive, "boolean", useArrow=arrow)
        call = function(F.col("id") - TIMED // 2)

        def ask() -> object:
            spark.conf.set(SETTING, str(transpiled).lower())
            return numbers.filter(call).count()

        return ask

    contestants = {
        "expression": asking(transpiled=True, arrow=False),
        "Arrow": asking(transpiled=False, arrow=True),
        "pickled": asking(transpiled=False, arrow=False),
    }
    measured = take_turns(contestants, turns=turns)
    spark.conf.unset(SETTING)
    medians = ", ".join(f"{name} {measured.median(name):.2f} s" for name in contestants)
    return (
        f"{TIMED:,} rows: {medians}; Arrow over expression {measured.ratio('Arrow', 'expression')}"
    )


def main(arguments: Sequence[str]) -> int:
    """Compare all cases, then measure."""
    parser = report.argument_parser("bench transpiled", __doc__)
    options = parser.parse_args(arguments)
    spark = start(1)
    spark.sparkContext.setLogLevel("OFF")  # errors are counted here, and each would be told
    console = Console(width=report.WIDTH)
    console.print(differences(spark))
    console.print(accepted(spark))
    console.print(speed(spark, options.turns))
    spark.stop()
    return 0
