"""The tables and functions of the statements over a few rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

STATEMENTS: Final = Path(__file__).with_name("statements.sql")

PEOPLE: Final = """
    (1, ' Ada ', 36, 'London'), (2, 'Bo', 28, ' Paris'), (3, 'Cy', 19, 'Paris'),
    (4, 'Dee Dee', 44, 'Rome '), (5, 'Eve', 23, 'London'), (6, NULL, 51, 'Rome'),
    (7, 'Gus', NULL, 'Oslo'), (8, 'Hal ', 30, NULL), (9, 'Ida', 62, 'Paris'),
    (10, 'Jo', 33, ' Oslo'), (11, 'Kim', 27, 'London'), (12, 'Lee', 40, 'Rome')
"""

ORDERS: Final = """
    (1, 10), (1, 25), (2, 30), (3, 12), (3, 12), (4, 80), (5, 7), (6, 22), (6, 41), (7, 18),
    (9, 64), (9, NULL), (10, 5), (12, 36), (12, 14), (13, 50)
"""

CITIES: Final = "('London', 'UK'), ('Paris', 'France'), ('Rome', 'Italy'), ('Bern', 'Switzerland')"

NUMBERS: Final = 50
"""Rows of the table that is a file."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement to be measured, its name, and the group that it belongs to."""

    group: str
    name: str
    text: str


def statements() -> list[Statement]:
    """Read the statements, in the order in which they are written."""
    written = STATEMENTS.read_text(encoding="utf-8")
    read = re.findall(r"^-- ([\w ]+): (.+)\n([^;]+);$", written, re.MULTILINE)
    return [Statement(*each) for each in read]


def write_numbers(spark: SparkSession, folder: Path) -> None:
    """Write the table that is a file."""
    numbers = spark.range(NUMBERS).selectExpr("id AS number", "id DIV 2 AS half")
    numbers.coalesce(1).write.parquet(str(folder / "numbers"))


def prepare(spark: SparkSession, folder: Path) -> None:
    """Make the tables' views and the functions known to a session."""
    for name, columns, rows in (
        ("people", "id, name, age, city", PEOPLE),
        ("orders", "person, amount", ORDERS),
        ("cities", "name, country", CITIES),
    ):
        table = f"SELECT * FROM VALUES {rows} AS t({columns})"  # noqa: S608 - our own text
        spark.sql(table).createOrReplaceTempView(name)
    spark.read.parquet(str(folder / "numbers")).createOrReplaceTempView("numbers")
    register = spark.udf.register
    register("plus_one", lambda x: None if x is None else x + 1, "bigint")
    register("tidy", lambda text: None if text is None else text.strip(), "string")
    register("is_even", lambda x: None if x is None else x % 2 == 0, "boolean")
    register("is_short", lambda text: None if text is None else len(text.strip()) < 4, "boolean")  # noqa: PLR2004
