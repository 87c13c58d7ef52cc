"""Random join queries, run in random ways: the bag of rows is DuckDB's.

``python -m tests.oracle.test_random_joins 100000`` runs as many as one likes.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import duckdb
import pytest

from eddyline.engine.policies.catalogue import PolicyName
from tests.oracle.random_joins import SHAPES, check, check_found, random_join
from tests.properties import share

pytestmark = pytest.mark.slow(40)

CASES = share(2_000)
"""Random joins of the usual run; a fault was found by the 1,006th alone."""

A_PART = 250


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB on one thread."""
    with duckdb.connect() as opened:
        opened.execute("SET threads = 1")
        yield opened


@pytest.fixture(scope="module")
def with_alternatives(
    connection: duckdb.DuckDBPyConnection,
) -> Mapping[int, Counter[tuple[Any, ...]]]:
    """Seeds of queries with a choice among access methods, and what DuckDB says."""
    # In two of these a look goes to a lookup that the order has no place for.
    joins = map(random_join, range(130, 280))
    return {join.seed: join.expected(connection) for join in joins if join.has_alternatives}


@pytest.mark.parametrize("first", range(0, CASES, A_PART))
def test_same_rows_as_duckdb(connection: duckdb.DuckDBPyConnection, first: int) -> None:
    shapes: Counter[str] = Counter()
    for seed in range(first, first + min(A_PART, CASES)):
        shapes[check(seed, connection).shape] += 1
    if CASES >= A_PART:
        assert set(shapes) == set(SHAPES)


@pytest.mark.parametrize("policy", list(PolicyName))
def test_every_policy_chooses_among_access_methods(
    with_alternatives: Mapping[int, Counter[tuple[Any, ...]]], policy: PolicyName
) -> None:
    for seed, expected in with_alternatives.items():
        check_found(random_join(seed), expected, policy)


def main() -> None:
    """Run the cases from a first seed on; the first one that differs ends it with its seed."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else CASES
    with duckdb.connect() as opened:
        opened.execute("SET threads = 1")
        for seed in range(first, first + count):
            check(seed, opened)
            if (seed - first) % 1000 == 999:
                sys.stdout.write(f"{seed - first + 1} queries, all equal\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
