"""Queries over relations with all sorts of access methods, and which of them can be run.

For two and three relations every assignment of access methods is enumerated, for four and five
queries are drawn. Each table has a name for every sort, as ``by_one_2`` for the third of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from random import Random
from typing import NamedTuple, TypeAlias

from tests.planner.joins.random_queries import SHAPES, edges

COLUMNS = ("id", "x", "y", "z")
SIZES = (40, 12, 20, 8, 5)
LARGEST = 5

Row: TypeAlias = tuple[int | None, ...]
Columns: TypeAlias = tuple[str, ...]


class Access(StrEnum):
    """How one comes by the rows of a relation."""

    SCAN = "scanned"
    ONE = "by_one"  # looked up by a column
    TWO = "by_two"  # by two columns together
    EITHER = "by_either"  # by either of two columns
    BOTH = "both"  # by a column, and scanned


BINDS: Mapping[Access, tuple[Columns, ...]] = {
    Access.SCAN: (),
    Access.ONE: (("x",),),
    Access.TWO: (("x", "y"),),
    Access.EITHER: (("x",), ("y",)),
    Access.BOTH: (("x",),),
}
"""The bind columns of each lookup."""

SCANNED = (Access.SCAN, Access.BOTH)


class Field(NamedTuple):
    """A column of a relation."""

    relation: int
    column: str

    def __str__(self) -> str:
        return f"r{self.relation}.{self.column}"


Equality: TypeAlias = tuple[Field, Field]
Constants: TypeAlias = tuple[Field, tuple[int | None, ...]]


@dataclass(frozen=True)
class Pattern:
    """A query: the access methods of its relations, and what binds their columns."""

    name: str
    relations: tuple[tuple[int, Access], ...]  # number of the table, how it is accessed
    equalities: tuple[Equality, ...]
    constants: tuple[Constants, ...] = ()
    others: tuple[str, ...] = ()  # conditions that bind nothing
    outputs: Columns = ("id",)

    def table(self, relation: int) -> str:
        """Return the name of a relation's table."""
        number, access = self.relations[relation]
        return f"{access}_{number}"

    def sql(self, tag: int, *, ordinary: bool = False) -> str:
        """Return the query, over lookup tables or over ordinary ones, with a column to tell it."""
        numbers = range(len(self.relations))
        values = [
            f"r{r}.{self.outputs[r % len(self.outputs)]}" if r in numbers and self.outputs else "0"
            for r in range(LARGEST)
        ]
        tables = ", ".join(
            f"{f'{Access.SCAN}_{self.relations[r][0]}' if ordinary else self.table(r)} r{r}"
            for r in numbers
        )
        conditions = [f"{left} = {right}" for left, right in self.equalities]
        conditions += [*(_condition(*constants) for constants in self.constants), *self.others]
        return f"SELECT {tag}, {', '.join(values)} FROM {tables} WHERE {' AND '.join(conditions)}"  # noqa: S608 - made here

    def lacking(self) -> dict[int, set[str]]:
        """Return the relations that nobody can ask, each with the columns that have no values.

        Fields that are set equal, be it by way of others, have values where one of them has: a
        field of a relation that is scanned, or whose lookup has been made, or one with constants.
        """
        equal = self._equal_fields()
        reached = {r for r, (_, access) in enumerate(self.relations) if access in SCANNED}
        given = {field for field, _ in self.constants}
        while True:
            known = {
                field
                for field, others in equal.items()
                if any(other in given or other.relation in reached for other in others)
            }
            missing = {
                r: [{c for c in bind if Field(r, c) not in known} for bind in BINDS[access]]
                for r, (_, access) in enumerate(self.relations)
                if r not in reached
            }
            further = {r for r, lacks in missing.items() if not all(lacks)}
            if not further:
                return {r: set.union(*lacks) for r, lacks in missing.items()}
            reached |= further

    def _equal_fields(self) -> dict[Field, frozenset[Field]]:
        """Return for each field all that are equal to it, itself among them."""
        fields = [Field(r, c) for r in range(len(self.relations)) for c in COLUMNS]
        equal = {field: frozenset([field]) for field in fields}
        for left, right in self.equalities:
            together = equal[left] | equal[right]
            equal.update(dict.fromkeys(together, together))
        return equal


def _condition(field: Field, values: Sequence[int | None]) -> str:
    texts = ["NULL" if value is None else str(value) for value in values]
    if len(texts) == 1:
        return f"{field} = {texts[0]}"
    if len(texts) == 2:
        return f"({texts[0]} = {field} OR {field} = {texts[1]})"
    return f"{field} IN ({', '.join(texts)})"


def rows_of(number: int) -> list[Row]:
    """Return the rows of a table: NULLs, duplicates but for the id, keys without a match."""
    random = Random(number)

    def value() -> int | None:
        return random.choice((None, 1, 1, 1, 2, 2, 3, 4 + number))

    return [(n, value(), value(), value()) for n in range(SIZES[number])]


def enumerated(count: int, shape: str) -> list[Pattern]:
    """Return a query of a shape for every assignment of access methods to its relations.

    Of three relations those that are scanned have a lookup as well in every other query: one
    that nobody uses.
    """
    equalities, constants = _related(shape, count)
    found = []
    methods = list(Access) if count == 2 else [a for a in Access if a is not Access.BOTH]
    for number, accesses in enumerate(product(methods, repeat=count)):
        if set(accesses) <= set(SCANNED):
            continue
        if count > 2 and number % 2:
            accesses = tuple(Access.BOTH if a is Access.SCAN else a for a in accesses)  # noqa: PLW2901 - the same ones
        name = f"{shape} of {', '.join(accesses)}"
        outputs = (("id",), ("z", "x"), ())[number % 3]
        relations = tuple(enumerate(accesses))
        others = ("(r0.z < 3 OR r0.z IS NULL)",) if number % 2 else ()
        found.append(Pattern(name, relations, equalities, constants, others, outputs))
    return found


def _related(shape: str, count: int) -> tuple[tuple[Equality, ...], tuple[Constants, ...]]:
    """Return what relates the relations of a shape, and constants.

    >>> _related("chain", 3)[0][0]
    (Field(relation=0, column='y'), Field(relation=1, column='x'))
    """
    if shape == "pair":
        return tuple((Field(0, c), Field(1, c)) for c in "xy"), ()
    pairs = edges(shape, count)
    if shape == "star":
        related = tuple(
            (Field(0, "xy"[number % 2]), Field(other, "x"))
            for number, (_, other) in enumerate(pairs)
        )
        return related, ((Field(1, "y"), (1, None, 3)),)
    return tuple((Field(left, "y"), Field(right, "x")) for left, right in pairs), ()


def drawn(seed: int) -> Pattern:
    """Return a query over four or five relations, some of the same table."""
    random = Random(seed)
    count = 4 + seed % 2
    shape = SHAPES[seed // 2 % len(SHAPES)]
    accesses = random.choices(list(Access), (4, 3, 2, 3, 2), k=count)
    if set(accesses) <= set(SCANNED):
        accesses[0] = Access.ONE
    relations = tuple((random.choice((1, 1, 2, 3, 4)), access) for access in accesses)
    equalities = []
    column = random.choice("xy")
    for left, right in edges(shape, count):
        if shape != "clique":
            column = random.choice("xxyyz")
        closed = shape in {"cycle", "clique"}  # where columns crossed over leave no rows
        equalities.append(
            (Field(left, column), Field(right, column if closed else random.choice("xy")))
        )
    if random.random() < 0.15:
        same = random.randrange(count)
        equalities.append((Field(same, "x"), Field(same, "y")))
    constants = []
    for relation in random.sample(range(count), random.choice((0, 1, 1, 2, 3))):
        values = random.choice(((1,), (1, 3), (1, None), (1, 2, 3, None), tuple(range(12))))
        constants.append((Field(relation, random.choice("xy")), values))
    one, other = random.sample(range(count), 2)
    # All of them hold for 1, as do the constants: else Spark might see that there are no rows.
    others = (f"r{one}.y < 4", f"r{one}.x <> 2", f"r{one}.z <= r{other}.z")
    chosen = tuple(random.sample(others, random.choice((0, 0, 1, 2))))
    outputs = random.choice((("id",), ("id",), ("y", "z"), ()))
    name = f"{shape} of {', '.join(accesses)}, drawn by {seed}"
    return Pattern(name, relations, tuple(equalities), tuple(constants), chosen, outputs)
