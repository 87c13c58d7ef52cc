"""Random joins that ``auto`` lays out in every way, and what they give if joined elsewhere.

Functions look at one input, which the others reduce before Spark joins them, or at several, which
the eddy joins. They look at ids only, so that whoever has the ids of the joined rows can tell what
they say, which errors among it: FALSE < ERROR < TRUE, as for an eddy.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from itertools import product
from typing import Any, TypeAlias

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention
from pyspark.sql.pandas import functions as vectorized

from eddyline.engine.policies.catalogue import PolicyName
from tests.planner.joins.random_queries import (
    COLUMNS,
    KINDS,
    LARGEST,
    ORDERED,
    SHAPES,
    SIZES,
    WIDER,
    edges,
)
from tests.without_arrow_udf import INTEGERS_AS_THEY_ARE, arrow_udf_or

# Workers cannot import the tests, so the functions travel whole.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]

HASHED = ("tiny", "small", "medium", "large", "day", "text", "moment")
"""Columns of types whose keys a Bloom filter can be made of."""

REACHES = ("10MB", "700B", "-1")
"""What may be broadcast: all inputs; some of them, or only their keys; nothing."""

INPUTS = ("table", "table", "table", "table", "distinct", "limit", "semi")
"""What an input is: read as it lies there, computed once more at a cost, or not repeatable."""

OVER_ONE = (1, 2, 3, 7, 8, 9, 11, 12, 14, 15, 21, 24, 32, 39, 118)
OVER_SEVERAL = (0, 4, 7, 10, 11)
"""Seeds of queries that are laid out in all ways, chosen so that few are enough.

Some are there for what they find: 14 has keys that are NULL on both sides, 39 a cycle in which
all inputs reduce, and 118 rows that fail and pass a Bloom filter by mistake.
"""

MODULI = (2, 3)
FAILING = (0, 7)

Row: TypeAlias = Callable[[int, int], bool]


class Verdict(IntEnum):
    """What is said of a row; AND is the least, OR the greatest of several."""

    FALSE = 0
    ERROR = 1
    TRUE = 2


def accepted(one: int, other: int, modulus: int, failing: int) -> bool:
    """Accept some ids; fail for others, if there are any that are ``failing``."""
    if failing and (one + 2 * other) % failing == 1:
        raise ValueError(f"no sense in {one} and {other}")
    return (3 * one + other) % modulus < (modulus + 1) // 2


def of_all_kinds(row: Row) -> dict[str, Callable[..., Any]]:
    """Return a function as each kind that Spark has."""
    of_vectors: Any = vectorized  # its overloads know fewer ways to call it than there are

    def series(one: pd.Series, other: pd.Series) -> pd.Series:
        rows = zip(one, other, strict=True)
        return pd.Series([row(int(a), int(b)) for a, b in rows], dtype="boolean")

    def arrays(one: pa.Array, other: pa.Array) -> pa.Array:
        rows = zip(one.to_pylist(), other.to_pylist(), strict=True)
        return pa.array([row(a, b) for a, b in rows], pa.bool_())

    return {
        "plain": F.udf(row, "boolean", useArrow=INTEGERS_AS_THEY_ARE),
        "pickled": F.udf(row, "boolean", useArrow=False),
        "pandas": of_vectors.pandas_udf(series, "boolean"),
        "arrow": arrow_udf_or(arrays, series, "boolean"),
    }


def register_verdicts(spark: SparkSession) -> None:
    """Make the functions known to SQL, each kind under its own name."""
    for modulus, failing in product(MODULI, FAILING):
        row = partial(accepted, modulus=modulus, failing=failing)
        for kind, function in of_all_kinds(row).items():
            spark.udf.register(f"accepted_{kind}_{modulus}_{failing}", function)


@dataclass(frozen=True)
class Asked:
    """A call: the inputs whose ids it looks at, and how it decides."""

    one: int
    other: int
    modulus: int
    failing: int
    kind: str

    @property
    def sql(self) -> str:
        """The call for Spark."""
        name = f"accepted_{self.kind}_{self.modulus}_{self.failing}"
        return f"{name}(r{self.one}.id, r{self.other}.id)"

    def verdict(self, ids: Sequence[int]) -> Verdict:
        """Return what it says of a joined row, given the id of each input."""
        try:
            found = accepted(ids[self.one], ids[self.other], self.modulus, self.failing)
        except ValueError:
            return Verdict.ERROR
        return Verdict.TRUE if found else Verdict.FALSE


@dataclass(frozen=True)
class RandomLayout:
    """A query, and how it is to be adapted."""

    inputs: tuple[str, ...]
    natives: tuple[str, ...]
    asked: tuple[tuple[Asked, ...], ...]
    """A conjunct each; several calls in one are its disjuncts."""
    outputs: tuple[str, ...]
    reach: str
    lying: bool
    adaptive: bool
    options: dict[str, Any]

    @property
    def sql(self) -> str:
        """The query for Spark."""
        calls = (" OR ".join(each.sql for each in terms) for terms in self.asked)
        conjuncts = [*self.natives, *(f"({call})" for call in calls)]
        return self._select(", ".join(self.outputs), conjuncts)

    @property
    def fails_somewhere(self) -> bool:
        """Whether there are ids for which a function fails."""
        return any(each.failing for terms in self.asked for each in terms)

    @property
    def root(self) -> int:
        """The input that all functions look at."""
        return self.asked[0][0].one

    def expected(self, connection: duckdb.DuckDBPyConnection) -> Counter[tuple[Any, ...]] | None:
        """Return the rows, joined by DuckDB; None where an error decides about one."""
        count = len(self.inputs)
        ids = ", ".join(f"r{n}.id" for n in range(count))
        text = self._select(f"{ids}, {', '.join(self.outputs)}", self.natives)
        rows: Counter[tuple[Any, ...]] = Counter()
        for row in connection.sql(text).fetchall():
            verdict = min(max(each.verdict(row) for each in terms) for terms in self.asked)
            if verdict is Verdict.ERROR:
                return None
            rows[row[count:]] += verdict is Verdict.TRUE
        return +rows

    def rows_of_root(self, connection: duckdb.DuckDBPyConnection) -> tuple[int, int]:
        """Return how many rows of the root are in joined rows, and how many it has by itself."""
        own = [
            text for text in self.natives if set(re.findall(r"r(\d)\.", text)) == {str(self.root)}
        ]
        joined = self._select(f"count(DISTINCT r{self.root}.rowid)", self.natives)
        alone = f"SELECT count(*) FROM {self.inputs[self.root]} r{self.root}"  # noqa: S608
        alone += f" WHERE {' AND '.join(own or ['true'])}"
        found = [connection.sql(text).fetchall()[0][0] for text in (joined, alone)]
        return int(found[0]), int(found[1])

    def _select(self, what: str, conjuncts: Sequence[str]) -> str:
        inputs = ", ".join(f"{each} r{n}" for n, each in enumerate(self.inputs))
        where = "\n  AND ".join(conjuncts)
        return f"SELECT {what}\nFROM {inputs}\nWHERE {where}"


def random_layout(seed: int, *, several: bool) -> RandomLayout:
    """Make the query of a seed, whose functions look at one input or at ``several``."""
    generator = np.random.default_rng([seed, several, 11])
    pick = generator.choice
    shape = SHAPES[seed % len(SHAPES)]
    count = int(pick([2, 3, 3] if shape in {"cycle", "clique"} else [2, 3, 3, 4]))
    maker = _Maker(generator, count)
    for edge in edges(shape, count):
        maker.relate(*edge)
    root = int(generator.integers(count))
    failing = int(pick(FAILING))
    asked = []
    asked_about = {root}
    for _ in range(int(pick([1, 2]))):
        terms = []
        for _ in range(int(pick([1, 1, 2]))):
            other = int(pick([n for n in range(count) if n != root])) if several else root
            asked_about.add(other)
            terms.append(Asked(root, other, int(pick(MODULI)), failing, str(pick(KINDS))))
        asked.append(tuple(terms))
    for number in range(count):
        if generator.random() < (0.2 if number == root else 0.6):
            maker.condition(number)
    # Spark pushes functions below whatever stands beside a table.
    inputs = tuple(maker.input_of(n, table=n in asked_about) for n in range(count))
    shown = sorted({int(n) for n in generator.integers(count, size=2)})
    return RandomLayout(
        inputs,
        tuple(maker.conjuncts),
        tuple(asked),
        tuple(f"r{n}.id AS i{n}" for n in shown),
        REACHES[seed // len(SHAPES) % len(REACHES)],
        lying=bool(generator.random() < 0.5),
        adaptive=bool(generator.random() < 0.7),
        options={
            "policy": list(PolicyName)[seed % len(PolicyName)],
            "seed": seed,
            "remember": bool(generator.random() < 0.5),
        },
    )


class _Maker:
    """Makes the native conjuncts and the inputs of a query."""

    def __init__(self, generator: np.random.Generator, count: int) -> None:
        self._generator = generator
        self._columns: list[set[str]] = [{"id"} for _ in range(count)]
        self._fitting = [n for n, size in enumerate(SIZES) if size <= LARGEST[count]]
        self.conjuncts: list[str] = []

    def relate(self, left: int, right: int) -> None:
        """Add what joins two relations."""
        pick, chance = self._generator.choice, self._generator.random()
        if chance < 0.1:
            self.conjuncts.append(f"r{left}.id % 5 = r{right}.id % 5")
            return
        column = other = str(pick(HASHED if chance < 0.6 else list(COLUMNS)))
        operator = "="
        if chance > 0.95:
            column = other = str(pick(ORDERED))
            operator = str(pick(["<", ">="]))
        elif chance > 0.82:  # a quarter of the keys are NULL
            sides = (f"nullif(r{number}.id % 4, 0)" for number in (left, right))
            self.conjuncts.append(" IS NOT DISTINCT FROM ".join(sides))
            return
        elif chance > 0.74:
            column, other = list(WIDER.items())[int(self._generator.integers(len(WIDER)))]
        self._columns[left].add(column)
        self._columns[right].add(other)
        self.conjuncts.append(f"r{left}.{column} {operator} r{right}.{other}")
        if self._generator.random() < 0.15:  # a second key, or a range beside the first
            self.conjuncts.append(f"r{left}.id {pick(['<', '<>'])} r{right}.id")

    def condition(self, number: int) -> None:
        """Add a condition on the rows of one relation."""
        texts = [f"r{number}.id % 3 <> 1", f"r{number}.id < 20", f"r{number}.id > 2"]
        self.conjuncts.append(str(self._generator.choice(texts)))

    def input_of(self, number: int, *, table: bool) -> str:
        """Return where the rows of a relation come from."""
        weights = np.array([1 + SIZES[n] ** 2 for n in self._fitting], np.float64)
        drawn = self._generator.choice(self._fitting, 2, p=weights / weights.sum())
        name, other = (f"t{int(n)}" for n in drawn)
        columns = ", ".join(sorted(self._columns[number]))
        match "table" if table else str(self._generator.choice(INPUTS)):
            case "distinct":
                return f"(SELECT DISTINCT {columns} FROM {name})"  # noqa: S608 - made here
            case "limit":
                return f"(SELECT * FROM {name} ORDER BY id LIMIT 6)"  # noqa: S608 - made here
            case "semi":
                tiny = f"SELECT tiny FROM {other}"  # noqa: S608 - made here
                return f"(SELECT * FROM {name} WHERE tiny IN ({tiny}))"  # noqa: S608 - made here
        return name
