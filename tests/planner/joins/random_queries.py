"""Random queries around inner joins, as SQL for Spark, and the tables and functions they are over.

Every table has an ``id`` and a column of every type that Spark joins on. Rows with one ``id``
are copies of each other, so that sorting by the ids leaves nothing to chance.
"""

from __future__ import annotations

import datetime as dt
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention
from pyspark.sql.pandas import functions as vectorized

from eddyline.engine.policies.catalogue import PolicyName
from tests.keys import INNER, OUTER, VALUES
from tests.without_arrow_udf import INTEGERS_AS_THEY_ARE, arrow_udf_or

# Workers cannot import the tests, so the functions travel whole.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]

Edge = tuple[int, int]

ZONED = pa.timestamp("us", "UTC")
NOON = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)

COLUMNS: dict[str, pa.DataType] = {
    "flag": pa.bool_(),
    "tiny": pa.int8(),
    "small": pa.int16(),
    "medium": pa.int32(),
    "large": pa.int64(),
    "single": pa.float32(),
    "double": pa.float64(),
    "day": pa.date32(),
    "local": pa.timestamp("us"),
    "moment": ZONED,
    "amount": pa.decimal128(10, 2),
    "huge": pa.decimal128(38, 0),
    "text": pa.string(),
    "raw": pa.binary(),
    "pair": INNER,
    "nest": OUTER,
}
"""Name and type of each column that is joined on."""

WIDER = {"tiny": "large", "small": "medium", "medium": "large", "single": "double"}
"""Columns that Spark compares after a cast."""

ORDERED = ("tiny", "large", "single", "double", "day", "local", "moment", "amount", "text")

SIZES = (0, 1, 2, 5, 8, 8, 12, 12, 25, 25, 40, 40)
LARGEST = {2: 40, 3: 25, 4: 12, 5: 8}
"""Rows of a relation at the most, by number of relations: what a cross product still bears."""

SHAPES = ("chain", "star", "cycle", "clique")
KINDS = ("plain", "pickled", "pandas", "arrow")
"""Row by row over Arrow or over pickles, by pandas series, by Arrow arrays."""

TOPS = ("nothing", "aggregate", "limit", "left", "right", "full", "semi", "anti", "distinct")
"""What stands above the block."""

INPUTS = ("table", "limit", "distinct", "aggregate", "left", "semi", "anti")
"""What stands below it, as one of its inputs."""


# ---------------------------------------------------------------- tables


def write_tables(folder: Path) -> list[Path]:
    """Write a table for each of ``SIZES``."""
    paths = []
    for number, rows in enumerate(SIZES):
        generator = np.random.default_rng([number, 7])
        copied = [int(generator.integers(max(row, 1))) for row in range(rows)]
        ids = [row if generator.random() < 0.8 else copied[row] for row in range(rows)]
        columns: dict[str, pa.Array] = {"id": pa.array(ids, pa.int64())}
        for name, a_type in COLUMNS.items():
            domain = _domain(name)
            values = [
                None if generator.random() < 0.1 else domain[int(generator.integers(len(domain)))]
                for _ in range(rows)
            ]
            columns[name] = pa.array([values[row] for row in ids], a_type)
        path = folder / f"t{number}.parquet"
        pq.write_table(pa.table(columns), path)
        paths.append(path)
    return paths


def _domain(name: str) -> list[Any]:
    """Return five values or less, so that keys are equal often."""
    if name == "moment":
        return [NOON, NOON + dt.timedelta(microseconds=1), NOON - dt.timedelta(days=400)]
    values = VALUES[COLUMNS[name]]
    wanted = [values[at] for at in (0, 1, len(values) // 2, -2, -1)]
    if name in {"single", "double"}:
        wanted += [-0.0, 0.0]
    return wanted


# ---------------------------------------------------------------- functions


def small_sum(left: int | None, right: int | None, modulus: int) -> bool | None:
    """Tell whether a sum is small modulo something."""
    if left is None or right is None:
        return None
    return (3 * left + right) % modulus < (modulus + 1) // 2


def chosen(key: object, modulus: int) -> bool | None:
    """Choose by all that there is to see of a key, -0.0 and NULLs inside it included."""
    return None if key is None else zlib.crc32(repr(key).encode()) % modulus != 0


def pandas_sums(left: pd.Series, right: pd.Series, modulus: pd.Series) -> pd.Series:
    """Do the same by pandas."""
    whole = zip(left, right, modulus, strict=True)
    sums = [None if pd.isna(a) or pd.isna(b) else small_sum(int(a), int(b), m) for a, b, m in whole]
    return pd.Series(sums, dtype="boolean")


def arrow_sums(left: pa.Array, right: pa.Array, modulus: pa.Array) -> pa.Array:
    """Do the same by Arrow."""
    rows = zip(left.to_pylist(), right.to_pylist(), modulus.to_pylist(), strict=True)
    return pa.array([small_sum(*row) for row in rows], pa.bool_())


def pandas_chosen(keys: pd.Series, modulus: pd.Series) -> pd.Series:
    """Do the same by pandas, where a struct is a DataFrame."""
    given: Any = keys
    of_rows = given.itertuples(index=False) if isinstance(given, pd.DataFrame) else given
    rows = zip(of_rows, modulus, strict=True)
    return pd.Series([chosen(*row) for row in rows], dtype="boolean")


def arrow_chosen(keys: pa.Array, modulus: pa.Array) -> pa.Array:
    """Do the same by Arrow."""
    rows = zip(keys.to_pylist(), modulus.to_pylist(), strict=True)
    return pa.array([chosen(*row) for row in rows], pa.bool_())


def register_functions(spark: SparkSession) -> None:
    """Make the functions known to SQL, each kind under its own name."""
    of_vectors: Any = vectorized  # its overloads know fewer ways to call it than there are
    made: dict[str, Callable[..., Any]] = {
        "sum_plain": F.udf(small_sum, "boolean", useArrow=INTEGERS_AS_THEY_ARE),
        "sum_pickled": F.udf(small_sum, "boolean", useArrow=False),
        "sum_pandas": of_vectors.pandas_udf(pandas_sums, "boolean"),
        "sum_arrow": arrow_udf_or(arrow_sums, pandas_sums, "boolean"),
        "key_plain": F.udf(chosen, "boolean", useArrow=INTEGERS_AS_THEY_ARE),
        "key_pickled": F.udf(chosen, "boolean", useArrow=False),
        "key_arrow": arrow_udf_or(arrow_chosen, pandas_chosen, "boolean"),
    }
    for name, function in made.items():
        spark.udf.register(f"random_{name}", function)


# ---------------------------------------------------------------- queries


@dataclass(frozen=True)
class RandomQuery:
    """A query, and how it is to be adapted; the rest tells what it is made of."""

    sql: str
    policy: str
    seed: int
    joins: str
    shuffled: bool
    memory: str | None
    shape: str
    relations: int
    top: str
    inputs: tuple[str, ...]
    keys: tuple[str, ...]
    kinds: tuple[tuple[str, int], ...]
    """Kind of each function, and over how many relations it is."""


def random_query(seed: int) -> RandomQuery:
    """Make the query of a seed."""
    generator = np.random.default_rng([seed, 0])
    maker = _Maker(generator)
    count = int(generator.choice([2, 2, 3, 3, 4, 5]))
    shape = SHAPES[seed % len(SHAPES)]
    for edge in edges(shape, count):
        maker.relate(edge)
    inputs = [maker.input_of(relation, LARGEST[count]) for relation in range(count)]
    top = TOPS[seed % len(TOPS)]
    inside = False  # whether some function is called among the joins, and not below them
    for _ in range(int(generator.choice([0, 1, 1, 2]))):
        relation = int(generator.integers(count))
        maker.function([relation])
        # Spark pushes what is over one input below whatever stands there beside a table.
        inside |= maker.inputs[relation] == "table" and top not in {"semi", "anti"}
    if generator.random() < 0.4:
        pair = sorted(int(n) for n in generator.choice(count, 2, replace=False))
        maker.function(pair)
        inside = True
    for _ in range(int(generator.choice([0, 1, 2]))):
        maker.native(count)
    outputs = [f"r{r}.id AS i{r}" for r in range(count)]
    for position in range(2):
        column = str(generator.choice(list(COLUMNS)))
        outputs.append(f"r{int(generator.integers(count))}.{column} AS o{position}")
    order = generator.permutation(len(maker.conjuncts))
    where = "\n  AND ".join(maker.conjuncts[int(n)] for n in order)
    block = f"SELECT {', '.join(outputs)}\nFROM {', '.join(inputs)}\nWHERE {where}"
    return RandomQuery(
        sql=_under(top, block, count, generator),
        policy=list(PolicyName)[seed % len(PolicyName)],
        seed=int(generator.integers(1000)),
        joins="auto" if inside and generator.random() < 0.4 else "always",
        shuffled=bool(generator.random() < 0.5),
        memory="1KB" if generator.random() < 0.2 else None,
        shape=shape,
        relations=count,
        top=top,
        inputs=tuple(maker.inputs),
        keys=tuple(maker.keys),
        kinds=tuple(maker.kinds),
    )


def edges(shape: str, count: int) -> Sequence[Edge]:
    """Return which relations a query of a shape relates."""
    if shape == "chain":
        return [(r, r + 1) for r in range(count - 1)]
    if shape == "star":
        return [(0, r) for r in range(1, count)]
    if shape == "cycle":
        return [(r, (r + 1) % count) for r in range(count)]
    return list(combinations(range(count), 2))


def _under(top: str, block: str, count: int, generator: np.random.Generator) -> str:
    """Return a query with a block and something of Spark's above it."""
    inner = f"({block}) b"
    other = f"t{int(generator.integers(len(SIZES)))} x"
    ids = ", ".join(f"i{r}" for r in range(count))
    match top:
        case "aggregate":
            values = "count(*) AS n, sum(i0) AS s, max(i1) AS m"
            return f"SELECT o0, {values} FROM {inner} GROUP BY o0"  # noqa: S608 - made here
        case "limit":
            return f"SELECT {ids} FROM {inner} ORDER BY {ids} LIMIT {int(generator.integers(1, 9))}"  # noqa: S608 - made here
        case "left" | "right" | "full":
            return f"SELECT b.*, x.id AS xi FROM {inner} {top} JOIN {other} ON b.i0 = x.id"  # noqa: S608 - made here
        case "semi" | "anti":
            return f"SELECT * FROM {inner} LEFT {top} JOIN {other} ON b.i1 = x.id"  # noqa: S608 - made here
        case "distinct":
            return f"SELECT DISTINCT {ids} FROM {inner}"  # noqa: S608 - made here
    return block


class _Maker:
    """Makes the conjuncts and the inputs of a block."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator
        self.conjuncts: list[str] = []
        self.inputs: list[str] = []
        self.keys: list[str] = []
        self.kinds: list[tuple[str, int]] = []

    def relate(self, edge: Edge) -> None:
        """Add what joins two relations."""
        left, right = edge
        column = str(self._generator.choice(list(COLUMNS)))
        other = column
        operator = "="
        chance = self._generator.random()
        if chance < 0.1:
            operator = "<=>"
        elif chance < 0.2:
            column = other = str(self._generator.choice(ORDERED))
            operator = str(self._generator.choice(["<", "<=", ">", ">="]))
        elif chance < 0.35:
            column, other = list(WIDER.items())[int(self._generator.integers(len(WIDER)))]
        self.keys.append(column)
        if chance > 0.9:
            self.conjuncts.append(f"r{left}.id % 5 = r{right}.id % 5")
        else:
            self.conjuncts.append(f"r{left}.{column} {operator} r{right}.{other}")

    def function(self, relations: Sequence[int]) -> None:
        """Add a predicate with a Python function over relations."""
        modulus = int(self._generator.integers(2, 6))
        kind = str(self._generator.choice(KINDS))
        column = str(self._generator.choice(list(COLUMNS)))
        if len(relations) == 1 and kind != "pandas" and self._generator.random() < 0.4:
            call = f"random_key_{kind}(r{relations[0]}.{column}, {modulus})"
        else:
            arguments = f"r{relations[0]}.id, r{relations[-1]}.id, {modulus}"
            call = f"random_sum_{kind}({arguments})"
        self.kinds.append((kind, len(relations)))
        form = int(self._generator.integers(4))
        forms = [call, call, f"NOT {call}", f"({call} OR r{relations[-1]}.id < 3)"]
        self.conjuncts.append(forms[form])

    def native(self, count: int) -> None:
        """Add a predicate that Spark understands by itself."""
        relation = int(self._generator.integers(count))
        other = (relation + 1) % count
        column = str(self._generator.choice(list(COLUMNS)))
        natives = [
            f"r{relation}.id < 20",
            f"r{relation}.{column} IS NOT NULL",
            f"r{relation}.id <> r{other}.id",
            f"r{relation}.tiny IN (0, 1, 127)",
            f"r{relation}.id BETWEEN r{other}.id AND 30",
        ]
        self.conjuncts.append(str(self._generator.choice(natives)))

    def input_of(self, relation: int, largest: int) -> str:
        """Return where the rows of a relation come from."""
        fitting = [n for n, size in enumerate(SIZES) if size <= largest]
        weights = np.array([1 + 3 * (SIZES[n] > 2) for n in fitting], np.float64)
        table, other = (
            int(n) for n in self._generator.choice(fitting, 2, p=weights / weights.sum())
        )
        kind = "table"
        if self._generator.random() < 0.3:
            kind = str(self._generator.choice(INPUTS))
        self.inputs.append(kind)
        others = ", ".join(f"max({name}) AS {name}" for name in COLUMNS)
        match kind:
            case "limit":
                source = f"(SELECT * FROM t{table} ORDER BY id LIMIT 6)"  # noqa: S608 - made here
            case "distinct":
                source = f"(SELECT DISTINCT * FROM t{table})"  # noqa: S608 - made here
            case "aggregate":
                source = f"(SELECT id, {others} FROM t{table} GROUP BY id)"  # noqa: S608 - made here
            case "left":
                joined = f"t{other} l LEFT JOIN t{table} m ON l.id = m.id"
                source = f"(SELECT m.* FROM {joined})"  # noqa: S608 - made here
            case "semi" | "anti":
                joined = f"t{table} l LEFT {kind} JOIN t{other} m ON l.tiny = m.tiny"
                source = f"(SELECT l.* FROM {joined})"  # noqa: S608 - made here
            case _:
                source = f"t{table}"
        return f"{source} r{relation}"
