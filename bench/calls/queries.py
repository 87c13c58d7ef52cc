"""Queries by chance, in SQL: joins, CASE, limits, aggregates, windows, subqueries over functions.

A query is a function of its seed. Its rows do not depend on the order in which Spark reads them,
but where :attr:`Query.any_rows` says so.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from bench.calls.functions import FUNCTIONS, Kind, kinds_of

TABLES: Final = {"t": ("id", "a", "k", "v"), "u": ("id", "b", "k", "v"), "e": ("id", "c", "k", "v")}
"""The tables and their columns, all ``bigint``; ``id`` is unique, ``v`` has NULLs."""

JOINS: Final = (
    ("JOIN",) * 4
    + ("LEFT JOIN",) * 2
    + ("RIGHT JOIN", "FULL JOIN")
    + (
        "LEFT SEMI JOIN",
        "LEFT ANTI JOIN",
    )
)


@dataclass(frozen=True)
class Query:
    """A query in SQL; ``any_rows`` where a limit leaves open which rows come."""

    text: str
    any_rows: bool


@dataclass(frozen=True)
class _Source:
    """What stands in FROM, the columns that it has, and those of which each row has its own."""

    text: str
    numbers: tuple[str, ...]
    key: tuple[str, ...]


def query_of(seed: int) -> Query:
    """Return the query of a seed."""
    return _Writer(random.Random(seed)).query()


class _Writer:
    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._names = itertools.count(1)
        # Mostly one kind a query: filters over two kinds are a barrier for Spark.
        self._kinds = chance.choices(list(Kind), k=1 if chance.random() < 0.7 else 2)

    def query(self) -> Query:
        """Return a query of one of the forms."""
        forms: list[Callable[[], Query]] = [
            self._rows,
            self._rows,
            self._rows,
            self._groups,
            self._groups,
            self._window,
            self._top,
            self._limited,
            self._union,
            self._distinct,
            self._common_table,
            self._exploded,
        ]
        return self._chance.choice(forms)()

    # ------------------------------------------------------------ forms

    def _rows(self) -> Query:
        source = self._source(self._chance.choice([0, 1, 1, 2]))
        return Query(self._select(source, self._items(source)), any_rows=False)

    def _groups(self) -> Query:
        source = self._source(self._chance.choice([0, 0, 1]))
        by = [self._number(source.numbers, 1) for _ in range(self._chance.choice([0, 1, 1, 2]))]
        found = [self._aggregate(source) for _ in range(self._chance.choice([1, 1, 2, 3]))]
        names = [f"{text} AS g{n}" for n, text in enumerate([*by, *found])]
        text = self._select(source, names)
        if by:
            text += " GROUP BY " + ", ".join(by)
            if self._chance.random() < 0.3:
                text += f" HAVING {self._aggregate(source)} > {self._chance.randrange(6)}"
        if by and self._chance.random() < 0.3:
            name = f"q{next(self._names)}"
            text = f"SELECT * FROM ({text}) AS {name} WHERE {self._condition([f'{name}.g0'], 1)}"
        return Query(text, any_rows=False)

    def _window(self) -> Query:
        source = self._source(self._chance.choice([0, 0, 1]))
        by = self._number(source.numbers, 1)
        within = f"(PARTITION BY {by} ORDER BY {', '.join(source.key)})"
        over = self._chance.choice(
            [f"row_number() OVER {within}", f"sum({self._number(source.numbers, 1)}) OVER {within}"]
        )
        text = self._select(source, [*self._items(source), f"{over} AS n"])
        if self._chance.random() < 0.5:
            text = f"SELECT * FROM ({text}) AS w WHERE n < 3"
        return Query(text, any_rows=False)

    def _top(self) -> Query:
        source = self._source(self._chance.choice([0, 0, 1]))
        first = self._chance.choice([[], [self._number(source.numbers, 1)]])
        keys = [f"{each} AS o{n}" for n, each in enumerate([*first, *source.key])]
        text = self._select(source, [*keys, *self._items(source)])
        order = ", ".join(f"o{n}" for n in range(len(keys)))
        return Query(
            f"{text} ORDER BY {order} LIMIT {self._chance.choice([1, 3, 7])}", any_rows=False
        )

    def _limited(self) -> Query:
        source = self._source(self._chance.choice([0, 0, 1]))
        text = self._select(source, self._items(source))
        return Query(f"{text} LIMIT {self._chance.choice([1, 4, 9])}", any_rows=True)

    def _union(self) -> Query:
        parts = []
        for _ in range(2):
            source = self._source(self._chance.choice([0, 0, 1]))
            parts.append(self._select(source, [f"{self._number(source.numbers, 2)} AS n"]))
        text = self._chance.choice([" UNION ALL ", " UNION ", " EXCEPT ", " INTERSECT "]).join(
            parts
        )
        if self._chance.random() < 0.4:
            text = f"SELECT * FROM ({text}) AS z WHERE {self._condition(['z.n'], 1)}"
        return Query(text, any_rows=False)

    def _distinct(self) -> Query:
        source = self._source(self._chance.choice([0, 0, 1]))
        text = self._select(source, self._items(source)).replace("SELECT", "SELECT DISTINCT", 1)
        return Query(text, any_rows=False)

    def _common_table(self) -> Query:
        source = self._source(self._chance.choice([0, 0, 1]))
        inner = self._select(
            source, [f"{source.key[0]} AS id", f"{self._number(source.numbers, 2)} AS r"]
        )
        on = self._chance.choice(["x.r = y.id", "x.id = y.id", "x.r = y.r", "x.r < y.r"])
        where = self._condition(["x.id", "x.r", "y.r"], 1)
        items = "x.id AS one, y.id AS other, x.r, y.r AS s"
        text = f"WITH c AS ({inner}) SELECT {items} FROM c x JOIN c y ON {on} WHERE {where}"
        return Query(text, any_rows=False)

    def _exploded(self) -> Query:
        source = self._source(0)
        call = self._call("some", source.numbers, 1)
        items = [f"{each} AS i{n}" for n, each in enumerate(source.key)]
        text = self._select(source, [*items, f"explode({call}) AS x"])
        if self._chance.random() < 0.5:
            text = f"SELECT * FROM ({text}) AS z WHERE {self._condition(['z.x', 'z.i0'], 1)}"
        return Query(text, any_rows=False)

    # ------------------------------------------------------------ parts

    def _select(self, source: _Source, items: Sequence[str]) -> str:
        text = f"SELECT {', '.join(items)} FROM {source.text}"
        terms = [
            self._condition(source.numbers, 2) for _ in range(self._chance.choice([0, 1, 1, 2]))
        ]
        if self._chance.random() < 0.2:
            terms.append(self._subquery(source.numbers))
        return text + (" WHERE " + " AND ".join(terms) if terms else "")

    def _items(self, source: _Source) -> list[str]:
        """Return a select list."""
        makes = (self._number, self._number, self._value)
        found = [
            self._chance.choice(makes)(source.numbers, 2)
            for _ in range(self._chance.choice([1, 2, 3]))
        ]
        if len(found) > 1 and self._chance.random() < 0.3:
            found.append(found[0])  # the same once more
        return [f"{each} AS c{n}" for n, each in enumerate(found)]

    def _source(self, joins: int) -> _Source:
        source = self._relation()
        for _ in range(joins):
            other = self._relation()
            how = self._chance.choice(JOINS)
            on = self._join_condition(source, other)
            text = f"{source.text} {how} {other.text} ON {on}"
            if "SEMI" in how or "ANTI" in how:
                source = _Source(text, source.numbers, source.key)
            else:
                numbers = source.numbers + other.numbers
                source = _Source(text, numbers, source.key + other.key)
        return source

    def _relation(self) -> _Source:
        table = self._chance.choice(list(TABLES))
        name = f"r{next(self._names)}"
        columns = tuple(f"{name}.{column}" for column in TABLES[table])
        if self._chance.random() < 0.7:
            return _Source(f"{table} AS {name}", columns, columns[:1])
        inner = f"r{next(self._names)}"
        numbers = tuple(f"{inner}.{column}" for column in TABLES[table])
        items = [f"{inner}.id", *(f"{self._number(numbers, 1)} AS n{n}" for n in range(2))]
        plain = _Source(f"{table} AS {inner}", numbers, numbers[:1])
        text = f"({self._select(plain, items)}) AS {name}"
        return _Source(text, (f"{name}.id", f"{name}.n0", f"{name}.n1"), (f"{name}.id",))

    def _join_condition(self, left: _Source, right: _Source) -> str:
        one, other = self._number(left.numbers, 1), self._number(right.numbers, 1)
        terms = [f"{one} = {other}" if self._chance.random() < 0.9 else f"{one} <=> {other}"]
        if self._chance.random() < 0.3:
            terms.append(self._condition((*left.numbers, *right.numbers), 1))
        return " AND ".join(terms)

    def _subquery(self, numbers: Sequence[str]) -> str:
        outer = self._number(numbers, 1)
        name = f"r{next(self._names)}"
        table = self._chance.choice(list(TABLES))
        columns = [f"{name}.{column}" for column in TABLES[table]]
        inner, where = self._number(columns, 1), self._condition(columns, 1)
        rows = f"FROM {table} AS {name} WHERE {where}"
        plain = self._chance.choice(numbers)
        return self._chance.choice(
            [
                f"{outer} IN (SELECT {inner} {rows})",
                f"EXISTS (SELECT 1 {rows} AND {inner} = {plain})",
                f"NOT EXISTS (SELECT 1 {rows} AND {name}.k = {plain})",
                f"{outer} > (SELECT min({inner}) {rows})",
                f"{outer} >= (SELECT min({inner}) {rows} AND {name}.k = {plain})",
            ]
        )

    # ------------------------------------------------------------ expressions

    def _number(self, numbers: Sequence[str], depth: int) -> str:
        """Return an expression that is a number."""
        column = self._chance.choice(numbers)
        if depth == 0 or self._chance.random() < 0.25:
            return column
        call = self._call(self._chance.choice("fg"), numbers, depth)
        choices = [
            call,
            call,
            call,
            f"({call} + {column})",
            f"{self._call('pair', numbers, depth)}.x",
            f"CASE WHEN {self._condition(numbers, depth - 1)} THEN {call} ELSE {column} END",
            f"coalesce({column}, {call})",
            f"if({column} < 9, {call}, {self._number(numbers, depth - 1)})",
        ]
        return self._chance.choice(choices)

    def _value(self, numbers: Sequence[str], depth: int) -> str:
        """Return an expression of another type."""
        call = self._call("pair", numbers, depth)
        return self._chance.choice(
            [
                self._call("w", numbers, depth),
                f"{call}.y",
                f"named_struct('x', {call}.x, 'y', {call}.y)",
                self._condition(numbers, depth),
            ]
        )

    def _condition(self, numbers: Sequence[str], depth: int) -> str:
        """Return an expression that is TRUE, FALSE or NULL."""
        column, bound = self._chance.choice(numbers), self._chance.randrange(30)
        if depth == 0 or self._chance.random() < 0.2:
            return self._chance.choice([f"{column} < {bound}", f"{column} IS NOT NULL"])
        number = self._number(numbers, depth)
        choices = [
            self._call("p", numbers, depth),
            self._call("p", numbers, depth),
            self._call("q", numbers, depth),
            f"{number} > {bound // 4}",
            f"{number} IN ({bound % 5}, {bound % 7}, 3)",
            f"({self._condition(numbers, depth - 1)} OR {self._call('p', numbers, depth - 1)})",
            f"({self._condition(numbers, depth - 1)} AND {self._call('p', numbers, depth - 1)})",
            f"NOT {self._call('p', numbers, depth)}",
            f"{self._call('w', numbers, depth)} LIKE 'b%'",
        ]
        return self._chance.choice(choices)

    def _aggregate(self, source: _Source) -> str:
        number = self._number(source.numbers, 2)
        filtered = f" FILTER (WHERE {self._condition(source.numbers, 1)})"
        return self._chance.choice(
            [
                f"sum({number})",
                f"max({number})",
                f"count({number})",
                "count(*)",
                f"count(DISTINCT {number})",
                f"sum({number}){filtered}",
                f"count(*){filtered}",
            ]
        )

    def _call(self, name: str, numbers: Sequence[str], depth: int) -> str:
        """Return a call of a function, in one of the kinds of this query."""
        (function,) = (each for each in FUNCTIONS if each.name == name)
        known = [kind for kind in self._kinds if kind in kinds_of(function)] or [Kind.ROW]
        arguments = [self._argument(numbers, depth) for _ in range(function.arguments)]
        return f"{name}_{self._chance.choice(known)}({', '.join(arguments)})"

    def _argument(self, numbers: Sequence[str], depth: int) -> str:
        if depth > 1 and self._chance.random() < 0.2:
            return self._number(numbers, depth - 1)
        column = self._chance.choice(numbers)
        return column if self._chance.random() < 0.8 else f"{column} + 1"
