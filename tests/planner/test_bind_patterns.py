"""Every bind pattern gives the rows of ordinary tables, or is refused for what it lacks.

Many queries are one action, each with a number as its first column: alone they take longest to
be started.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

import eddyline
from eddyline.engine.policies.catalogue import PolicyName
from eddyline.errors import UnboundLookupError
from tests.planner.bind_patterns import (
    BINDS,
    COLUMNS,
    SIZES,
    Access,
    Pattern,
    drawn,
    enumerated,
    rows_of,
)
from tests.planner.joins.broadcasting import broadcasting
from tests.planner.joins.random_queries import SHAPES
from tests.planner.recording_source import RecordingSource

pytestmark = pytest.mark.slow(40)

AT_ONCE = 10
DRAWN = 48

GROUPS = {
    "2, chain": enumerated(2, "chain"),
    "2, pair": enumerated(2, "pair"),
    "3, chain": enumerated(3, "chain"),
    "3, star": enumerated(3, "star"),
    "3, cycle": enumerated(3, "cycle"),
    "4": [drawn(seed) for seed in range(0, DRAWN, 2)],
    "5": [drawn(seed) for seed in range(1, DRAWN, 2)],
}
BOUND = {name: [p for p in patterns if not p.lacking()] for name, patterns in GROUPS.items()}
BATCHES = {
    f"{name}, from {start} on": patterns[start : start + AT_ONCE]
    for name, patterns in BOUND.items()
    for start in range(0, len(patterns), AT_ONCE)
}
SHUFFLED, ADAPTIVE = "spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled"

Sources = dict[str, RecordingSource]


@pytest.fixture(scope="module")
def sources(spark: SparkSession) -> Iterator[Sources]:
    """The sources of all lookup tables by table and bind columns, each beside an ordinary one."""
    before = {key: str(spark.conf.get(key)) for key in (SHUFFLED, ADAPTIVE)}
    spark.conf.set(SHUFFLED, "2")
    found = {}
    for number in range(len(SIZES)):
        found.update(_registered(spark, number))
    yield found
    for key, value in before.items():
        spark.conf.set(key, value)


def _registered(spark: SparkSession, number: int) -> Sources:
    """Register a table once for each way to its rows; some of the sources are generous."""
    rows = rows_of(number)
    schema = ", ".join(f"{column} int" for column in COLUMNS)
    scan = spark.createDataFrame(rows, schema).coalesce(1 if number else 2).cache()
    scan.createOrReplaceTempView(f"{Access.SCAN}_{number}")
    assert scan.count() == len(rows)
    found: Sources = {}
    for access, binds in BINDS.items():
        name = f"{access}_{number}"
        methods: list[eddyline.LookupMethod] = []
        for bind in binds:
            places = [COLUMNS.index(column) for column in bind]
            source = RecordingSource(rows, places, generous=len(methods) == number % 2)
            found[f"{name} by {', '.join(bind)}"] = source
            lookup = eddyline.PythonLookup(source, keys_per_call=1 + number)
            methods.append(eddyline.LookupMethod(bind, lookup))
        if methods:
            eddyline.lookup_table(
                spark,
                name,
                schema,
                binds[0],
                methods[0].source,
                key=["id"] if access in {Access.EITHER, Access.BOTH} else [],
                also=methods[1:],
                scan=scan if access is Access.BOTH else None,
            )
    return found


def union(patterns: Sequence[Pattern], *, ordinary: bool = False) -> str:
    return "\nUNION ALL\n".join(p.sql(n, ordinary=ordinary) for n, p in enumerate(patterns))


@pytest.mark.parametrize("batch", BATCHES)
def test_rows_are_those_of_ordinary_tables(
    spark: SparkSession, sources: Sources, batch: str
) -> None:
    patterns = BATCHES[batch]
    number = list(BATCHES).index(batch)
    policy = list(PolicyName)[-1 - number % len(PolicyName)]
    spark.conf.set(ADAPTIVE, str(number % 3 == 0).lower())
    with broadcasting(spark, allowed=number % 2 == 0):
        expected = Counter(map(tuple, spark.sql(union(patterns, ordinary=True)).collect()))
        for source in sources.values():
            source.keys.clear()
        adapted = eddyline.adapt(spark.sql(union(patterns)), policy=policy, seed=number)
        found = Counter(map(tuple, adapted.collect()))
    for tag, pattern in enumerate(patterns):
        there, here = _of(tag, expected), _of(tag, found)
        assert here == there, (
            f"{pattern.name} by {policy}: missing {list((there - here).items())[:3]}, "
            f"extra {list((here - there).items())[:3]}\n{pattern.sql(tag)}"
        )
    assert len({row[0] for row in expected}) > len(patterns) / 2
    asked = {name: source.keys for name, source in sources.items() if source.keys}
    assert asked
    for name, keys in asked.items():
        assert set(keys.values()) == {1}, name
        assert not any(None in (key if isinstance(key, tuple) else (key,)) for key in keys), name


def _of(tag: int, rows: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    return Counter({row: times for row, times in rows.items() if row[0] == tag})


LACKING = re.compile(r"(by_\w+) .*?(?:nothing about|values for|without) ([xy]\b(?: \w+ [xy]\b)?)")
"""A table that an error names, and the columns that it says there are no values for."""


@pytest.mark.parametrize("group", GROUPS)
def test_what_nobody_can_ask_is_refused(spark: SparkSession, sources: Sources, group: str) -> None:
    unbound = [(pattern, lost) for pattern in GROUPS[group] if (lost := pattern.lacking())]
    assert sources
    assert unbound
    for pattern, lost in unbound:
        with pytest.raises(UnboundLookupError) as refused:
            eddyline.adapt(spark.sql(pattern.sql(0)))
        text = str(refused.value)
        assert set(re.findall(r"by_\w+", text)) <= {pattern.table(r) for r in lost}, text
        named = LACKING.findall(text)
        assert named, text
        for table, columns in named:
            lacked = [lacks for r, lacks in lost.items() if pattern.table(r) == table]
            assert any(lacks.issuperset(re.findall("[xy]", columns)) for lacks in lacked), text


def test_the_queries_are_of_every_sort() -> None:
    for count in (4, 5):
        patterns = GROUPS[str(count)]
        assert {pattern.name.split()[0] for pattern in patterns} == set(SHAPES)
        for here in (BOUND[str(count)], [p for p in patterns if p.lacking()]):
            assert len(here) >= DRAWN / 8
            assert {access for p in here for _, access in p.relations} == set(Access)
            assert any(len(set(p.relations)) < count for p in here)  # a table beside itself
            assert {len(values) for p in here for _, values in p.constants} == {1, 2, 4, 12}
    assert any(left.relation == right.relation for p in BOUND["4"] for left, right in p.equalities)
    assert len(BATCHES) >= len(PolicyName)
